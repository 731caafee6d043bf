/**
 * Random small worlds for property tests: few GPUs, many tasks that do not fit at once, idle times around the
 * idle period, and operator actions.
 */
import fc from 'fast-check'
import type { ConfigFields } from '../../controller/model/config.ts'
import type { Mib, OnNodeLoss, Priority } from '../../protocol/units.ts'
import type { AllocSteps, ScenarioNode, SimTask } from '../../simulator/scenario/scenario.ts'
import type { Command, WorldCase } from './world-builder.ts'
import { MINUTE, node, phases, QUICK_SWAP, SLOW_SWAP, task } from './world-builder.ts'

export interface WorldFlavour {
  /** Priorities of the tasks. */
  readonly priorities?: readonly Priority[]
  readonly hasGrowth?: boolean
  readonly hasGroups?: boolean
  readonly hasExclusive?: boolean
  readonly hasCommands?: boolean
  /** The operator also holds, releases and swaps tasks, and drains nodes. */
  readonly hasHands?: boolean
  /** One node, many short phases, an idle period of a minute, and slow copies: tasks wake during a swap. */
  readonly isHot?: boolean
  readonly maxTasks?: number
}

export function worldArb(flavour: WorldFlavour = {}): fc.Arbitrary<WorldCase> {
  const configArb = flavour.isHot === true ? hotConfigArb : coldConfigArb
  return fc
    .array(nodeArb(flavour), { minLength: 1, maxLength: flavour.isHot === true ? 1 : 3 })
    .chain((fields) => {
      const nodes = fields.map((make, index) => make(`n${index}`))
      const taskArb = fc.array(taskFieldsArb(nodes, flavour), {
        minLength: 2,
        maxLength: flavour.maxTasks ?? 12,
        size: 'max',
      })
      return fc
        .record({ config: configArb, tasks: taskArb, commands: commandsArb(nodes, flavour) })
        .map(({ config, tasks, commands }) => {
          const made = tasks.map((make, index) => make(`t${index}`)).toSorted((a, b) => a.at - b.at)
          const seen = new Set(made.map((each) => each.request.id))
          const known = commands.filter((command) => !('task' in command) || seen.has(command.task))
          return { nodes, config, tasks: made, commands: known.toSorted((a, b) => a.at - b.at) }
        })
    })
}

function rarely<T>(usual: T, unusual: fc.Arbitrary<T>): fc.Arbitrary<T> {
  return fc.oneof({ weight: 4, arbitrary: fc.constant(usual) }, { weight: 1, arbitrary: unusual })
}

function nodeArb({
  hasGroups = false,
  isHot = false,
}: WorldFlavour): fc.Arbitrary<(name: string) => ScenarioNode> {
  return fc
    .record({
      gpus: fc.integer({ min: 1, max: 3 }),
      vramMib: fc.constantFrom(1000, isHot ? 1200 : 1600),
      groups: hasGroups ? rarely<readonly string[]>([], fc.constantFrom(['g1'], ['g2'])) : fc.constant([]),
      reserveMib: rarely<Mib | null>(null, fc.constantFrom(0, 100, 200)),
      overcommitPercent: rarely<number | null>(null, fc.constantFrom(0, 50, 300, 1000)),
      host: rarely<Mib | null>(isHot ? 100_000 : null, fc.constantFrom(0, 300, 1200)),
      swap: isHot ? fc.constantFrom(SLOW_SWAP, QUICK_SWAP) : fc.constant(QUICK_SWAP),
    })
    .map(
      ({ host, ...fields }) =>
        (name: string) =>
          node({ name, ...fields, ...(host === null ? {} : { hostSwapMib: host }) }),
    )
}

const hotConfigArb: fc.Arbitrary<Partial<ConfigFields>> = fc.record({
  default_vram_overcommit_percent: fc.constantFrom(50, 200, 1000),
  safety_reserve_mib: fc.constantFrom(0, 100),
  idle_swap_out_seconds: fc.constant(60),
  swap_in_aging_seconds: fc.constantFrom(60, 600),
  reservation_after_seconds: fc.constantFrom(60, 300),
  max_residency_seconds: rarely<number | null>(null, fc.constantFrom(30, 120)),
})

