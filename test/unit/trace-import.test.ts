import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { importTrace } from '../../simulator/trace/import/import-trace.ts'
import type { ImportOptions } from '../../simulator/trace/import/importer.ts'
import { importerOf } from '../../simulator/trace/formats/importers.ts'
import { openbFleet } from '../../simulator/trace/import/openb-fleet.ts'
import { selectTasks } from '../../simulator/trace/select.ts'
import { TraceError } from '../../simulator/trace/trace-error.ts'
import type { TraceTask } from '../../simulator/trace/trace-format.ts'
import { parsePriorityMap, parseVramMap } from '../../simulator/trace/import/vram-map.ts'
import { aloneMsOf, busyMsOf } from '../../simulator/trace/work.ts'
import { collect, expectEveryRow, importFile, type Imported } from '../support/imported.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'headroom-import-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const PODS =
  'name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,' +
  'scheduled_time'
const JOBS = 'job_id,num_gpu,submit_time,iterations,model_name,duration,interval'
const NODES = 'sn,cpu_milli,memory_mib,gpu,model'

function fileOf(name: string, content: string | Uint8Array): string {
  const file = join(folder, name)
  writeFileSync(file, content)
  return file
}

async function run(format: string, lines: readonly string[], options: ImportOptions = {}): Promise<Imported> {
  const imported = await importFile(format, fileOf(`${format}.csv`, lines.join('\n')), options)
  expectEveryRow(imported)
  return imported
}

const pods = (rows: readonly string[], options?: ImportOptions): ReturnType<typeof run> =>
  run('openb', [PODS, ...rows], options)
const jobs = (rows: readonly string[], options?: ImportOptions): ReturnType<typeof run> =>
  run('tiresias', [JOBS, ...rows], options)

