/** Samples of GPUs and of requests to servers: tasks with known busy times. */
import { describe, expect, it } from 'vitest'
import type { ImportOptions } from '../../simulator/trace/import/importer.ts'
import { MAX_SAMPLED_PHASES } from '../../simulator/trace/import/gpu-samples.ts'
import { dealRequests, MAX_BURSTS, type ServerTask } from '../../simulator/trace/import/server-requests.ts'
import { aloneMsOf, busyMsOf } from '../../simulator/trace/work.ts'
import { temporaryFolder } from '../support/headroom-command.ts'
import { collect, importText, type Imported } from '../support/imported.ts'

const folder = temporaryFolder()
const run = (
  format: string,
  content: readonly string[] | string,
  options?: ImportOptions,
): Promise<Imported> => importText(folder, format, content, options)
const works = ({ tasks }: Imported): readonly unknown[] =>
  tasks.map((task) => [task.id, task.at, task.vram_mib, task.work])
const phases = (...list: ReadonlyArray<readonly [number, number]>): object => ({
  kind: 'phases',
  phases: list,
})

describe('the nvidia-smi format', () => {
  const HEADER = 'timestamp, index, utilization.gpu [%], memory.used [MiB]'
  const at = (second: number): string => `2026/03/01 10:00:${String(second).padStart(2, '0')}.500`
  const sample = (second: number, busy: string, used: string, gpu = '0'): string =>
    `${at(second)}, ${gpu}, ${busy} %, ${used} MiB`

  it('makes a task of VRAM in use, busy and idle as sampled', async () => {
    const imported = await run('nvidia-smi', [
      HEADER,
      sample(0, '0', '3'),
      sample(1, '37', '20000'),
      sample(2, '100', '24000'),
      sample(3, '0', '24000'),
      sample(4, '0', '24000'),
      sample(5, '5', '24000'),
      sample(7, '0', '3'),
      sample(8, '50', '1025'),
      sample(9, '50', '1025'),
    ])
    expect(works(imported)).toEqual([
      ['0.1', 0, 24_000, phases([2000, 2000], [2000, 0])],
      ['0.2', 7000, 1025, phases([2000, 0])],
    ])
    expect(imported.header).toMatchObject({ rows: 9, dropped: { no_task: 2 }, importer: { synthetic: [] } })
  })
  it('separates GPUs by index or uuid, whatever the units and names in the header', async () => {
    const samples = ['GPU-a', 'GPU-b'].flatMap((gpu) => [
      `${at(0)},${gpu},0,2000`,
      `${at(10)},${gpu},90,2000`,
    ])
    const imported = await run(
      'nvidia-smi',
      ['timestamp,gpu_uuid,utilization.gpu,memory.used', ...samples].join('\r\n'),
      { busyAbovePercent: 89 },
    )
    expect(works(imported)).toEqual(
      ['GPU-a.1', 'GPU-b.1'].map((id) => [id, 0, 2000, phases([0, 10_000], [10_000, 0])]),
    )
  })
  it('ends a task when samples stop, and has unknown VRAM without samples of it', async () => {
    // prettier-ignore
    const lines = [[0, 1], [1, 1], [40, 1], [41, 0]].map(([second, busy]) => `${at(second!)}, 0, ${busy}`)
    const imported = await run('nvidia-smi', ['timestamp, index, utilization.gpu', ...lines], {
      gapMs: 30_000,
      vramMib: 5000,
    })
    expect(works(imported)).toEqual([
      ['0.1', 0, 5000, phases([2000, 0])],
      ['0.2', 40_000, 5000, phases([1000, 1000])],
    ])
    expect(imported.header.importer?.synthetic).toEqual(['vram_mib'])
  })
  it('counts samples without values, out of order, or without a GPU', async () => {
    const { header, tasks } = await run('nvidia-smi', [
      HEADER,
      sample(5, '1', '2000'),
      sample(4, '1', '2000'),
      sample(5, '1', '2000'),
      sample(6, '[N/A]', '2000'),
      sample(7, '1', '[Not Supported]'),
      sample(8, '1', '-5'),
      sample(9, '1', '2000', 'N/A'),
      `${at(10)}, 0, 1 %`,
      'yesterday, 0, 1 %, 2000 MiB',
      sample(11, '1', '2000'),
    ])
    expect(header.dropped).toEqual({
      out_of_order: 1, duplicate_sample: 1, 'no_utilization.gpu': 1, 'no_memory.used': 1,
      'bad_memory.used': 1, no_gpu_name: 1,
      wrong_number_of_columns: 1, bad_timestamp: 1,
    }) // prettier-ignore
    expect(tasks.map(({ work }) => aloneMsOf(work))).toEqual([12_000])
  })
  it('continues with another task after the maximum number of phases', async () => {
    const count = 2 * MAX_SAMPLED_PHASES + 10
    const lines = Array.from({ length: count }, (_, i) => `${i * 2},0,${i % 2}`)
    const { tasks, header } = await run('nvidia-smi', ['timestamp,index,utilization.gpu', ...lines])
    // prettier-ignore
    expect(tasks.map(({ id, at }) => [id, at])).toEqual([['0.1', 0], ['0.2', 2 * MAX_SAMPLED_PHASES * 2000]])
    expect(tasks.reduce((sum, { work }) => sum + aloneMsOf(work), 0)).toBe(count * 2000)
    expect(header.importer?.adjusted).toEqual({ cut_after_100000_phases: 1 })
  })
  it('names missing columns', async () => {
    await expect(run('nvidia-smi', ['timestamp, memory.used [MiB]', '1, 2'])).rejects.toThrow(
      'has no column utilization.gpu, index or uuid or pci.bus_id (its columns: timestamp, ' +
        'memory.used [MiB])',
    )
  })
})