const coldConfigArb: fc.Arbitrary<Partial<ConfigFields>> = fc.record({
  default_vram_overcommit_percent: fc.constantFrom(0, 20, 100, 1000),
  safety_reserve_mib: fc.constantFrom(0, 50, 150),
  idle_swap_out_seconds: fc.constantFrom(60, 300),
  swap_in_aging_seconds: fc.constantFrom(120, 600),
  reservation_after_seconds: fc.constantFrom(60, 300),
  max_residency_seconds: rarely<number | null>(null, fc.constantFrom(120, 600)),
  placement_strategy: fc.constantFrom('best_fit', 'spread', 'fifo'),
  queue_aging_seconds: rarely<number | null>(null, fc.constant(300)),
  max_tasks_per_gpu: rarely(64, fc.constantFrom(2, 3)),
})

const COLD = {
  spells: fc.array(
    fc.oneof(
      fc.constantFrom(0, 1, 1000),
      fc.integer({ min: 1, max: 25 }).map((minutes) => minutes * MINUTE),
    ),
    {
      minLength: 2,
      maxLength: 8,
    },
  ),
  at: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 40 * MINUTE })),
}

/** Idle slightly shorter or longer than the idle period, busy for a moment. */
const HOT = {
  spells: fc
    .array(
      fc.tuple(
        fc.oneof(fc.constantFrom(59_999, 60_000, 61_000, 65_000), fc.integer({ min: 1, max: 100_000 })),
        fc.integer({ min: 1, max: 30_000 }),
      ),
      {
        minLength: 4,
        maxLength: 14,
        size: 'max',
      },
    )
    .map((pairs) => pairs.flat()),
  at: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 5 * MINUTE })),
}

function taskFieldsArb(
  nodes: readonly ScenarioNode[],
  flavour: WorldFlavour,
): fc.Arbitrary<(id: string) => SimTask> {
  const mostGpus = nodes.reduce((most, { gpuCount }) => Math.max(most, gpuCount), 1)
  // No task is larger than the smallest GPU less its reserve.
  const mibArb = fc.oneof(
    fc.integer({ min: 50, max: 300 }),
    fc.integer({ min: 300, max: 800 }),
    fc.constant(500),
  )
  const { spells, at } = flavour.isHot === true ? HOT : COLD
  return fc
    .record({
      at,
      gpus: fc.integer({ min: 1, max: mostGpus }),
      vramMib: mibArb,
      mode:
        flavour.hasExclusive === true
          ? rarely<'shared' | 'exclusive'>('shared', fc.constant('exclusive'))
          : fc.constant('shared' as const),
      noswap: rarely<0 | 1>(0, fc.constant(1)),
      priority: fc.constantFrom(...(flavour.priorities ?? [0, 2, 2, 4])),
      groups:
        flavour.hasGroups === true
          ? rarely<readonly string[]>([], fc.constantFrom(['g1'], ['g2'], ['g1', 'g2']))
          : fc.constant([]),
      work: spells.map((ms) => phases(1000, ...ms)),
      alloc:
        flavour.hasGrowth === true
          ? rarely<readonly Mib[]>([], fc.array(fc.integer({ min: 1, max: 300 }), { maxLength: 2 }))
          : fc.constant([]),
      // Requeue tasks are moved when their node is drained.
      ...(flavour.hasHands === true ? { onNodeLoss: fc.constantFrom<OnNodeLoss>('wait', 'requeue') } : {}),
      ...(flavour.hasHands === true
        ? { maxRuntimeSeconds: rarely<number | null>(null, fc.constantFrom(60, 1800)) }
        : {}),
      cancelAfter: rarely<number | null>(null, fc.integer({ min: 0, max: 30 * MINUTE })),
    })
    .map(({ alloc, cancelAfter, ...fields }) => (id: string) => {
      const cancelAt = cancelAfter === null ? null : fields.at + cancelAfter
      return task({
        id,
        ...fields,
        alloc: allocOf(fields.vramMib, fields.mode === 'exclusive' ? [] : alloc),
        cancelAt,
      })
    })
}

