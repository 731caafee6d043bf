/** Faults of controllers in simulated runs: decisions, refusals and answers of operators. */
import { expect, it } from 'vitest'
import { openOperatorClient } from '../../services/runs/operator-client.ts'
import { createChecker } from '../../simulator/check/checker.ts'
import type { Checker } from '../../simulator/check/checker.ts'
import { runScenario } from '../../simulator/run/run.ts'
import { judge } from '../../simulator/experiment/fuzz/judge.ts'
import type { Run } from '../../simulator/run/run.ts'
import { loadScenario } from '../../simulator/scenario/load.ts'

const NO_IDENTITY = { scenarioSha256: null, traceSha256: null, version: 'test' }

it('The decisions of every controller are timed, also of controllers that started later', async () => {
  const text = `
scenario: timed
version: 1
clock: { until: 10m, drain: false }
fleet: [{ name: n, gpu: { vram_mib: 40960 } }]
workload: [{ task: { id: a, at: 1m, vram_mib: 1Gi, run: 9m } },
  { task: { id: b, at: 5m, vram_mib: 1Gi, run: 5m } }]
faults: [{ at: 2m, crash: controller, for: 20s }]
`
  const { scenario } = loadScenario({ text, baseDir: '/nowhere' })
  const decidedAt: number[] = []
  let nowMs = () => 0
  const watch = (world: { readonly nowMs: number }) => {
    nowMs = () => world.nowMs
    return { afterStep: () => {} }
  }
  const stopwatch = { start: () => decidedAt.push(nowMs()), stop: () => {} }
  const { world } = await runScenario(scenario, NO_IDENTITY, { watch, stopwatch })
  expect(world.controllers.begun).toBe(2)
  expect([60_000, 300_000].filter((at) => decidedAt.includes(at))).toEqual([60_000, 300_000])
})

it('A start by a replaced controller is refused, and every rule holds', async () => {
  const { scenario } = loadScenario('scenarios/faults/older-controller.scenario.yaml')
  const { counts, violations } = await judge(scenario, openOperatorClient)
  expect(violations).toEqual([])
  expect([counts['start accepted'], counts['start refused stale_epoch']]).toEqual([1, 1])
})

it('An operator retries while the controller is away, slow or killed, and is answered once', async () => {
  const text = `
scenario: operator
version: 1
clock: { until: 10m, drain: false }
fleet: [{ name: "n{i}", count: 2, gpu: { vram_mib: 40960 } }]
workload: [{ task: { id: t, vram_mib: 8Gi, run: 5m } }]
operator:
  - { at: 65s, put: /api/v1/config, body: { default_vram_overcommit_percent: 10 }, expect: 200 }
  - { at: 3m, put: /api/v1/config, body: { default_vram_overcommit_percent: 20 }, expect: 200 }
  - { at: 4m, get: /api/v1/config, expect: 200 }
  - { at: 5m, put: /api/v1/config, body: { default_vram_overcommit_percent: 30 }, expect: 200 }
faults:
  - { at: 1m, crash: controller, for: 20s }
  - { at: 2m, slow_disk: controller, ms: 3s, for: 90s }
  - { at: 5m, crash: controller, at_point: before_persist }
assert: { always: all }
`
  const { scenario } = loadScenario({ text, baseDir: '/nowhere' })
  const changes: number[] = []
  const play = async (): Promise<Run> => {
    let checker: Checker | null = null
    const run = await runScenario(scenario, NO_IDENTITY, {
      openOperatorClient,
      watch: (world) => {
        checker = createChecker(world, scenario.assertions)
        world.listen((events) => {
          for (const { kind, data } of events)
            if (kind === 'config_changed') changes.push(Number(data['default_vram_overcommit_percent']))
        })
        return checker
      },
    })
    expect((checker as Checker | null)?.finish(run.result.metrics)).toEqual([])
    expect(run.operatorFaults).toEqual([])
    return run
  }
  const { digest } = (await play()).result
  expect(changes).toEqual([10, 20, 30])
  expect((await play()).result.digest).toBe(digest)
})
