import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Event } from '../../controller/model/event.ts'
import type { DurationMs } from '../../protocol/units.ts'
import { holdsInTime } from '../support/drawn-cases.ts'
import { worldArb } from '../support/world-arbitraries.ts'
import type { TaskFields, WorldCase, WorldRun } from '../support/world-builder.ts'
import {
  busyFor,
  HOUR,
  idleFor,
  MINUTE,
  node,
  phases,
  play,
  SLOW_SWAP,
  task,
} from '../support/world-builder.ts'
import { expectSound } from '../support/world-soundness.ts'

/** Of the worlds that are counted. */
const SEED = 20_250_613
const FILE = 'test/property/swap-engine.test.ts'

/** Longer than copying all tasks of a GPU in these worlds one by one. */
const COPIES_MS = 30_000
const IDLE_MS = 300_000
const AGING_MS = 600_000

describe('random worlds', () => {
  it('keep every rule, end, and leave nothing behind', async () => {
    await holds(worldArb({ hasExclusive: true }), 35, expectSound)
  })

  it('keep every rule with slow copies and tasks that wake during a copy', async () => {
    await holds(worldArb({ isHot: true, hasGrowth: true, hasCommands: true }), 35, expectSound)
  })

  it('keep every rule when tasks grow', async () => {
    await holds(worldArb({ hasGrowth: true }), 25, expectSound)
  })

  it('keep every rule while an operator changes settings, groups, and tasks', async () => {
    await holds(
      worldArb({ hasGrowth: true, hasGroups: true, hasExclusive: true, hasCommands: true }),
      35,
      expectSound,
    )
  })

  it('keep every rule while an operator holds, releases and swaps tasks, and drains nodes', async () => {
    const flavour = { hasCommands: true, hasHands: true }
    await holds(
      worldArb({ ...flavour, hasGrowth: true, hasGroups: true, hasExclusive: true }),
      35,
      expectSound,
    )
    await holds(worldArb({ ...flavour, isHot: true }), 35, expectSound)
  })

  it('keep every rule if all tasks are P0', async () => {
    await holds(worldArb({ priorities: [0], hasGrowth: true }), 15, expectSound)
    await holds(worldArb({ priorities: [0], isHot: true }), 15, expectSound)
  })

  it('contain the situations that these rules are about', async () => {
    const flavour = { hasGrowth: true, hasCommands: true, hasHands: true }
    const worlds = [
      ...fc.sample(worldArb({ ...flavour, hasGroups: true, hasExclusive: true }), {
        seed: SEED,
        numRuns: 100,
      }),
      ...fc.sample(worldArb({ ...flavour, isHot: true }), { seed: SEED, numRuns: 100 }),
    ]
    const counts = new Map<string, number>()
    const count = (what: string, by: number): void => void counts.set(what, (counts.get(what) ?? 0) + by)
    for (const world of worlds) {
      for (const { kind, data } of (await play(world)).events) {
        count(kind, 1)
        if (data['because'] === 'woke_while_locked') count('woke_while_locked', 1)
        if (kind === 'swap_decided')
          count('closed round', (data['closed_rounds'] as readonly unknown[]).length)
      }
    }
    for (const what of [
      'task_held',
      'task_released',
      'swap_ordered',
      'node_drain',
      'swap_decided',
      'swap_in_decided',
      'growth_granted',
      'growth_refused',
      'woke_while_locked',
      'closed round',
    ]) {
      expect(counts.get(what) ?? 0, what).toBeGreaterThan(5)
    }
  })
})

