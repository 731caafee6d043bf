/** Batch traces of other systems: documented rows, including irregular ones. */
import { describe, expect, it } from 'vitest'
import type { ImportOptions } from '../../simulator/trace/import/importer.ts'
import { importerOf, IMPORTERS } from '../../simulator/trace/formats/importers.ts'
import { parseColumns, parsePriorityMap } from '../../simulator/trace/import/vram-map.ts'
import { aloneMsOf } from '../../simulator/trace/work.ts'
import { temporaryFolder } from '../support/headroom-command.ts'
import { expectEveryRow, importText, type Imported } from '../support/imported.ts'

const folder = temporaryFolder()

async function run(
  format: string,
  content: readonly string[] | string,
  options?: ImportOptions,
): Promise<Imported> {
  const imported = await importText(folder, format, content, options)
  expectEveryRow(imported)
  return imported
}

const shape = ({
  tasks,
}: Imported): readonly (readonly [id: string, at: number, gpus: number, ms: number])[] =>
  tasks.map((task) => [task.id, task.at, task.gpus, aloneMsOf(task.work)])

describe('the slurm format', () => {
  const HEADER = 'JobIDRaw|User|Account|Partition|QOS|Submit|Eligible|Start|End|ElapsedRaw|AllocTRES|State'
  const row = (id: string, fields: Readonly<Record<string, string>> = {}): string => {
    const cells: Record<string, string> = {
      JobIDRaw: id,
      User: 'ada',
      Account: 'phys',
      Partition: 'gpu',
      QOS: 'normal',
      Submit: '2024-03-01T10:00:00',
      Eligible: '2024-03-01T10:00:00',
      Start: '2024-03-01T10:05:00',
      End: '2024-03-01T11:05:00',
      ElapsedRaw: '3600',
      AllocTRES: 'billing=8,cpu=8,gres/gpu:a100=2,gres/gpu=2,mem=64G,node=1',
      State: 'COMPLETED',
      ...fields,
    }
    return HEADER.split('|')
      .map((name) => cells[name]!)
      .join('|')
  }
  const jobs = (rows: readonly string[], options?: ImportOptions): Promise<Imported> =>
    run('slurm', [HEADER, ...rows], options)

  it('makes a job a task with its elapsed time as residence and its user as owner', async () => {
    const { tasks, header } = await jobs([row('100')])
    expect(tasks).toEqual([
      {
        id: '100', at: 0, gpus: 2, vram_mib: 0, gpu_mode: 'exclusive', priority: 2, noswap: 0, groups: [],
        owner: 'ada',
        work: { kind: 'duration', ms: 3_600_000 }, alloc: [], cancel_at: null,
      },
    ]) // prettier-ignore
    expect(header.importer).toMatchObject({
      ignored: { cpu: 1, host_memory: 1, partition: 1 },
      synthetic: ['gpu_mode', 'activity'],
    })
  })
  it('reads GPUs from ReqTRES if none are allocated, and sums typed GPUs only', async () => {
    const tres = [
      'gres/gpu:a100=2,gres/gpu:v100=1',
      'gres/gpumem=5G,gres/gpu=4,gres/gpuutil=7',
      'cpu=4',
      'gres/gpu=x',
      'gres/gpu=9999',
    ]
    const { tasks, header } = await jobs(tres.map((AllocTRES, i) => row(String(i), { AllocTRES })))
    expect(tasks.map((task) => task.gpus)).toEqual([3, 4])
    expect(header.dropped).toEqual({ no_gpu: 1, bad_AllocTRES: 2 })
    const asked = await run('slurm', [
      'JobID|Submit|Elapsed|ReqTRES|AllocTRES',
      '7|2024-03-01T10:00:00|1-00:00:01|gres/gpu=8,node=2|',
    ])
    expect(shape(asked)).toEqual([['7', 0, 8, 86_401_000]])
    expect(asked.header.importer?.ignored).toEqual({ several_nodes: 1 })
  })
  it('uses the VRAM of a type in the map', async () => {
    const { tasks } = await jobs([row('1')], { vramMap: new Map([['a100', 40_960]]), reserveMib: 960 })
    expect(tasks[0]!.vram_mib).toBe(40_000)
  })
  it('drops steps, keeps array tasks, and counts jobs that never ran or are incomplete', async () => {
    const imported = await jobs([
      row('200'),
      row('200.batch'),
      row('200.extern'),
      row('200.0'),
      row('201_7'),
      row('202_[8-20%4]', {
        State: 'PENDING',
        Start: 'Unknown',
        End: 'Unknown',
        ElapsedRaw: '0',
        AllocTRES: '',
      }),
      row('203', { State: 'PENDING', Start: 'Unknown', ElapsedRaw: '0' }),
      row('204', { State: 'CANCELLED by 1000', Start: 'None', ElapsedRaw: '0' }),
      row('205', { State: 'RUNNING', End: 'Unknown' }),
      row('206', { Submit: 'Unknown' }),
      row('207', { Submit: '2024-02-31T00:00:00' }),
      row('208', { ElapsedRaw: '' }),
      row('209', { ElapsedRaw: '0' }),
      row('210', { ElapsedRaw: '99999999999999' }),
      row('211', { ElapsedRaw: '10000000000' }),
      row('200', { State: 'PREEMPTED' }),
      row(''),
      `${row('212')}|with|bars`,
    ])
    expect(imported.tasks.map(({ id }) => id)).toEqual(['200', '201_7', '208'])
    expect(imported.header.dropped).toEqual({
      step: 3,
      no_gpu: 1,
      never_started: 2,
      still_running: 1,
      no_Submit: 1,
      bad_Submit: 1,
      zero_duration: 1,
      bad_ElapsedRaw: 1,
      too_long: 1,
      no_JobID: 1,
      wrong_number_of_columns: 1,
      duplicate_id: 1,
    })
  })
  it('falls back to End − Start or Elapsed, and accepts epoch seconds and CRLF', async () => {
    const times = (start: string, end: string): string => `${start}|${end}`
    const runs = ['1709287200|1709287260', times('None', 'Unknown'), times('1709287200', 'Unknown')]
    const rows = [...runs, times('9', '5'), times('9', '9')].map((t, i) => `${i}|1709287100|gres/gpu=1|${t}`)
    const lines = ['JobIDRaw|Submit|AllocTRES|Start|End', ...rows]
    const imported = await run('slurm', lines.join('\r\n'))
    expect(shape(imported)).toEqual([['0', 0, 1, 60_000]])
    expect(imported.header.dropped).toEqual({
      never_started: 1,
      still_running: 1,
      end_before_start: 1,
      zero_duration: 1,
    })
    const elapsed = ['02:03', '01:02:03', '3-00:00:00.5', 'never'].map(
      (text, i) => `${i}|2024-03-01T10:00:00|gres/gpu=1|${text}`,
    )
    const others = await run('slurm', ['JobIDRaw|Submit|AllocTRES|Elapsed', ...elapsed])
    expect(shape(others).map(([, , , ms]) => ms)).toEqual([123_000, 3_723_000, 259_200_500])
    expect(others.header.dropped).toEqual({ bad_Elapsed: 1 })
  })
  it('uses the eligible time as arrival, and QOS, partition or account as priority', async () => {
    const rows = [
      row('1'),
      row('2', { Eligible: '2024-03-01T10:30:00', QOS: 'high' }),
      row('3', { Eligible: 'Unknown', Partition: 'debug' }),
    ]
    const { tasks, header } = await jobs(rows, { priorityMap: parsePriorityMap('high=0,phys=3,debug=1') })
    // prettier-ignore
    expect(tasks.map(({ id, at, priority }) => [id, at, priority]))
      .toEqual([['1', 0, 3], ['3', 0, 1], ['2', 1_800_000, 0]])
    expect(header.importer?.adjusted).toEqual({ submitted_when_eligible: 1 })
  })
  it('names the required columns', async () => {
    await expect(run('slurm', ['User|State', 'ada|COMPLETED'])).rejects.toThrow(
      'slurm.txt:1: has no column Submit, JobIDRaw or JobID, AllocTRES or ReqTRES, ElapsedRaw or ' +
        'Elapsed or End (its columns: User, State)',
    )
  })
})