describe('the dcgm format', () => {
  it('counts time by samples, across repeated headers', async () => {
    const imported = await run('dcgm', [
      '#Entity   GPUTL    FBUSD',
      'ID',
      'GPU 0     97       20000',
      'GPU 1     0        3',
      'GPU 0     0        21000',
      'GPU 1     0        3',
      '#Entity   GPUTL    FBUSD',
      'ID',
      'GPU 0     N/A      21000',
      'GPU 1     1        N/A',
      'GPU 0     0        21000',
      'GPU 1     50       2000',
      'GPU 0     5',
      'GPU-I 7   50       2000',
      'Error: lost connection',
      'GPU 1     x        2000',
      'GPU 1     1        -1',
    ])
    expect(works(imported)).toEqual([
      ['GPU-0.1', 0, 21_000, phases([1000, 4000])],
      ['GPU-I-7.1', 0, 2000, phases([1, 0])],
      ['GPU-1.1', 3000, 2000, phases([2000, 0])],
    ])
    expect(imported.header.dropped).toEqual({
      no_task: 2, no_busy_value: 1, no_FBUSD: 1, wrong_number_of_columns: 1, no_gpu_line: 1, bad_GRACT: 1,
      bad_FBUSD: 1,
    }) // prettier-ignore
  })
  it('accepts shares, another interval, and missing memory', async () => {
    const imported = await run(
      'dcgm',
      ['# Entity  GRACT  DRAMA', 'Id', 'GPU 0  0.01  0.5', 'GPU 0  0.96  0.5'],
      {
        intervalMs: 100,
        busyAbovePercent: 5,
      },
    )
    expect(works(imported)).toEqual([['GPU-0.1', 0, 0, phases([0, 100], [100, 0])]])
    expect(imported.header.importer?.synthetic).toEqual(['gpu_mode'])
  })
  it.each([
    [['GPU 0  1'], 'dcgm.txt:1: comes before a header'],
    [['#Entity  TEMP', 'GPU 0  60'], 'dcgm.txt:1: has no column GRACT, GPUTL or SMACT (its columns: TEMP)'],
    [[''], 'dcgm.txt: has no header'],
  ])('refuses %j', async (lines, message) => {
    await expect(run('dcgm', lines)).rejects.toThrow(message)
  })
})