describe('the openb format', () => {
  it('makes a pod that shares a GPU a task', async () => {
    const { tasks } = await pods(['p,6000,12288,1,460,,LS,Running,100,250,100'])
    expect(tasks).toEqual([
      {
        id: 'p',
        at: 0,
        gpus: 1,
        vram_mib: Math.floor((460 * (16_384 - 2048)) / 1000),
        gpu_mode: 'shared',
        priority: 0,
        noswap: 0,
        groups: [],
        owner: null,
        work: { kind: 'duration', ms: 150_000 },
        alloc: [],
        cancel_at: null,
      },
    ])
  })
  it('makes a pod with whole GPUs exclusive', async () => {
    const { tasks } = await pods(['p,0,0,8,1000,,BE,Running,0,9,0', 'q,0,0,1,999,,BE,Running,0,9,0'])
    // prettier-ignore
    expect(tasks.map((task) => [task.gpus, task.gpu_mode, task.vram_mib]))
      .toEqual([[8, 'exclusive', 14_336], [1, 'shared', 14_321]])
  })
  it('uses the smallest VRAM of the models in gpu_spec, and counts ignored columns', async () => {
    const { tasks, header } = await pods([
      'p,1,1,1,500,V100M32|A10|A10,BE,,0,9,',
      'q,0,1,1,500,V100M32,BE,,0,9,',
      'r,0,0,1,500,,BE,,0,9,',
    ])
    expect(tasks.map((task) => task.vram_mib)).toEqual([
      (24_576 - 2048) / 2,
      (32_768 - 2048) / 2,
      (16_384 - 2048) / 2,
    ])
    expect(header.importer?.ignored).toEqual({ gpu_spec: 2, cpu: 1, host_memory: 2 })
  })
  it('uses the smallest VRAM of the fleet for a pod without a model', async () => {
    const nodesFile = fileOf('nodes.csv', [NODES, 'n0,1,1,4,V100M32', 'n1,1,1,8,G2', 'n2,1,1,0,'].join('\n'))
    const { tasks, header } = await pods(['p,0,0,1,500,,BE,,0,9,'], {
      nodesFile,
      vramMap: new Map([['G2', 40_000]]),
    })
    expect(tasks[0]!.vram_mib).toBe((32_768 - 2048) / 2)
    expect(header.importer?.options).toMatchObject({ nodes: 'nodes.csv', vram_map: { G2: 40_000 } })
    expect(JSON.stringify(header)).not.toContain(folder)
  })
  it('uses --vram-mib for a pod without a model and fleet, and another reserve', async () => {
    const { tasks } = await pods(['p,0,0,1,500,,BE,,0,9,'], { vramMib: 40_960, reserveMib: 960 })
    expect(tasks[0]!.vram_mib).toBe(20_000)
    await expect(pods(['p,0,0,1,500,,BE,,0,9,'], { reserveMib: 16_384 })).rejects.toThrow(
      'reserve: 16384 MiB leaves nothing of a GPU of 16384',
    )
  })
  it('refuses a model with unknown VRAM, naming line and model', async () => {
    await expect(pods(['p,0,0,1,500,,BE,,0,9,', 'q,0,0,1,500,T4|G2,BE,,0,9,'])).rejects.toThrow(
      'openb.csv:3: gpu_spec: the VRAM of model G2 is not known: add --vram-map G2=MIB',
    )
    const nodesFile = fileOf('nodes.csv', [NODES, 'n0,1,1,4,G2', 'n1,1,1,8,G3', 'n2,1,1,8,T4'].join('\n'))
    await expect(pods([], { nodesFile })).rejects.toThrow(
      'the VRAM of model G2 and G3 is not known: add --vram-map G2=MIB,G3=MIB',
    )
  })
  it('makes LS and Guaranteed P0 and others P2, unless a priority map says otherwise', async () => {
    const rows = ['LS', 'Guaranteed', 'BE', 'Burstable', ''].map((qos, i) => `p${i},0,0,1,500,,${qos},,0,9,`)
    expect((await pods(rows)).tasks.map((task) => task.priority)).toEqual([0, 0, 2, 2, 2])
    expect(
      (await pods(rows, { priorityMap: parsePriorityMap('BE=P4,LS=1') })).tasks.map((task) => task.priority),
    ).toEqual([1, 0, 4, 2, 2])
  })
  it('counts every dropped row by reason', async () => {
    const { tasks, header } = await pods([
      'cpu-only,1,1,0,0,,LS,,0,9,',
      'nan,1,1,NaN,500,,LS,,0,9,',
      'none,1,1,,500,,LS,,0,9,',
      'negative,1,1,-1,500,,LS,,0,9,',
      'half,1,1,0.5,500,,LS,,0,9,',
      ',1,1,1,500,,LS,,0,9,',
      'milli0,1,1,1,0,,LS,,0,9,',
      'milli1001,1,1,1,1001,,LS,,0,9,',
      'never-created,1,1,1,500,,LS,,,9,',
      'still-there,1,1,1,500,,LS,,0,,',
      'unknown-end,1,1,1,500,,LS,,0,Unknown,',
      'far,1,1,1,500,,LS,,0,1e300,',
      'short,1,1,1',
      'long,1,1,1,500,,LS,,0,9,,,',
      'kept,1,1,1,500,,LS,,0,9,',
      'kept,1,1,1,500,,LS,,5,9,',
    ])
    expect(tasks.map((task) => task.id)).toEqual(['kept'])
    expect(header).toMatchObject({
      rows: 16,
      dropped: {
        no_gpu: 1,
        bad_num_gpu: 2,
        no_num_gpu: 2,
        no_name: 1,
        bad_gpu_milli: 2,
        no_creation_time: 1,
        no_deletion_time: 2,
        bad_deletion_time: 1,
        wrong_number_of_columns: 2,
        duplicate_id: 1,
      },
    })
  })
  it('makes a pod last at least 1 s, and counts the corrections', async () => {
    const { tasks, header } = await pods([
      'zero,0,0,1,500,,LS,,5,5,',
      'backwards,0,0,1,500,,LS,,9,5,',
      'half,0,0,1,500,,LS,,1,1.5,5',
    ])
    // prettier-ignore
    expect(tasks.map((task) => [task.id, aloneMsOf(task.work)]))
      .toEqual([['half', 1000], ['zero', 1000], ['backwards', 1000]])
    expect(header.importer?.adjusted).toEqual({ shorter_than_1s_to_1s: 2, deletion_before_creation_to_1s: 1 })
  })
  it('names all missing columns', async () => {
    await expect(run('openb', ['name,num_gpu,qos', 'a,1,LS'])).rejects.toThrow(
      'openb.csv:1: has no column gpu_milli, gpu_spec, creation_time, deletion_time (its columns: ' +
        'name, num_gpu, qos)',
    )
  })
})