describe('the helios format', () => {
  const HEADER =
    'job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue'
  const TIMES = '2020-04-01 00:00:05,2020-04-01 00:00:17,2020-04-01 00:10:17'

  it('makes a job a task', async () => {
    const imported = await run('helios', [HEADER, `1,u3,vcA,8,64,2,COMPLETED,${TIMES},600,12`], {
      priorityMap: parsePriorityMap('vcA=1'),
    })
    expect(shape(imported)).toEqual([['1', 0, 8, 600_000]])
    expect(imported.tasks[0]).toMatchObject({ owner: 'u3', priority: 1 })
    expect(imported.header.importer?.ignored).toEqual({ cpu: 1, several_nodes: 1, vc: 1 })
    expect(imported.header.source).toMatchObject({ licence: 'CC-BY-4.0' })
  })
  it('counts rows without GPUs, start or end, or with invalid values', async () => {
    const { tasks, header } = await run('helios', [
      HEADER,
      `a,u,v,0,4,1,COMPLETED,${TIMES},600,1`,
      'b,u,v,1,4,1,CANCELLED,2020-04-01 00:00:05,None,2020-04-01 00:10:17,0,612',
      'c,u,v,1,4,1,COMPLETED,2020-04-01 00:00:05,2020-04-01 00:00:17,2020-04-01 00:00:10,,1',
      'd,u,v,1,4,1,COMPLETED,2020-04-01 00:00:05,2020-04-01 00:00:17,NaT,NaN,1',
      'e,u,v,1.0,4,1,COMPLETED,NaT,2020-04-01 00:00:17,2020-04-01 00:10:17,600.0,1',
      `f,u,v,NaN,4,1,COMPLETED,${TIMES},600,1`,
      `g,u,v,1.0,4,1,FAILED,${TIMES},600.0,1`,
      `h,u,v,1,4,1,FAILED,${TIMES},0,1`,
      `i,u,v,1,4,1,FAILED,${TIMES},-5,1`,
    ])
    expect(tasks.map(({ id }) => id)).toEqual(['g'])
    expect(header.dropped).toEqual({
      no_gpu: 1, never_started: 1, end_before_start: 2, no_end_time: 1, no_submit_time: 1, no_gpu_num: 1,
      zero_duration: 1,
    }) // prettier-ignore
  })
})