describe('the azure-llm format', () => {
  const HEADER = 'TIMESTAMP,ContextTokens,GeneratedTokens'
  const RATES = { prefillTokensPerS: 1000, decodeTokensPerS: 100 }

  it('distributes requests in turn, and joins requests that wait for each other', async () => {
    const imported = await run(
      'azure-llm',
      [
        HEADER,
        '2023-11-16 18:15:46.6805900,100,10',
        '2023-11-16 18:15:50.9951690,1000,0',
        '2023-11-16 18:15:46.7805900,100,90',
        '2023-11-16 18:15:47.7805900,0,100',
      ],
      { servers: 2, ...RATES },
    )
    expect(imported.tasks.map(({ id, at, work }) => [id, at, work])).toEqual([
      ['server-1.1', 0, { kind: 'bursts', at: [[0, 200], [1100, 1000]], stayMs: 5315 }],
      ['server-2.1', 0, { kind: 'bursts', at: [[100, 1000], [4315, 1000]], stayMs: 5315 }],
    ]) // prettier-ignore
    expect(imported.header).toMatchObject({
      rows: 4,
      dropped: {},
      importer: { synthetic: ['gpu_mode', 'activity'], adjusted: {} },
    })
  })
  it('reports the requests that joined the burst of an earlier one', async () => {
    const rows = [
      'arrival_s,context_tokens,generated_tokens',
      '0,1000,0',
      '0.5,1000,0',
      '1.9,1000,0',
      '60,1000,0',
    ]
    const { header, tasks } = await run('azure-llm', rows, { servers: 1, ...RATES })
    expect(tasks[0]?.work).toMatchObject({ at: [[0, 3000], [60_000, 1000]] }) // prettier-ignore
    expect(header.importer?.adjusted).toEqual({ requests_joined: 2 })
  })
  it('replaces servers at the end of their life, also unused ones', async () => {
    const imported = await run(
      'azure-llm',
      ['arrival_s,context_tokens,generated_tokens', '0,10,0', '250,10,0'],
      {
        servers: 2,
        serverLifeMs: 100_000,
        ...RATES,
      },
    )
    expect(imported.tasks.map(({ id, at, work }) => [id, at, busyMsOf(work), aloneMsOf(work)])).toEqual([
      ['server-1.1', 0, 10, 100_000],
      ['server-2.1', 0, 0, 100_000],
      ['server-1.2', 100_000, 0, 100_000],
      ['server-2.2', 100_000, 0, 100_000],
      ['server-1.3', 200_000, 0, 50_010],
      ['server-2.3', 200_000, 10, 50_010],
    ])
  })
  it('skews the load of servers, equally for equal seeds', async () => {
    const lines = [
      'arrival_s,context_tokens,generated_tokens',
      ...Array.from({ length: 3000 }, (_, i) => `${i},1000,0`),
    ]
    const busy = async (seed: number): Promise<readonly number[]> =>
      (await run('azure-llm', lines, { servers: 3, serverSkew: 1, seed, ...RATES })).tasks.map(
        ({ work }) => busyMsOf(work) / 1000,
      )
    const [first, second, third] = (await busy(1)) as [number, number, number]
    for (const [i, got] of [first, second, third].entries())
      expect(got / 3000).toBeCloseTo(6 / 11 / (i + 1), 1)
    expect(await busy(1)).toEqual([first, second, third])
    expect(await busy(2)).not.toEqual([first, second, third])
  })
  it('counts requests without tokens or times, and refuses too short a server life', async () => {
    const { header, tasks } = await run(
      'azure-llm',
      [HEADER, '0,0,0', ',1,1', '5,NaN,1', '5,1,-1', '5,1,1', '6,1.0,1.0'],
      { servers: 1 },
    )
    expect(header.dropped).toEqual({
      no_tokens: 1,
      no_arrival_s: 1,
      no_context_tokens: 1,
      bad_generated_tokens: 1,
    })
    expect(tasks).toHaveLength(1)
    await expect(run('azure-llm', [HEADER, '0,1,1', '99999999999,1,1'])).rejects.toThrow(
      'server_life: is too short',
    )
  })
  it('splits a server with too many requests', async () => {
    async function* requests(): AsyncGenerator<{ at: number; busyMs: number }> {
      for (let i = 0; i <= MAX_BURSTS; i++) yield { at: 2 * i, busyMs: 1 }
    }
    const tasks = await collect<ServerTask>(
      dealRequests(requests(), { servers: 1, skew: 0, lifeMs: 1e9, seed: 0 }),
    )
    expect(tasks.map(({ id, at, work }) => [id, at, busyMsOf(work)])).toEqual([
      ['server-1.1', 0, MAX_BURSTS],
      ['server-1.2', 2 * MAX_BURSTS, 1],
    ])
  })
})
