/**
 * `simulating_p99_ratio`: latency of reads and writes during a simulation, relative to the latency without
 * one, on the same controller.
 */
import { LiveCluster } from '../../support/live-cluster.ts'
import type { Reading } from '../targets.ts'
import type { RestMeasure } from './rest-targets.ts'

const ROUNDS = 5
const ROUND_MS = 4_000
const EVERY_MS = 4
const TASK = { name: 'bench', vram_mib: 8192, command: ['true'] }
/** It is longer than the rounds. */
const LONG = `scenario: long
version: 1
seed: 1
clock: { until: 300d, drain: false }
fleet:
  - { count: 40, name: "n-{i}", gpus: 8, gpu: { model: A100-40, vram_mib: 40960 } }
config: { default_vram_overcommit_percent: 60 }
workload:
  - { generate: poisson, rate_per_hour: 240, vram_mib: 16000, duration: { exponential: { mean: 30m } },
      activity: serving }
`

interface Simulation {
  readonly id: string
  readonly state: string
  readonly reason: string | null
}

export async function measureSimulating(): Promise<readonly Reading<RestMeasure>[]> {
  const cluster = await LiveCluster.start()
  try {
    await round(cluster)
    const [alone, beside]: [number[], number[]] = [[], []]
    for (let each = 0; each < ROUNDS; each++) {
      alone.push(...(await round(cluster)))
      const { id } = await cluster.send<Simulation>('POST', '/simulations', { scenario_text: LONG })
      beside.push(...(await round(cluster)))
      const { state, reason } = await cluster.get<Simulation>(`/simulations/${id}`)
      if (state !== 'running') throw new Error(`the simulation is ${state}: ${reason}`)
      await fetch(`${cluster.url}/api/v1/simulations/${id}`, { method: 'DELETE' })
    }
    const at = (took: readonly number[], share: number): number =>
      [...took].sort((a, b) => a - b)[Math.floor(share * took.length)] ?? NaN
    const shown = (took: readonly number[]): string =>
      `p50 ${at(took, 0.5).toFixed(2)} ms, p99 ${at(took, 0.99).toFixed(2)} ms`
    const note =
      `alone ${shown(alone)}; during a run ${shown(beside)}; ${alone.length} and ${beside.length} ` +
      `answers in ${ROUNDS} rounds, in turn`
    return [{ name: 'simulating_p99_ratio', value: at(beside, 0.99) / at(alone, 0.99), note }]
  } finally {
    await cluster.end()
  }
}

/** Latency of each response, ms. */
async function round(cluster: LiveCluster): Promise<number[]> {
  const took: number[] = []
  for (const end = performance.now() + ROUND_MS; performance.now() < end;) {
    const before = performance.now()
    if (took.length % 4 === 0) await cluster.send('POST', '/tasks', TASK)
    else await cluster.get(took.length % 2 === 0 ? '/summary' : '/config')
    took.push(performance.now() - before)
    await new Promise((resolve) => setTimeout(resolve, EVERY_MS))
  }
  return took
}