describe('the philly format', () => {
  const attempt = (start: string | null, end: string | null, ...gpus: readonly number[]): object => ({
    start_time: start,
    end_time: end,
    detail: gpus.map((count, i) => ({
      ip: `m${i}`,
      gpus: Array.from({ length: count }, (_, gpu) => `gpu${gpu}`),
    })),
  })
  const job = (jobid: unknown, attempts: unknown, more: object = {}): object => ({
    status: 'Pass', vc: 'ee9e8c', jobid, attempts, submitted_time: '2017-10-07 01:19:19', user: 'ce2a6b',
    ...more,
  }) // prettier-ignore
  const one = attempt('2017-10-07 01:20:00', '2017-10-07 02:20:00', 2)

  it('makes a job a task with its attempts joined', async () => {
    const jobs = [
      job('application_1', [one]),
      job('application_2', [one, attempt('2017-10-08 00:00:00', '2017-10-08 00:00:30', 8, 8)], {
        submitted_time: '2017-10-07 01:19:20',
      }),
    ]
    const imported = await run('philly', JSON.stringify(jobs, null, 1))
    // prettier-ignore
    expect(shape(imported))
      .toEqual([['application_1', 0, 2, 3_600_000], ['application_2', 1000, 16, 3_630_000]])
    expect(imported.tasks[0]).toMatchObject({ owner: 'ce2a6b' })
    expect(imported.header.importer).toMatchObject({
      adjusted: { attempts_joined: 1 },
      ignored: { several_nodes: 1, vc: 2 },
    })
  })
  it('counts missing attempts and times, and elements that are not jobs', async () => {
    const jobs = [
      job('a', []),
      job('b', null),
      job('c', [attempt(null, null, 1)]),
      job('d', [attempt('2017-10-07 01:20:00', null, 1), null]),
      job('e', [attempt('2017-10-07 01:20:00', '2017-10-07 01:10:00', 1)]),
      job('f', [attempt('2017-10-07 01:20:00', '2017-10-07 01:20:00', 1)]),
      job('g', [attempt('2017-10-07 01:20:00', '2017-10-07 01:30:00')]),
      job('h', [one, attempt('None', '2017-10-07 01:30:00', 4)]),
      job('i', [one], { submitted_time: 'None' }),
      job('j', [one], { submitted_time: 'yesterday' }),
      job(null, [one]),
      job('h', [one]),
      null,
      [],
    ]
    const text = `${JSON.stringify(jobs).slice(0, -1)}, {"jobid": NaN}]`
    const imported = await run('philly', text)
    expect(imported.tasks.map(({ id, gpus }) => [id, gpus])).toEqual([['h', 2]])
    expect(imported.header).toMatchObject({
      rows: 15,
      dropped: {
        no_attempts: 2,
        no_attempt_with_times: 3,
        zero_duration: 1,
        no_gpu: 1,
        no_submitted_time: 1,
        bad_submitted_time: 1,
        no_jobid: 1,
        duplicate_id: 1,
        not_an_object: 2,
        not_json: 1,
      },
      importer: { adjusted: { attempts_left_out: 1 } },
    })
  })
  it.each([
    ['', 'is empty: needs a JSON array'],
    ['{"jobid": 1}', 'is not a JSON array'],
    ['[{"jobid": "a"}', 'ends in the middle of its array'],
    ['[{"jobid": "a"}] x', 'continues after its array'],
    ['[\n\n{"jobid": "a"},,{}]', 'philly.txt:3: is not JSON: a comma without a value before it'],
  ])('refuses %j', async (text, message) => {
    await expect(run('philly', text)).rejects.toThrow(message)
  })
})