describe('the choice of victims', () => {
  const sizes = fc.uniqueArray(fc.integer({ min: 10, max: 300 }), { minLength: 2, maxLength: 8 })

  it('swaps out the least VRAM among tasks that were never swapped out', async () => {
    await holds(fc.tuple(sizes, fc.integer({ min: 1, max: 1500 })), 30, async ([mibs, needMib]) => {
      const placedMib = sumOf(mibs)
      const missingMib = Math.min(needMib, placedMib)
      const victims = victimsOf(await play(withIdlers(mibs, placedMib, missingMib)))
      expect(sumOf(victims.map((id) => mibs[Number(id.slice(1))] ?? 0))).toBe(leastCoverMib(mibs, missingMib))
    })
  })

  it('does not depend on the names of tasks and nodes', async () => {
    await holds(fc.tuple(sizes, fc.integer({ min: 1, max: 1500 })), 20, async ([mibs, needMib]) => {
      const missingMib = Math.min(needMib, sumOf(mibs))
      const rename = (id: string): string => `z${9 - Number(id.slice(1))}`
      const plain = victimsOf(await play(withIdlers(mibs, sumOf(mibs), missingMib)))
      const renamed = victimsOf(
        await play(withIdlers(mibs, sumOf(mibs), missingMib, { rename, nodeName: 'other' })),
      )
      expect(new Set(renamed)).toEqual(new Set(plain.map(rename)))
    })
  })

  it('is empty if all candidates together do not cover the demand', async () => {
    await holds(sizes, 20, async (mibs) => {
      const { nodes, tasks } = withIdlers(mibs, sumOf(mibs) + 200, sumOf(mibs))
      const busy = task({ id: 'busy', vramMib: 200, work: busyFor(HOUR) })
      const asks = task({ id: 'asks', vramMib: sumOf(mibs) + 1, at: IDLE_MS + 1000 })
      const { events } = await play(
        { nodes, tasks: [...tasks.slice(0, -1), busy, asks] },
        { untilMs: IDLE_MS + AGING_MS },
      )
      expect(kindsOf(events, 'swap_decided')).toEqual([])
    })
  })

  it('is empty if all candidates together do not cover a return or a growth', async () => {
    const grows = task({ id: 'grows', vramMib: 300, work: busyFor(HOUR), alloc: [[IDLE_MS + MINUTE, 700]] })
    const idle = task({ id: 'idle', vramMib: 300, work: idleFor(HOUR) })
    const busy = task({ id: 'busy', vramMib: 400, work: busyFor(HOUR) })
    const returns = task({ id: 'returns', vramMib: 800, work: phases(1, IDLE_MS + 2 * MINUTE, MINUTE, 0) })
    const nodes = [node({ name: 'n', vramMib: 1000 })]
    const growth = await play(
      { nodes, config: OVERCOMMITTED, tasks: [grows, idle, busy] },
      { untilMs: IDLE_MS + 3 * MINUTE },
    )
    expect(kindsOf(growth.events, 'swap_decided')).toEqual([])
    const late = [idle, busy].map((one) => ({ ...one, at: IDLE_MS + MINUTE }))
    const ret = await play(
      { nodes, config: OVERCOMMITTED, tasks: [returns, ...late] },
      { untilMs: IDLE_MS + 11 * MINUTE },
    )
    expect(kindsOf(ret.events, 'swap_decided').map((event) => event.taskId)).toEqual(['idle'])
  })

  it('leaves out noswap and active tasks, and P0 tasks unless a P0 task is the preemptor', async () => {
    const holders = [
      task({ id: 'noswap', vramMib: 200, noswap: 1, work: idleFor(HOUR) }),
      task({ id: 'active', vramMib: 200 }),
      task({ id: 'p0', vramMib: 200, priority: 0, work: idleFor(HOUR) }),
      task({ id: 'other', vramMib: 200, work: idleFor(HOUR) }),
    ]
    const asking = (priority: 0 | 2, vramMib: number) =>
      task({ id: 'asks', vramMib, priority, at: IDLE_MS + 1000 })
    const nodes = [node({ name: 'n', vramMib: 800 })]
    expect(victimsOf(await play({ nodes, tasks: [...holders, asking(2, 200)] }))).toEqual(['other'])
    expect(victimsOf(await play({ nodes, tasks: [...holders, asking(0, 200)] }))).toEqual(['other'])
    expect(victimsOf(await play({ nodes, tasks: [...holders, asking(0, 400)] }))).toEqual(['other', 'p0'])
    expect(
      victimsOf(await play({ nodes, tasks: [...holders, asking(2, 400)] }, { untilMs: IDLE_MS + AGING_MS })),
    ).toEqual([])
  })

  it('takes no P0 task twice before each P0 task once, among P0 tasks alone', async () => {
    const work = phases(...Array.from({ length: 12 }, () => [1000, 11 * MINUTE]).flat())
    const tasks = [0, 1, 2].map((index) =>
      task({ id: `p${index}`, vramMib: 500, priority: 0, at: index * 4 * MINUTE, work }),
    )
    const { events } = await play({ nodes: [node({ name: 'n', vramMib: 1000 })], tasks })
    const victims = kindsOf(events, 'swap_decided').flatMap(
      (event) => event.data['victims'] as { id: string }[],
    )
    expect(victims.length).toBeGreaterThan(6)
    for (let i = 0; i + 3 <= victims.length; i += 3)
      expect(new Set(victims.slice(i, i + 3).map((victim) => victim.id)).size).toBe(3)
  })
})

