/**
 * Tasks that do not fit on any empty node: their wait is not part of demand, so the result counts them
 * separately.
 */
import { expect, it } from 'vitest'
import { runScenario } from '../../simulator/run/run.ts'
import { loadScenario } from '../../simulator/scenario/load.ts'

function resultOf(vramMib: number) {
  const text = `scenario: fits
version: 1
clock: { until: 1h, drain: false }
fleet: [{ name: a, gpus: 1, gpu: { model: A, vram_mib: ${vramMib} } }]
config: { safety_reserve_mib: 2048 }
workload:
  - { task: { id: small, at: 0s, vram_mib: 4000, work: { kind: phases, phases: [[2h, 0s]] } } }
  - { task: { id: large, at: 0s, vram_mib: 30000, work: { kind: phases, phases: [[2h, 0s]] } } }
  - { task: { id: wide, at: 0s, vram_mib: 100, gpus: 2, work: { kind: phases, phases: [[2h, 0s]] } } }
`
  const { scenario } = loadScenario({ text, baseDir: '.' })
  return runScenario(scenario, { scenarioSha256: null, traceSha256: null, version: 'test' })
}

it('Tasks that are too large for every GPU, or need more GPUs than a node has, are counted', async () => {
  const { result } = await resultOf(24_576)
  expect(result.metrics.tasks).toEqual({
    submitted: 3,
    completed: 0,
    failed: 0,
    unfinished: 3,
    fit_nowhere: 2,
  })
  expect(result.metrics.starvation_percent.total).toBe(0)
})

it('A task that fits once other tasks have ended is not counted', async () => {
  const { result } = await resultOf(32_048 + 2048 - 48)
  expect(result.metrics.tasks.fit_nowhere).toBe(1)
  expect(result.metrics.starvation_percent.queue).toBeGreaterThan(0)
})