describe('the swf format', () => {
  const line = (fields: Readonly<Record<number, string>>): string =>
    Array.from({ length: 18 }, (_, i) => fields[i + 1] ?? '-1').join('  ')
  const job = (id: string, fields: Readonly<Record<number, string>> = {}): string =>
    line({ 1: id, 2: '100', 3: '5', 4: '60', 5: '16', 11: '1', 12: '6', ...fields })

  it('makes a job a task with GPUs computed from its processors', async () => {
    const imported = await run(
      'swf',
      ['; Version: 2.2', ';', '', job('1'), job('2', { 2: '130.5', 5: '-1', 8: '3' })],
      {
        processorsPerGpu: 8,
      },
    )
    expect(shape(imported)).toEqual([['1', 0, 2, 60_000], ['2', 30_500, 1, 60_000]]) // prettier-ignore
    expect(imported.tasks[0]!.owner).toBe('user-6')
  })
  it('counts jobs without times or processors, parts of jobs, and invalid lines', async () => {
    const { tasks, header } = await run('swf', [
      job('1', { 4: '-1' }),
      job('2', { 4: '0' }),
      job('3', { 5: '-1', 8: '-1' }),
      job('4', { 5: '0' }),
      job('5', { 5: '5000' }),
      job('6', { 11: '3' }),
      job('7', { 2: '-1' }),
      job('8', { 4: 'NaN' }),
      job('-1'),
      job('x'),
      '9 1 2',
      job('10', { 4: '1e300' }),
      job('11', { 7: '2048', 10: '-1', 17: '10', 12: '-1' }),
      job('11'),
    ])
    expect(tasks).toMatchObject([{ id: '11', owner: null }])
    expect(header.dropped).toEqual({
      no_run: 1, zero_duration: 1, no_processors: 2, bad_processors: 1, part_of_a_job: 1, no_submit: 1,
      bad_run: 2, no_job: 1, bad_job: 1,
      wrong_number_of_fields: 1, duplicate_id: 1,
    }) // prettier-ignore
    expect(header.importer?.ignored).toEqual({ host_memory: 1, preceding_job: 1 })
  })
  it('reads the priority from queue or partition', async () => {
    const { tasks } = await run('swf', [job('1', { 15: '4' }), job('2', { 16: '2' })], {
      priorityMap: parsePriorityMap('queue-4=0,partition-2=4'),
    })
    expect(tasks.map(({ priority }) => priority)).toEqual([0, 4])
  })
})

