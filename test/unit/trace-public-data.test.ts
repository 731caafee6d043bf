import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { ImportOptions } from '../../simulator/trace/import/importer.ts'
import { openbFleet } from '../../simulator/trace/import/openb-fleet.ts'
import type { TraceTask } from '../../simulator/trace/trace-format.ts'
import { aloneMsOf, busyMsOf } from '../../simulator/trace/work.ts'
import { expectEveryRow, importFile, type Imported } from '../support/imported.ts'
import { traceData, type TraceData } from '../support/trace-data.ts'
import { readVectors } from '../support/vectors.ts'

const VRAM_MAP = new Map([
  ['G2', 24_576],
  ['G3', 81_920],
])

interface Counts {
  readonly openb: {
    readonly rows: number
    readonly without_gpu: number
    readonly tasks: number
    readonly nodes: number
    readonly gpus: number
    /** Returns the first model of a pod whose VRAM is unknown. */
    readonly first_unknown: string
  }
  readonly tiresias: {
    readonly rows: number
    readonly second: { readonly id: string; readonly at: number; readonly gpus: number; readonly ms: number }
  }
  readonly gavel: { readonly rows: number; readonly days: number; readonly most_gpus: number }
  readonly azure_llm: {
    readonly rows: number
    readonly context_tokens: number
    readonly generated_tokens: number
  }
  readonly swf: {
    readonly rows: number
    readonly second: { readonly id: string; readonly gpus: number; readonly ms: number }
  }
}

const counts = readVectors<Readonly<Record<TraceData['source'], Counts>>>('traces.json')

describe.each(traceData())('the complete $source traces', ({ source, folder }) => {
  const { openb, tiresias, gavel, azure_llm, swf } = counts[source]
  const nodesFile = join(folder, 'openb_node_list_gpu_node.csv')
  const run = (format: string, file: string, options: ImportOptions): Promise<Imported> =>
    importFile(format, join(folder, file), options)

  it.each(['openb_pod_list_default.csv', 'openb_pod_list_gpuspec33.csv', 'openb_pod_list_gpushare60.csv'])(
    'the import of %s keeps every pod with a GPU and counts the others',
    async (file) => {
      const { header, tasks } = await run('openb', file, { nodesFile, vramMap: VRAM_MAP })
      expect(tasks).toHaveLength(openb.tasks)
      expect(header).toMatchObject({ rows: openb.rows, dropped: { no_gpu: openb.without_gpu } })
    },
  )
  it('openb has the arrivals and durations of w1, which was derived from it independently', async () => {
    // Compared as sets, because w1 has another order of pods of one second.
    const shapes = (tasks: readonly TraceTask[]): string[] =>
      tasks
        .map((task) => `${task.at} ${task.gpus} ${aloneMsOf(task.work)}`)
        .sort((a, b) => (a < b ? -1 : a > b ? 1 : 0))
    const pods = await run('openb', 'openb_pod_list_default.csv', { nodesFile, vramMap: VRAM_MAP })
    const w1 = await run('tiresias', 'w1_openb_gpu_pods.csv', { exclusive: true })
    expect(shapes(pods.tasks)).toEqual(shapes(w1.tasks))
  })
  it('openb names the models whose VRAM it needs', async () => {
    await expect(run('openb', 'openb_pod_list_default.csv', { nodesFile })).rejects.toThrow(
      'the VRAM of model G2 and G3 is not known',
    )
    await expect(run('openb', 'openb_pod_list_gpuspec33.csv', {})).rejects.toThrow(
      `the VRAM of model ${openb.first_unknown} is not known`,
    )
  })
  it('openb with serving activity is idle about 66.8 % of the GPU time', async () => {
    const { tasks } = await run('openb', 'openb_pod_list_default.csv', {
      nodesFile,
      vramMap: VRAM_MAP,
      activityModel: 'serving',
    })
    const sum = (of: (task: TraceTask) => number): number =>
      tasks.reduce((total, task) => total + task.gpus * of(task), 0)
    expect(1 - sum((task) => busyMsOf(task.work)) / sum((task) => aloneMsOf(task.work))).toBeCloseTo(0.668, 1)
  })
  it('the openb fleet has every node and GPU of the list', async () => {
    const fleet = await openbFleet(nodesFile, VRAM_MAP)
    expect(fleet.reduce((nodes, entry) => nodes + entry.count, 0)).toBe(openb.nodes)
    expect(fleet.reduce((gpus, entry) => gpus + entry.count * entry.gpus, 0)).toBe(openb.gpus)
  })
  it('the import of a tiresias file keeps every job', async () => {
    const { header, tasks } = await run('tiresias', 'tiresias_60_job.csv', { vramMib: 10_000 })
    expect(tasks).toHaveLength(tiresias.rows)
    expect(header.dropped).toEqual({})
    const { ms, ...second } = tiresias.second
    expect(tasks[1]).toMatchObject({ ...second, work: { kind: 'duration', ms } })
  })
  it('the import of a gavel file has the rows, days and GPUs of the source', async () => {
    const { header, tasks } = await run('gavel', 'gavel_msr_seed0.csv', {})
    expectEveryRow({ header, tasks })
    expect(header.rows).toBe(gavel.rows)
    expect(Math.round(tasks.at(-1)!.at / 86_400_000)).toBe(gavel.days)
    expect(Math.max(...tasks.map(({ gpus }) => gpus))).toBe(gavel.most_gpus)
  })
  it('the import of azure-llm distributes the requests of an hour over eight servers', async () => {
    const { header, tasks } = await run('azure-llm', 'azure_llm_2023_conv.csv', {})
    expect(header).toMatchObject({ rows: azure_llm.rows, dropped: {} })
    expect(tasks).toHaveLength(8)
    const busyMs = tasks.reduce((sum, { work }) => sum + busyMsOf(work), 0)
    // Context tokens at 10,000 a second and generated tokens at 1,000.
    const expectedMs = azure_llm.context_tokens / 10 + azure_llm.generated_tokens
    expect(Math.abs(busyMs / expectedMs - 1)).toBeLessThan(0.001)
    expect(tasks.every(({ work }) => aloneMsOf(work) > 3_400_000)).toBe(true)
  })
  it('the import of a swf file drops no job and counts four processors as a GPU', async () => {
    const { header, tasks } = await run('swf', 'sample_accasim.swf', { processorsPerGpu: 4 })
    expect(header).toMatchObject({ rows: swf.rows, dropped: {} })
    const { ms, ...second } = swf.second
    expect(tasks[1]).toMatchObject({ ...second, work: { kind: 'duration', ms } })
  })
})
