/**
 * Simulated and live controllers decide alike about refused starts: heartbeats without changes have no effect
 * here either (safety 5).
 */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Event } from '../../controller/model/event.ts'
import type { ScenarioNode } from '../../simulator/scenario/scenario.ts'
import { holdsInTime } from '../support/drawn-cases.ts'
import { worldArb } from '../support/world-arbitraries.ts'
import type { PlayOptions, WorldCase } from '../support/world-builder.ts'
import { busyFor, HOUR, MINUTE, node, play, task } from '../support/world-builder.ts'
import type { RefusalPlan, Refused } from '../support/refusing-bus.ts'
import { refusingBus, START_REFUSALS } from '../support/refusing-bus.ts'

/** Among its cases are all reasons to refuse a start. */
const SEED = 20_261_123
const FILE = 'test/property/refusals.test.ts'
const UNTIL_MS = 3 * HOUR

const planArb: fc.Arbitrary<RefusalPlan> = fc.record({
  seed: fc.nat(1_000_000),
  permille: fc.constantFrom(0, 100, 300, 600),
  causePermille: fc.constantFrom(0, 200),
  areLimitsHidden: fc.boolean(),
})

/** Any world, with an attempt limit on some of its servers. */
const caseArb = fc
  .tuple(
    worldArb({ hasGrowth: true, hasGroups: true, hasExclusive: true, hasCommands: true, maxTasks: 25 }),
    fc.array(fc.nat(4)),
  )
  .map(([world, limits]): WorldCase => ({
    ...world,
    nodes: world.nodes.map((each, index) => withLimit(each, limits[index] ?? 0)),
  }))

function withLimit(each: ScenarioNode, maxAttempts: number): ScenarioNode {
  return maxAttempts === 0 ? each : { ...each, maxAttempts }
}

/** The same world with and without enacted heartbeats. */
async function bothWays(world: WorldCase, plan: RefusalPlan | null, options: PlayOptions = {}) {
  const runs: { readonly events: readonly Event[]; readonly refused: readonly Refused[] }[] = []
  for (const areHeartbeatsEnacted of [false, true]) {
    const refused: Refused[] = []
    const bus: PlayOptions =
      plan === null ? {} : { controllerBus: (inner) => refusingBus(inner, plan, refused) }
    const { events } = await play(world, { untilMs: UNTIL_MS, ...options, areHeartbeatsEnacted, ...bus })
    runs.push({ events, refused })
  }
  const [plain, enacted] = runs as [(typeof runs)[0], (typeof runs)[0]]
  expect(enacted.events).toEqual(plain.events)
  return plain
}

describe('runs with and without enacted heartbeats', () => {
  it('have equal events, whatever the reason of refused starts', async () => {
    const seen = new Set<string>()
    const property = fc.asyncProperty(caseArb, planArb, async (world, plan) => {
      const { events, refused } = await bothWays(world, plan)
      for (const [, , reason] of refused) seen.add(reason)
      for (const { kind, data } of events)
        if (kind === 'task_returned') seen.add(`returned ${String(data['reason'])}`)
    })
    await holdsInTime(property, 30, FILE, { seed: SEED, endOnFailure: true })
    for (const reason of START_REFUSALS) expect(seen, reason).toContain(reason)
    expect(seen).toContain('returned node_full')
  })

  it('never send a server more attempts than its declared limit', async () => {
    const property = fc.asyncProperty(caseArb, async (world) => {
      const { events } = await bothWays(world, null)
      expect(
        events.filter(({ kind, data }) => kind === 'task_returned' && data['reason'] === 'node_full'),
      ).toEqual([])
    })
    await holdsInTime(property, 20, FILE, { endOnFailure: true })
  })

  it.each([
    ['as it says', null],
    ['without saying so', { seed: 1, permille: 50, causePermille: 0, areLimitsHidden: true }],
  ] as const)('run all of 1,300 tasks on a node that runs 1,024 attempts %s', async (_, plan) => {
    const tasks = Array.from({ length: 1_300 }, (__, n) =>
      task({ id: `t${n}`, at: 10 * n, vramMib: 10, work: busyFor(MINUTE) }),
    )
    const world: WorldCase = {
      nodes: [node({ name: 'n', gpus: 8, vramMib: 81_920 })],
      config: { max_tasks_per_gpu: 160, placement_strategy: 'fifo' },
      tasks,
    }
    const { events } = await bothWays(world, plan, { untilMs: 10 * HOUR })
    expect(
      events.filter(({ kind, data }) => kind === 'task_finished' && data['state'] === 'completed'),
    ).toHaveLength(tasks.length)
  })
})
