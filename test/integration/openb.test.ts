/**
 * The main use case with real input: the complete trace of a public cluster in the production controller, and
 * the effect of overcommit when GPUs are short.
 */
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import type { RunResult } from '../../simulator/results/result.ts'
import { headroomJson, temporaryFolder } from '../support/headroom-command.ts'
import { traceData } from '../support/trace-data.ts'
import { readVectors } from '../support/vectors.ts'

/** The VRAM of G2 and G3 is not published; this is our assumption. */
const VRAM_MAP = 'G2=24576,G3=81920'

interface Counts {
  readonly openb: { readonly rows: number; readonly without_gpu: number; readonly tasks: number }
}

const [{ source, folder: data }] = traceData()

describe(`the openb trace (${source})`, () => {
  const { openb } = readVectors<Readonly<Record<typeof source, Counts>>>('traces.json')[source]
  const pods = join(data, 'openb_pod_list_default.csv')
  const nodes = join(data, 'openb_node_list_gpu_node.csv')
  const folder = temporaryFolder()
  const [asItIs, serving] = [join(folder, 'openb.trace.jsonl'), join(folder, 'openb-serving.trace.jsonl.gz')]
  const importInto = (out: string, ...options: string[]): Promise<unknown> =>
    headroomJson([
      'trace',
      'import',
      'openb',
      pods,
      '--nodes',
      nodes,
      '--vram-map',
      VRAM_MAP,
      '-o',
      out,
      ...options,
    ])
  let told: unknown
  beforeAll(async () => {
    ;[told] = await Promise.all([importInto(asItIs), importInto(serving, '--activity-model', 'serving')])
  })

  it('keeps the pods with a GPU in an import, and counts dropped rows by reason', () => {
    expect(told).toMatchObject({
      tasks: openb.tasks,
      rows: openb.rows,
      dropped: { no_gpu: openb.without_gpu },
      importer: { synthetic: ['vram_mib', 'activity'] },
    })
  })

  it('runs completely on its own nodes without any waiting', async () => {
    const { metrics } = await headroomJson<RunResult>([
      'sim',
      'replay',
      asItIs,
      '--nodes-file',
      nodes,
      '--vram-map',
      VRAM_MAP,
    ])
    expect(metrics.tasks).toEqual({
      submitted: openb.tasks,
      completed: openb.tasks,
      failed: 0,
      unfinished: 0,
    })
    expect(metrics.queue_wait_s).toEqual({ mean: 0, p50: 0, p95: 0, p99: 0 })
    expect(metrics.starvation_percent.queue).toBe(0)
  })

  it('on 64 GPUs, a hundred times as dense: overcommit trades waiting for swapping', async () => {
    const fleet = ['--nodes', '16', '--gpus-per-node', '4', '--vram-mib', '24576']
    const demand = ['--time-scale', '0.01', '--sample', '0.2', '--max-gpus', '1']
    const percentages = [0, 50, 100]
    const runs = await Promise.all(
      percentages.map((percent) =>
        headroomJson<RunResult>([
          'sim',
          'replay',
          serving,
          ...fleet,
          ...demand,
          '--overcommit',
          String(percent),
        ]),
      ),
    )
    const starvation = runs.map(({ metrics }) => metrics.starvation_percent)
    for (const [i, { metrics }] of runs.entries()) console.log(lineOf(percentages[i] as number, metrics))
    const [none, half, full] = starvation as [Starvation, Starvation, Starvation]
    expect(none.queue).toBeGreaterThan(10)
    expect(none.swap).toBe(0)
    expect(half.queue).toBeLessThan(none.queue)
    expect(full.queue).toBeLessThan(half.queue)
    expect(half.swap).toBeGreaterThan(0)
    expect(full.swap).toBeGreaterThan(half.swap)
  })
})

type Starvation = RunResult['metrics']['starvation_percent']

function lineOf(
  percent: number,
  { utilization_percent, starvation_percent: { queue, swap, compute }, swaps_per_hour }: RunResult['metrics'],
): string {
  const [q, s, c] = [queue, swap, compute].map((part) => part.toFixed(1))
  return (
    `${percent} %: utilization ${utilization_percent?.toFixed(2)} %, starvation ${q} queue + ${s} swap ` +
    `+ ${c} compute, ${swaps_per_hour.toFixed(2)} swaps/h`
  )
}