describe('the queue of a node', () => {
  /** Busy for 5 s, then idle for twice the idle period, repeatedly. */
  const sometimes = phases(...Array.from({ length: 8 }, () => [5000, 2 * IDLE_MS]).flat())
  const turnMs = 5000 + IDLE_MS + COPIES_MS

  it('returns every task that wants the GPU once victims become idle', async () => {
    const fields = fc.array(
      fc.record({ gpus: fc.constantFrom(1, 1, 2), at: fc.integer({ min: 0, max: 20 * MINUTE }) }),
      {
        minLength: 3,
        maxLength: 7,
      },
    )
    await holds(fields, 30, async (made) => {
      const tasks = made
        .map((one, index) => task({ id: `t${index}`, vramMib: 600, work: sometimes, ...one }))
        .toSorted((a, b) => a.at - b.at)
      const { world, events } = await play({
        nodes: [node({ name: 'n', gpus: 2 })],
        config: OVERCOMMITTED,
        tasks,
      })
      expect(world.collector.unfinished).toBe(0)
      // Each earlier task has its turn, and may first have to become the collector.
      for (const { taskId, data } of kindsOf(events, 'swap_in_decided')) {
        expect(data['waited_ms'], taskId ?? '').toBeLessThanOrEqual(AGING_MS + tasks.length * turnMs)
      }
    })
  })

  it('serves two tasks on both GPUs through the collector, with victims never idle together', async () => {
    // One of the two holders is always active, so both GPUs are never covered at once.
    const halfMs = 2 * IDLE_MS
    const odd = phases(...Array.from({ length: 12 }, () => [halfMs, halfMs]).flat())
    const even = phases(1, halfMs, ...Array.from({ length: 12 }, () => [halfMs, halfMs]).flat())
    const wide = phases(1000, 3 * IDLE_MS, 1000, 3 * IDLE_MS, 1000, 0)
    const tasks = [
      task({ id: 'wide-a', gpus: 2, vramMib: 600, work: wide }),
      task({ id: 'wide-b', gpus: 2, vramMib: 600, at: 1000, work: wide }),
      task({ id: 'odd', vramMib: 600, at: 2000, work: odd }),
      task({ id: 'even', vramMib: 600, at: 3000, work: even }),
    ]
    const collectors = new Set<string>()
    const { world, events } = await play(
      { nodes: [node({ name: 'n', gpus: 2 })], config: OVERCOMMITTED, tasks },
      { onStep: ({ controller }) => collectorsOf(controller.cluster.nodes.values(), collectors) },
    )
    expect(world.collector.unfinished).toBe(0)
    expect(collectors).toContain('wide-a')
    for (const id of ['wide-a', 'wide-b'])
      expect(
        kindsOf(events, 'swap_in_decided').some((event) => event.taskId === id),
        id,
      ).toBe(true)
  })

  it('starts no task on a node that was cordoned or grouped during its swap-outs', async () => {
    const tasks = [
      task({ id: 'idle', vramMib: 600, work: idleFor(HOUR) }),
      task({ id: 'asks', vramMib: 600, at: IDLE_MS, work: busyFor(MINUTE) }),
    ]
    const nodes = [node({ name: 'n', swap: SLOW_SWAP })]
    // In the group no task waits for the VRAM of the node: `idle` would return eagerly, and be swapped out
    // again after `to`.
    const world = { nodes, config: { ...OVERCOMMITTED, eager_swap_in_seconds: null }, tasks }
    const [from, to] = [IDLE_MS + 1000, IDLE_MS + 10 * MINUTE]
    const closed = [
      { at: from, cordon: 'n', isCordoned: true },
      { at: to, cordon: 'n', isCordoned: false },
    ]
    const grouped = [
      { at: from, group: 'g', nodes: ['n'] },
      { at: to, group: 'g', nodes: [] },
    ]
    expect(startOf((await play(world)).events, 'asks')).toBeLessThan(IDLE_MS + MINUTE)
    for (const commands of [closed, grouped])
      expect(startOf((await play({ ...world, commands })).events, 'asks')).toBe(to)
  })

  it('limits every wait for VRAM of active tasks by max_residency_seconds', async () => {
    await holds(
      fc.tuple(fc.integer({ min: 2, max: 5 }), fc.constantFrom(60, 300)),
      12,
      async ([count, seconds]) => {
        const tasks = Array.from({ length: count }, (_, index) =>
          task({ id: `t${index}`, vramMib: 600, at: index * 1000, work: busyFor(HOUR) }),
        )
        const config = { ...OVERCOMMITTED, max_residency_seconds: seconds }
        const { events } = await play({ nodes: [node({ name: 'n' })], config, tasks }, { untilMs: 3 * HOUR })
        const waits = kindsOf(events, 'swap_in_decided').map((event) => Number(event.data['waited_ms']))
        expect(waits.length).toBeGreaterThan(10)
        expect(Math.max(...waits)).toBeLessThanOrEqual(count * (seconds * 1000 + COPIES_MS))
      },
    )
  })

  it('never applies max_residency_seconds to a P0 task', async () => {
    const tasks = [0, 1].map((index) =>
      task({ id: `p${index}`, vramMib: 600, priority: 0, at: index, work: busyFor(HOUR) }),
    )
    const { events } = await play({
      nodes: [node({ name: 'n' })],
      config: { ...OVERCOMMITTED, max_residency_seconds: 60 },
      tasks,
    })
    expect(kindsOf(events, 'swap_decided')).toEqual([])
    expect(startOf(events, 'p1')).toBe(HOUR)
  })

  it('prevents the starvation of a large task behind small ones', async () => {
    const runs = fc.array(fc.integer({ min: 1, max: 20 }), { minLength: 4, maxLength: 30 })
    await holds(fc.tuple(runs, fc.integer({ min: 0, max: 3 })), 20, async ([minutes, everyMinutes]) => {
      const smalls = minutes.map((run, index) =>
        task({
          id: `s${index}`,
          vramMib: 300,
          at: index * (2 + everyMinutes * MINUTE),
          work: busyFor(run * MINUTE),
        }),
      )
      const large = task({ id: 'large', vramMib: 900, at: 1, work: busyFor(MINUTE) })
      const { events } = await play({
        nodes: [node({ name: 'n' })],
        config: { default_vram_overcommit_percent: 0 },
        tasks: [...smalls, large],
      })
      // The reservation begins after 300 s; tasks placed before, three at a time, run to their end.
      expect(startOf(events, 'large')).toBeLessThanOrEqual(1 + IDLE_MS + 3 * 20 * MINUTE)
    })
  })

  it('places a task before a later one of equal or larger size, also after the reserving head', async () => {
    const { events } = await play({
      nodes: [node({ name: 'n' })],
      config: { default_vram_overcommit_percent: 100, idle_swap_out_seconds: 60 },
      tasks: [
        task({ id: 'idle', vramMib: 553, work: phases(10 * MINUTE, HOUR) }),
        task({ id: 'first', vramMib: 447, noswap: 1, work: busyFor(9 * MINUTE) }),
        task({ id: 'large', vramMib: 500, at: 1 }),
        task({ id: 'head', vramMib: 200, at: 2 }),
        task({ id: 'small', vramMib: 88, at: 3 }),
        task({ id: 'later', vramMib: 107, at: 4 }),
      ],
    })
    const placed = kindsOf(events, 'task_placed').filter(({ at }) => at === 20 * MINUTE)
    expect(placed.map(({ taskId }) => taskId)).toEqual(['head', 'small', 'later'])
  })
})

