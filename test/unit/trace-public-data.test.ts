import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { ImportOptions } from '../../simulator/trace/importer.ts'
import { openbFleet } from '../../simulator/trace/openb-fleet.ts'
import type { TraceTask } from '../../simulator/trace/trace-format.ts'
import { aloneMsOf, busyMsOf } from '../../simulator/trace/work.ts'
import { expectEveryRow, importFile, type Imported } from '../support/imported.ts'
import { sharedOrSkip } from '../support/shared-data.ts'

const VRAM_MAP = new Map([
  ['G2', 24_576],
  ['G3', 81_920],
])

describe('public traces, whole', () => {
  const data = sharedOrSkip('data')
  if (data === null) return
  const nodesFile = join(data, 'openb_node_list_gpu_node.csv')
  const run = (format: string, file: string, options: ImportOptions): Promise<Imported> =>
    importFile(format, join(data, file), options)

  it.each(['openb_pod_list_default.csv', 'openb_pod_list_gpuspec33.csv', 'openb_pod_list_gpushare60.csv'])(
    '%s keeps 7,064 tasks and drops 1,088 rows, all for having no GPU',
    async (file) => {
      const { header, tasks } = await run('openb', file, { nodesFile, vramMap: VRAM_MAP })
      expect(tasks).toHaveLength(7064)
      expect(header).toMatchObject({ rows: 8152, dropped: { no_gpu: 1088 } })
    },
  )
  it('openb has the arrivals and durations of w1, which was derived from it independently', async () => {
    // As sets: w1 has pods of one second in an order of its own.
    const shapes = (tasks: readonly TraceTask[]): string[] =>
      tasks
        .map((task) => `${task.at} ${task.gpus} ${aloneMsOf(task.work)}`)
        .sort((a, b) => (a < b ? -1 : a > b ? 1 : 0))
    const openb = await run('openb', 'openb_pod_list_default.csv', { nodesFile, vramMap: VRAM_MAP })
    const w1 = await run('tiresias', 'w1_openb_gpu_pods.csv', { exclusive: true })
    expect(shapes(openb.tasks)).toEqual(shapes(w1.tasks))
  })
  it('openb names the models whose VRAM it needs', async () => {
    await expect(run('openb', 'openb_pod_list_default.csv', { nodesFile })).rejects.toThrow(
      'the VRAM of model G2 and G3 is not known',
    )
    await expect(run('openb', 'openb_pod_list_gpuspec33.csv', {})).rejects.toThrow(
      'the VRAM of model G2 is not known',
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
  it('the openb fleet has 1,213 nodes and 6,212 GPUs', async () => {
    const fleet = await openbFleet(nodesFile, VRAM_MAP)
    expect(fleet.reduce((nodes, entry) => nodes + entry.count, 0)).toBe(1213)
    expect(fleet.reduce((gpus, entry) => gpus + entry.count * entry.gpus, 0)).toBe(6212)
  })
  it('tiresias reads its own 60 jobs', async () => {
    const { header, tasks } = await run('tiresias', 'tiresias_60_job.csv', { vramMib: 10_000 })
    expect(tasks).toHaveLength(60)
    expect(header.dropped).toEqual({})
    expect(tasks[1]).toMatchObject({ id: '1', at: 30_000, gpus: 8, work: { kind: 'duration', ms: 147_000 } })
  })
  it('gavel reads 15,264 jobs over 125 days', async () => {
    const { header, tasks } = await run('gavel', 'gavel_msr_seed0.csv', {})
    expectEveryRow({ header, tasks })
    expect(header.rows).toBe(15_264)
    expect(Math.round(tasks.at(-1)!.at / 86_400_000)).toBe(125)
    expect(Math.max(...tasks.map(({ gpus }) => gpus))).toBe(64)
  })
  it('azure-llm deals 19,366 requests of an hour out to eight servers', async () => {
    const { header, tasks } = await run('azure-llm', 'azure_llm_2023_conv.csv', {})
    expect(header).toMatchObject({ rows: 19_366, dropped: {} })
    expect(tasks).toHaveLength(8)
    const busyMs = tasks.reduce((sum, { work }) => sum + busyMsOf(work), 0)
    // By hand: 22,361,870 context tokens at 10,000 a second and 4,088,665 generated ones at 1,000.
    expect(Math.abs(busyMs / 6_324_852 - 1)).toBeLessThan(0.001)
    expect(tasks.every(({ work }) => aloneMsOf(work) > 3_400_000)).toBe(true)
  })
  it('swf reads 25 jobs, and drops none', async () => {
    const { header, tasks } = await run('swf', 'sample_accasim.swf', { processorsPerGpu: 4 })
    expect(header).toMatchObject({ rows: 25, dropped: {} })
    expect(tasks[1]).toMatchObject({ id: '5414', gpus: 9, work: { kind: 'duration', ms: 26_614_000 } })
  })
})
