/**
 * Strict first-in-first-out, equal to three independent programs to 3 decimals: the production controller,
 * without any effect of VRAM and swap.
 */
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import type { RunResult } from '../../simulator/results/result.ts'
import { headroom, headroomJson, temporaryFolder } from '../support/headroom-command.ts'
import { traceData } from '../support/trace-data.ts'
import { readVectors } from '../support/vectors.ts'

interface Oracle {
  readonly trace: string
  readonly gpus: number
  readonly jobs: number
  readonly mean_jct: number
  readonly mean_wait?: number
  readonly makespan?: number
}

/** CPU time of the whole process, for the trace that public GPU simulators are measured with. */
const W1_CPU_S_AIM = 1.5

const oracles = readVectors<{
  readonly cases: readonly Oracle[]
  readonly generated_cases: readonly Oracle[]
}>('fifo-oracles.json')

describe.each(traceData())('the fifo oracles of $source traces', ({ source, folder: data }) => {
  const cases = source === 'public' ? oracles.cases : oracles.generated_cases
  const folder = temporaryFolder()
  const importOf = (trace: string): string => join(folder, `${trace}.trace.jsonl`)
  beforeAll(async () => {
    for (const trace of new Set(cases.map((each) => each.trace)))
      await headroom(['trace', 'import', 'tiresias', join(data, trace), '--exclusive', '-o', importOf(trace)])
  })

  it.each(cases)('$trace on $gpus GPUs', async ({ trace, gpus, jobs, mean_jct, mean_wait, makespan }) => {
    const fleet = ['--nodes', '1', '--gpus-per-node', String(gpus), '--vram-mib', '16384']
    const { metrics, timing } = await headroomJson<
      RunResult & { readonly timing: { readonly cpu_s: number } }
    >(['sim', 'replay', importOf(trace), ...fleet, '--overcommit', '0', '--strategy', 'fifo'])
    console.log(
      `${trace} on ${gpus} GPUs: ${timing.cpu_s} s of CPU, ${Math.round(jobs / timing.cpu_s)} tasks ` +
        `a CPU-second (aim: w1 within ${W1_CPU_S_AIM} s)`,
    )
    expect(metrics.tasks).toEqual({ submitted: jobs, completed: jobs, failed: 0, unfinished: 0 })
    expect(metrics.jct_s?.mean).toBeCloseTo(mean_jct, 3)
    if (mean_wait !== undefined) expect(metrics.queue_wait_s?.mean).toBeCloseTo(mean_wait, 2)
    if (makespan !== undefined) expect(metrics.makespan_s).toBe(makespan)
  })
})