describe('the openb fleet', () => {
  it('groups equal nodes by model and number of GPUs', async () => {
    const rows = ['a,1,1,8,V100M32', 'b,1,1,2,T4', 'c,2,2,8,V100M32', 'd,1,1,4,T4', 'e,1,1,0,']
    expect(await openbFleet(fileOf('n.csv', [NODES, ...rows].join('\r\n')))).toEqual([
      { count: 1, name: 't4-2x-{i}', gpus: 2, gpu: { model: 'T4', vram_mib: 16_384 } },
      { count: 1, name: 't4-4x-{i}', gpus: 4, gpu: { model: 'T4', vram_mib: 16_384 } },
      { count: 2, name: 'v100m32-8x-{i}', gpus: 8, gpu: { model: 'V100M32', vram_mib: 32_768 } },
    ])
  })
  it.each([
    [[NODES, 'a,1,1,8,G2'], 'n.csv: model: the VRAM of model G2 is not known'],
    [[NODES, 'a,1,1,x,T4'], 'n.csv:2: cannot be used: bad_gpu'],
    [[NODES, 'a,1,1,4,'], 'n.csv:2: cannot be used: no_model'],
    [[NODES, 'a,1,1'], 'n.csv: cannot be used: wrong_number_of_columns'],
    [[NODES, 'a,1,1,0,T4'], 'n.csv: has no node with a GPU'],
    [['sn,model', 'a,T4'], 'n.csv:1: has no column gpu'],
  ])('refuses %j', async (lines, message) => {
    await expect(openbFleet(fileOf('n.csv', lines.join('\n')))).rejects.toThrow(message)
  })
})

describe('the tiresias format', () => {
  it('makes a job a task with the given VRAM, or else exclusive', async () => {
    expect((await jobs(['0,8,30,606,vgg19,164.5,30'], { vramMib: 9000 })).tasks[0]).toMatchObject({
      id: '0',
      at: 0,
      gpus: 8,
      vram_mib: 9000,
      gpu_mode: 'shared',
      work: { kind: 'duration', ms: 164_500 },
    })
    const { header, tasks } = await jobs(['0,8,30,606,vgg19,164.5,30'])
    expect(tasks[0]).toMatchObject({ vram_mib: 0, gpu_mode: 'exclusive' })
    expect(header.importer?.synthetic).toEqual(['gpu_mode', 'activity'])
  })
  it('makes tasks exclusive with --exclusive', async () => {
    const { header, tasks } = await jobs(['0,8,30,606,vgg19,164,30'], { exclusive: true })
    expect(tasks[0]).toMatchObject({ gpu_mode: 'exclusive', vram_mib: 0 })
    expect(header.importer?.synthetic).toEqual(['activity'])
  })
  it('counts every dropped row by reason', async () => {
    const { header } = await jobs([
      'a,0,0,1,x,5,0',
      'b,1,0,1,x,0,0',
      'c,1,0,1,x,-5,0',
      'd,1,,1,x,5,0',
      ',1,0,1,x,5,0',
      'e,1,0,1,x,inf,0',
      'f,1,0,1,x,5,0',
    ])
    expect(header.dropped).toEqual({
      no_gpu: 1,
      zero_duration: 1,
      bad_duration: 2,
      no_submit_time: 1,
      no_job_id: 1,
    })
  })
  it('submits jobs of one instant in file order', async () => {
    const { tasks } = await jobs(['10,1,5,1,x,5,0', '9,1,5,1,x,5,0', '2,1,0,1,x,5,0', '1,1,5,1,x,5,0'])
    // prettier-ignore
    expect(tasks.map((task) => [task.id, task.at]))
      .toEqual([['2', 0], ['10', 5000], ['9', 5000], ['1', 5000]])
  })
})