describe('the growth of a task', () => {
  const grower = (fields: Partial<TaskFields> = {}) =>
    task({ id: 'grows', vramMib: 400, work: busyFor(HOUR), alloc: [[MINUTE, 700]], ...fields })
  const nodes = [node({ name: 'n', vramMib: 1000 })]

  it('is granted from free VRAM', async () => {
    const { events } = await play({ nodes, tasks: [grower()] })
    expect(kindsOf(events, 'growth_granted').map(({ at, data }) => [at, data['demand_mib']])).toEqual([
      [MINUTE, 700],
    ])
  })

  it('is granted once an idle neighbour is swapped out', async () => {
    const { events } = await play({
      nodes,
      tasks: [grower(), task({ id: 'idle', vramMib: 400, work: idleFor(HOUR) })],
    })
    expect(victimsOf({ events })).toEqual(['idle'])
    expect(kindsOf(events, 'growth_granted')[0]?.data['demand_mib']).toBe(700)
  })

  it('of a noswap task is refused in time, also if a neighbour could then not return', async () => {
    for (const neighbour of [busyFor(2 * HOUR), idleFor(2 * HOUR)]) {
      const { events } = await play({
        nodes,
        tasks: [grower({ noswap: 1 }), task({ id: 'neighbour', vramMib: 400, work: neighbour })],
      })
      expect(kindsOf(events, 'growth_refused').map(({ at }) => at)).toEqual([MINUTE + IDLE_MS])
      expect(kindsOf(events, 'growth_granted')).toEqual([])
    }
  })

  it('that is impossible is refused without a swap-out', async () => {
    const noswap = task({ id: 'noswap', vramMib: 400, noswap: 1, work: busyFor(2 * HOUR) })
    const { events } = await play({ nodes, tasks: [grower(), noswap] })
    expect(kindsOf(events, 'growth_refused').map(({ data }) => data['reason'])).toEqual([
      'RESIDENCY_IMPOSSIBLE',
    ])
    expect(kindsOf(events, 'task_residency')).toEqual([])
  })

  it('that waits too long becomes a return with the larger demand', async () => {
    const neighbour = task({ id: 'neighbour', vramMib: 400, work: busyFor(20 * MINUTE) })
    const { world, events } = await play({ nodes, tasks: [grower(), neighbour] })
    const own = events
      .filter((event) => event.taskId === 'grows')
      .map(({ kind, data }) => `${kind} ${data['residency'] ?? data['demand_mib'] ?? data['mib'] ?? ''}`)
    expect(own.slice(3, -1)).toEqual([
      'task_residency swapping_out',
      'task_residency swapped_out',
      'growth_granted 700',
      'swap_in_decided 700',
      'task_residency swapping_in',
      'task_residency resident',
    ])
    expect(world.collector.unfinished).toBe(0)
  })

  it('is kept when its task is swapped out meanwhile: the task returns for it', async () => {
    const work = phases(1000, 2 * HOUR)
    const asks = task({ id: 'asks', vramMib: 600, at: IDLE_MS + 2000, work: busyFor(10 * MINUTE) })
    const neighbour = task({ id: 'neighbour', vramMib: 400, work: busyFor(2 * HOUR) })
    const late = grower({ work, alloc: [[IDLE_MS + 1500, 600]] })
    const { events } = await play({
      nodes,
      config: { default_vram_overcommit_percent: 100 },
      tasks: [late, neighbour, asks],
    })
    expect(victimsOf({ events })[0]).toBe('grows')
    expect(kindsOf(events, 'growth_granted').map(({ data }) => data['demand_mib'])).toEqual([600])
  })
})