describe('the gavel format', () => {
  const HEADER = 'job_id,vc,model,gpus,total_steps,arrival_s,duration_s_v100,duration_extrapolated'
  it('makes a job a task, and counts extrapolated durations', async () => {
    const imported = await run('gavel', [
      HEADER,
      '0e4a51-0,0e4a51,Transformer (batch size 128),1,95121,0.0,17465.9,0',
      'b,v,m,4,1,30.5,60,1',
      'c,v,m,0,1,30,60,0',
      'd,v,m,1,1,30,0.0,0',
      'e,v,m,1,1,,60,0',
      'f,v,m,1,1,30,nan,0',
    ])
    // prettier-ignore
    expect(shape(imported)).toEqual([['0e4a51-0', 0, 1, 17_465_900], ['b', 30_500, 4, 60_000]])
    expect(imported.tasks[0]!.owner).toBe('0e4a51')
    expect(imported.header.dropped).toEqual({
      no_gpu: 1,
      zero_duration: 1,
      no_arrival_s: 1,
      no_duration_s_v100: 1,
    })
    expect(imported.header.importer?.adjusted).toEqual({ duration_extrapolated: 1 })
  })
})

describe('the csv format', () => {
  it('reads columns named like fields', async () => {
    const { tasks, header } = await run('csv', [
      'id,at,duration,gpus,vram_mib,priority,noswap,exclusive,groups,owner,cancel_at,comment',
      'a,10,60,2,24Gi,P0,yes,0,red; blue;red,ada,70,x',
      'b,12.5,30,,,,,true,,,NaN,y',
    ])
    expect(tasks).toEqual([
      {
        id: 'a', at: 0, gpus: 2, vram_mib: 24_576, gpu_mode: 'shared', priority: 0, noswap: 1, groups: ['red',
        'blue'], owner: 'ada',
        work: { kind: 'duration', ms: 60_000 }, alloc: [], cancel_at: 60_000,
      },
      {
        id: 'b', at: 2500, gpus: 1, vram_mib: 0, gpu_mode: 'exclusive', priority: 2, noswap: 0, groups: [],
        owner: null,
        work: { kind: 'duration', ms: 30_000 }, alloc: [], cancel_at: null,
      },
    ]) // prettier-ignore
    expect(header.importer?.synthetic).toEqual(['activity'])
  })
  it('accepts a column map, another delimiter, another unit, and names of priorities', async () => {
    const { tasks, header } = await run(
      'csv',
      ['Job;at;Submit ms;Runtime;Class', '"x;1";ignored;1500;2000;gold', 'y;ignored;1000;1;lead'],
      {
        columns: parseColumns('id=Job,at=Submit ms,duration=Runtime,priority=Class'),
        delimiter: ';',
        timeUnit: 'ms',
        priorityMap: parsePriorityMap('gold=P1,lead=P4'),
      },
    )
    // prettier-ignore
    expect(tasks.map(({ id, at, priority, work }) => [id, at, priority, aloneMsOf(work)]))
      .toEqual([['y', 0, 4, 1], ['x;1', 500, 1, 2000]])
    expect(header.importer).toMatchObject({
      synthetic: ['gpu_mode', 'activity'],
      options: { columns: { id: 'Job' }, time_unit: 'ms' },
    })
  })
  it('accepts dates with and without time zone, and an end instead of a duration', async () => {
    const imported = await run('csv', [
      'at,start,end',
      '2026-01-31T08:00:00Z,2026-01-31T08:10:00Z,2026-01-31T10:11:00.250+02:00',
      '2026/1/31 8:00:30,,2026/01/31 08:00:40',
      '2026-01-31 08:01:00,None,2026-01-31 08:00:40',
      '2026-13-31 08:01:00,,2026-01-31 08:00:40',
    ])
    // prettier-ignore
    expect(shape(imported)).toEqual([['row-2', 0, 1, 60_250], ['row-3', 30_000, 1, 10_000]])
    expect(imported.header.dropped).toEqual({ no_start: 1, bad_at: 1 })
  })
  it('counts rows by their error', async () => {
    const { tasks, header } = await run('csv', [
      'id,at,duration,gpus,vram_mib,priority,noswap,exclusive,cancel_at',
      'a,1,1,0,,,,,',
      'b,1,1,1.5,,,,,',
      'c,1,1,1,lots,,,,',
      'd,1,1,1,,P9,,,',
      'e,1,1,1,,,maybe,,',
      'f,1,1,1,,,,maybe,',
      'g,5,1,1,,,,,4',
      'h,1,1,1,,,,,soon',
      'i,,1,1,,,,,',
      'j,1,2026-01-31 08:00:00,1,,,,,',
      'k,99999999999999999999,1,1,,,,,',
      `${'l'.repeat(257)},1,1,1,,,,,`,
      'm,1,1,1,,,,,',
    ])
    expect(tasks.map(({ id }) => id)).toEqual(['m'])
    expect(header.dropped).toEqual({
      no_gpu: 1, bad_gpus: 1, bad_vram_mib: 1, bad_priority: 1, bad_noswap: 1, bad_exclusive: 1,
      cancelled_before_submitted: 1, bad_cancel_at: 1,
      no_at: 1, bad_duration: 1, bad_at: 1, long_id: 1,
    }) // prettier-ignore
  })
  it('names missing columns as in the map, and refuses an invalid map', async () => {
    const map = (columns: string): Promise<Imported> =>
      run('csv', ['Job,Submit,duration', 'a,1,1'], { columns: parseColumns(columns) })
    await expect(map('id=Job,at=Submitted,gpus=GPUs')).rejects.toThrow(
      'csv.txt:1: has no column Submitted, GPUs (its columns: Job, Submit, duration)',
    )
    await expect(map('when=Submit')).rejects.toThrow('columns: there is no field when: there are id, at')
    await expect(map('id=Job,owner=Job,at=Submit')).rejects.toThrow(
      'columns: column Job is mapped to id and to owner',
    )
    await expect(run('csv', ['a,b', '1,2'])).rejects.toThrow('has no column at, duration or end')
    expect(() => parseColumns('id=')).toThrow('columns: id= must be FIELD=COLUMN')
  })
})

describe('the trace formats', () => {
  it('are selected by name, and an unknown name gets a suggestion', () => {
    expect(IMPORTERS.map(({ format }) => importerOf(format).format)).toEqual([
      'headroom', 'csv', 'slurm', 'openb', 'philly', 'helios', 'swf', 'tiresias', 'gavel', 'azure-llm',
      'nvidia-smi', 'dcgm',
    ]) // prettier-ignore
    expect(() => importerOf('slrum')).toThrow(
      'format: "slrum" is not a known format: did you mean slurm? Known formats: headroom, csv,',
    )
    expect(() => importerOf('quattro')).toThrow('"quattro" is not a known format. Known formats:')
  })
})
