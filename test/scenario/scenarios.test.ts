import { globSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { runCheckTask } from '../../services/runs/check-run.ts'
import { runScenario } from '../../simulator/run/run.ts'
import { FAULT_KINDS, type FaultKind } from '../../simulator/scenario/fault.ts'
import { loadScenario } from '../../simulator/scenario/load.ts'
import type { Assertions } from '../../simulator/scenario/assertions.ts'

const NO_IDENTITY = { scenarioSha256: null, traceSha256: null, version: 'test' }
const DAY_MS = 86_400_000
/** The longest takes seven seconds alone, and more when everything runs at once. */
const TIMEOUT_MS = 120_000

const files = globSync('scenarios/**/*.scenario.yaml')
  .sort((a, b) => (a < b ? -1 : 1))
  .filter((file) => assertsSomething(loadScenario(file).scenario.assertions))

describe('a scenario of the library', () => {
  it.each(files)(
    'holds, and decides as recorded: %s',
    async (file) => {
      const { result, violations, expected } = await runCheckTask({ file }, () => {})
      expect(violations).toEqual([])
      expect(
        result?.digest,
        `to accept the change: make accept SCENARIO=… or headroom sim check --update ${file}`,
      ).toBe(expected?.digest)
      for (const kind of ownFaults(file))
        expect(result?.faults?.[kind]?.fired ?? 0, `${kind} has no effect`).toBeGreaterThan(0)
    },
    TIMEOUT_MS,
  )

  it('exists for every kind of fault, in which the fault has an effect', () => {
    const kinds = new Set(files.flatMap(ownFaults))
    expect(FAULT_KINDS.filter((kind) => !kinds.has(kind))).toEqual([])
  })

  it('claims all rules, and at least one event and one final condition', () => {
    for (const file of files) {
      const { always, sometimes, final } = loadScenario(file).scenario.assertions
      expect(always.length, file).toBeGreaterThanOrEqual(9)
      expect(sometimes.length, file).toBeGreaterThan(0)
      expect(final.length, file).toBeGreaterThan(0)
    }
  })
})

it(
  'For days of serving, queue starvation falls and swap starvation rises with overcommit',
  async () => {
    const { scenario } = loadScenario('scenarios/two-week-serving.scenario.yaml')
    const queue: number[] = []
    const swap: number[] = []
    for (const overcommitPercent of [0, 50, 200]) {
      const { result } = await runScenario(scenario, NO_IDENTITY, { overcommitPercent, untilMs: 2 * DAY_MS })
      queue.push(result.metrics.starvation_percent.queue)
      swap.push(result.metrics.starvation_percent.swap)
    }
    expect(queue).toEqual(queue.toSorted((a, b) => b - a))
    expect(swap).toEqual(swap.toSorted((a, b) => a - b))
    expect(queue[0]).toBeGreaterThan(50)
    expect(queue[2]).toBeLessThan(10)
    expect(swap[0]).toBe(0)
    expect(swap[2]).toBeGreaterThan(30)
  },
  TIMEOUT_MS,
)

function assertsSomething({ always, eventually, sometimes, final }: Assertions): boolean {
  return always.length + eventually.length + sometimes.length + final.length > 0
}

/** The kinds of faults of a scenario in scenarios/faults; those of a swarm are drawn. */
function ownFaults(file: string): readonly FaultKind[] {
  if (!file.startsWith('scenarios/faults/')) return []
  return loadScenario(file).scenario.faults.flatMap((fault) => (fault.kind === 'swarm' ? [] : [fault.kind]))
}