const OVERCOMMITTED = { default_vram_overcommit_percent: 1000 }

/**
 * One GPU full of idle tasks `t0`, `t1`, …, and one task that arrives when all have been idle for the idle
 * period and lacks `missingMib`.
 */
function withIdlers(
  mibs: readonly number[],
  vramMib: number,
  missingMib: number,
  { rename = (id: string) => id, nodeName = 'n' } = {},
): WorldCase {
  const idlers = mibs.map((mib, index) =>
    task({ id: rename(`t${index}`), vramMib: mib, at: index, work: idleFor(2 * HOUR) }),
  )
  const asks = task({ id: 'asks', vramMib: missingMib, at: IDLE_MS + 1000, work: busyFor(MINUTE) })
  return { nodes: [node({ name: nodeName, vramMib })], config: OVERCOMMITTED, tasks: [...idlers, asks] }
}

function kindsOf(events: readonly Event[], kind: Event['kind']): Event[] {
  return events.filter((event) => event.kind === kind)
}

/** Of the first decision. */
function victimsOf({ events }: Pick<WorldRun, 'events'>): string[] {
  const [first] = kindsOf(events, 'swap_decided')
  return ((first?.data['victims'] ?? []) as { readonly id: string }[]).map((victim) => victim.id)
}

function startOf(events: readonly Event[], taskId: string): DurationMs {
  return kindsOf(events, 'task_started').find((event) => event.taskId === taskId)?.at ?? Infinity
}

function collectorsOf(
  nodes: Iterable<{
    readonly collector: { readonly task: { readonly spec: { readonly id: string } } } | null
  }>,
  seen: Set<string>,
): void {
  for (const { collector } of nodes) if (collector !== null) seen.add(collector.task.spec.id)
}

function sumOf(numbers: readonly number[]): number {
  return numbers.reduce((sum, number) => sum + number, 0)
}

/** Smallest sum of some of the sizes that is at least `missingMib`, from the set of all sums. */
function leastCoverMib(mibs: readonly number[], missingMib: number): number {
  let sums = new Set([0])
  for (const mib of mibs) sums = new Set([...sums, ...[...sums].map((sum) => sum + mib)])
  return Math.min(...[...sums].filter((sum) => sum >= missingMib))
}

function holds<T>(
  arb: fc.Arbitrary<T>,
  numRuns: number,
  claim: (value: T) => Promise<unknown>,
): Promise<void> {
  const property = fc.asyncProperty(arb, async (value) => void (await claim(value)))
  return holdsInTime(property, numRuns, FILE)
}