describe('any import', () => {
  const FEW = ['a,1,100,1,x,3600,0', 'b,2,110,1,x,7200,0', 'c,4,150,1,x,3600,0', 'd,8,190,1,x,3600,0']

  it('accepts CRLF, a byte order mark, quotes, blank lines, spaces and gzip', async () => {
    const text = `\u{feff}${JOBS}\r\n"a, ""b""",1,0,1,"x\ny",5,0\r\n\r\n c , 1 ,1,1,x,5,0\r\n`
    const { tasks } = await run('tiresias', [text])
    expect(tasks.map((task) => task.id)).toEqual(['a, "b"', 'c'])
    const zipped = await importFile('tiresias', fileOf('z.csv', gzipSync(text)))
    expect(zipped.tasks).toEqual(tasks)
    expect(zipped.header.source?.sha256).toBe((await run('tiresias', [text])).header.source?.sha256)
  })
  it('refuses broken quotes, an empty file, a duplicate column, and a missing file', async () => {
    await expect(jobs(['a,1,0,1,x,5,0', 'b"x",1,0,1,x,5,0'])).rejects.toThrow(/tiresias\.csv:3: is not CSV: /)
    await expect(jobs(['a,1,0,1,x,5,0', '"b,1,0,1,x,5,0'])).rejects.toThrow(
      /tiresias\.csv:[0-9]+: is not CSV: /,
    )
    await expect(run('tiresias', [''])).rejects.toThrow('is empty: needs columns job_id')
    await expect(run('tiresias', ['job_id,num_gpu,num_gpu,submit_time,duration'])).rejects.toThrow(
      'has column num_gpu twice',
    )
    await expect(importTrace(importerOf('openb'), join(folder, 'none.csv'), {})).rejects.toThrow(
      'none.csv: no such file',
    )
  })
  it('counts time from the first usable row, or from the zero of the source', async () => {
    expect((await jobs(['x,0,0,1,x,1,0', ...FEW])).tasks.map((task) => task.at)).toEqual([
      0, 10_000, 50_000, 90_000,
    ])
    expect((await jobs(FEW, { keepOffset: true })).tasks.map((task) => task.at)).toEqual([
      100_000, 110_000, 150_000, 190_000,
    ])
    await expect(jobs(['a,1,-5,1,x,5,0'], { keepOffset: true })).rejects.toThrow(TraceError)
  })
  it('with a selection equals loading with that selection', async () => {
    const options = { fromMs: 5000, toMs: 80_000, timeScale: 0.1, maxGpus: 2, sample: 0.9, seed: 3 }
    const { tasks, header } = await jobs(FEW, options)
    const loaded: TraceTask[] = []
    for await (const task of selectTasks((await jobs(FEW)).tasks, options)) loaded.push(task)
    expect(tasks).toEqual(loaded)
    expect(header.dropped).toEqual({ outside_window: 2, too_many_gpus: 1 })
    expect(header.importer?.options).toMatchObject({
      from_ms: 5000,
      to_ms: 80_000,
      time_scale: 0.1,
      max_gpus: 2,
      sample: 0.9,
      seed: 3,
    })
  })
  it('draws activity only from the seed and the id of a task, and keeps its residence', async () => {
    const all = await jobs(FEW, { activityModel: 'serving', seed: 5 })
    expect(all.tasks.map((task) => aloneMsOf(task.work))).toEqual([
      3_600_000, 7_200_000, 3_600_000, 3_600_000,
    ])
    expect(
      (await jobs(FEW.slice(2), { activityModel: 'serving', seed: 5 })).tasks.map((task) => task.work),
    ).toEqual(all.tasks.slice(2).map((task) => task.work))
    const busy = (tasks: readonly TraceTask[]): number[] => tasks.map((task) => busyMsOf(task.work))
    expect(busy((await jobs(FEW, { activityModel: 'serving', seed: 6 })).tasks)).not.toEqual(busy(all.tasks))
    expect(all.header.importer?.options).toMatchObject({ activity_model: 'serving', seed: 5 })
  })
  it('can be iterated twice', async () => {
    const trace = await importTrace(importerOf('tiresias'), fileOf('t.csv', [JOBS, ...FEW].join('\n')), {
      activityModel: 'training',
    })
    expect(await collect(trace.tasks)).toEqual(await collect(trace.tasks))
  })
})

describe('a map on the command line', () => {
  it('is parsed', () => {
    // prettier-ignore
    expect([...parseVramMap('G2=24576, G3=81920')]).toEqual([['G2', 24_576], ['G3', 81_920]])
    expect([...parsePriorityMap('LS=0,BE=P4')]).toEqual([['LS', 0], ['BE', 4]]) // prettier-ignore
  })
  it.each(['G2', 'G2=', 'G2=0', 'G2=1.5', 'G2=24GiB', '=5', '', 'G2=1,G2=2'])(
    'is refused: vram map %j',
    (text) => {
      expect(() => parseVramMap(text)).toThrow(/^vram_map: /)
    },
  )
  it.each(['LS=5', 'LS=P', 'LS', 'LS=-1'])('is refused: priority map %j', (text) => {
    expect(() => parsePriorityMap(text)).toThrow(/^priority_map: /)
  })
})