function allocOf(vramMib: Mib, steps: readonly Mib[]): AllocSteps {
  let mib = vramMib
  return steps.map((byMib, index) => [(index + 1) * 4 * MINUTE, (mib += byMib)] as const)
}

/**
 * Settings change while tasks run, and are finally no stricter than at the start, so that every task that
 * could start still can.
 */
function commandsArb(
  nodes: readonly ScenarioNode[],
  { hasCommands = false, hasGroups = false, hasHands = false }: WorldFlavour,
): fc.Arbitrary<Command[]> {
  if (!hasCommands) return fc.constant([])
  const at = fc.integer({ min: 0, max: 60 * MINUTE })
  const later = fc.integer({ min: 1, max: 40 * MINUTE })
  const name = fc.constantFrom(...nodes.map((each) => each.name))
  const taskId = fc.integer({ min: 0, max: 11 }).map((index) => `t${index}`)
  const change = fc.oneof(
    fc.record({ priority: fc.constantFrom<Priority>(0, 1, 3) }),
    fc.record({ noswap: fc.constantFrom<0 | 1>(0, 1) }),
    fc.record({ vramMib: fc.integer({ min: 50, max: 800 }) }),
  )
  const config: fc.Arbitrary<Partial<ConfigFields>> = fc.oneof(
    fc.record({ default_vram_overcommit_percent: fc.constantFrom(0, 50, 300) }),
    fc.record({ idle_swap_out_seconds: fc.constantFrom(10, 60, 600) }),
    fc.record({ max_residency_seconds: fc.constantFrom(null, 120) }),
  )
  const cordon = fc.tuple(at, later, name).map(([from, for_, which]): Command[] => [
    { at: from, cordon: which, isCordoned: true },
    { at: from + for_, cordon: which, isCordoned: false },
  ])
  const reserve = fc
    .tuple(at, later, fc.constantFrom(...nodes))
    .map(([from, for_, { name: which, safetyReserveMib }]): Command[] => [
      { at: from, node: which, reserveMib: 400 },
      { at: from + for_, node: which, reserveMib: safetyReserveMib },
    ])
  const group = fc
    .tuple(at, fc.constantFrom('g1', 'g2'), fc.subarray(nodes.map((each) => each.name)))
    .map(([from, id, members]): Command[] => [
      { at: from, group: id, nodes: members },
      {
        at: 100 * MINUTE,
        group: id,
        nodes: nodes.filter((each) => each.groups.includes(id)).map((each) => each.name),
      },
    ])
  // Finally every task is released, and every node accepts tasks again.
  const held = fc.tuple(at, later, taskId).map(([from, for_, which]): Command[] => [
    { at: from, byHand: 'hold', task: which },
    { at: from + for_, byHand: 'release', task: which },
  ])
  const moved = fc
    .tuple(
      fc.integer({ min: 0, max: 20 * MINUTE }),
      taskId,
      fc.constantFrom('swap-out' as const, 'swap-in' as const),
    )
    .map(([from, which, byHand]): Command[] => [{ at: from, byHand, task: which }])
  const drained = fc
    .tuple(at, later, name, fc.constantFrom(null, 0, 5 * MINUTE))
    .map(([from, for_, which, moveAfterMs]): Command[] => [
      { at: from, drain: which, moveAfterMs },
      { at: from + for_, cordon: which, isCordoned: false },
    ])
  const one = fc.oneof(
    fc.tuple(at, config).map(([from, fields]): Command[] => [{ at: from, config: fields }]),
    fc
      .tuple(at, name, fc.constantFrom(null, 0, 500))
      .map(([from, which, percent]): Command[] => [{ at: from, node: which, overcommitPercent: percent }]),
    fc
      .tuple(at, taskId, change)
      .map(([from, id, fields]): Command[] => [{ at: from, task: id, change: fields }]),
    cordon,
    reserve,
    ...(hasGroups ? [group] : []),
    ...(hasHands ? [held, moved, moved, moved, drained] : []),
  )
  return fc.array(one, { maxLength: hasHands ? 16 : 4 }).map((lists) => lists.flat())
}
