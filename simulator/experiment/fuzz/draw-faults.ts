/** Draws faults one by one, so that a shrinker can remove each. Every fault ends by `overMs`. */
import type { DurationMs } from '../../../protocol/units.ts'
import {
  HOOK_FAILURES,
  HOOK_FAULTS,
  LEASE_LOSSES,
  PERSIST_POINTS,
  SUCCESSION_KINDS,
  type FaultKind,
  type HookFault,
} from '../../scenario/fault.ts'
import type { FuzzRandom } from './fuzz-random.ts'
import type { Entry, Value } from './document.ts'
import type { DrawnNode } from './draw-fleet.ts'
import { PAIR_FEATURE, type Features } from './features.ts'

export interface FaultShape {
  readonly kinds: readonly FaultKind[]
  readonly fromMs: DurationMs
  /** No fault begins at or after this time. */
  readonly untilMs: DurationMs
  readonly overMs: DurationMs
}

const MOST_FAULTS = 14
/** Longer than all leases, timeouts and windows. */
const SLOWEST_MS = 90_000

export function drawFaults(dice: FuzzRandom, nodes: readonly DrawnNode[], shape: FaultShape): Entry[] {
  if (shape.kinds.length === 0) return []
  const entries = Array.from({ length: dice.between(1, MOST_FAULTS) }, () => {
    const at = dice.between(shape.fromMs, shape.untilMs - 1)
    return { at, entry: drawFault(new Draw(dice, nodes, at, shape.overMs), dice.oneOf(shape.kinds)) }
  })
  return entries.toSorted((a, b) => a.at - b.at).map(({ at, entry }) => ({ at: `${at}ms`, ...entry }))
}

/** Two controllers, whose leader and store fail now and then. */
export function drawSuccessionFaults(
  dice: FuzzRandom,
  nodes: readonly DrawnNode[],
  { on }: Features,
  shape: Omit<FaultShape, 'kinds'>,
): Entry[] {
  return on.has(PAIR_FEATURE) ? drawFaults(dice, nodes, { ...shape, kinds: SUCCESSION_KINDS }) : []
}

class Draw {
  readonly dice: FuzzRandom
  readonly #nodes: readonly DrawnNode[]
  readonly #mostMs: DurationMs

  constructor(dice: FuzzRandom, nodes: readonly DrawnNode[], at: DurationMs, overMs: DurationMs) {
    this.dice = dice
    this.#nodes = nodes
    this.#mostMs = overMs - at
  }

  node(): DrawnNode {
    return this.dice.oneOf(this.#nodes)
  }

  name(): string {
    return this.node().name
  }

  /** A moment, about a lease, or longer than everything else. */
  lasting(): string {
    const ms = this.dice.oneOf([
      1 + this.dice.below(2_000),
      1 + this.dice.below(40_000),
      1 + this.dice.below(150_000),
    ])
    return `${Math.min(ms, this.#mostMs)}ms`
  }

  link(): Entry {
    const { dice } = this
    const others: Value = dice.chance(40)
      ? 'all'
      : dice.chance(25)
        ? dice.some(this.#nodes, 60).map(({ name }) => name)
        : this.name()
    const end: Value = Array.isArray(others) && others.length === 0 ? 'all' : others
    if (dice.chance(50)) return { link: ['controller', end] }
    return { link: dice.chance(50) ? ['controller', end] : [end, 'controller'], one_way: true }
  }

  share(): number {
    return this.dice.oneOf([0.05, 0.15, 0.3, 0.6, 1])
  }
}

/** The entry, without its instant. */
function drawFault(draw: Draw, kind: FaultKind): Entry {
  const { dice } = draw
  switch (kind) {
    case 'crash':
      return { crash: draw.name(), for: draw.lasting() }
    case 'bounce':
      return { bounce: draw.name() }
    case 'node_disk_lost':
      return { node_disk_lost: draw.name(), for: draw.lasting() }
    case 'partition':
    case 'hold':
      return linked(draw, kind, { for: draw.lasting() })
    case 'delay':
    case 'reorder':
      return linked(draw, kind, {
        ms: dice.oneOf([1 + dice.below(400), 1 + dice.below(5_000), 1 + dice.below(SLOWEST_MS)]),
        probability: draw.share(),
        for: draw.lasting(),
      })
    case 'drop':
    case 'duplicate':
      return linked(draw, kind, { probability: draw.share(), for: draw.lasting() })
    case 'restart_broker':
      return { restart: 'broker', for: draw.lasting() }
    case 'restart_controller':
      return dice.chance(50) ? { restart: 'controller' } : { restart: 'controller', for: draw.lasting() }
    case 'crash_controller':
      return {
        crash: 'controller',
        for: draw.lasting(),
        ...(dice.chance(75) ? { at_point: dice.oneOf(PERSIST_POINTS) } : {}),
      }
    case 'second_controller':
      return { second_controller: true, for: draw.lasting() }
    case 'lease_lost':
      return { lease_lost: dice.oneOf(LEASE_LOSSES), for: draw.lasting() }
    case 'store_frozen':
    case 'store_failover':
      return { [kind]: true, for: draw.lasting() }
    case 'store_set_back':
      return { store_set_back: 'controller', back: '0ms', loss: 'restored', for: draw.lasting() }
    case 'slow_disk':
      return { slow_disk: 'controller', ms: dice.oneOf([30, 500, 5_000]), for: draw.lasting() }
    case 'disk_full':
      return { disk_full: dice.chance(30) ? 'controller' : draw.name(), for: draw.lasting() }
    case 'fsync_error':
      return { fsync_error: 'controller' }
    case 'gpu_lost': {
      const { name, gpus } = draw.node()
      return { gpu_lost: { node: name, gpu: dice.below(gpus) }, for: draw.lasting() }
    }
    case 'slow_swap':
      return { slow_swap: draw.name(), factor: dice.oneOf([2, 10, 100]), for: draw.lasting() }
    case 'host_memory_short':
      return { host_memory_short: draw.name(), mib: dice.oneOf([200, 1000, 5000]), for: draw.lasting() }
    case 'hook_hangs':
    case 'hook_late':
    case 'hook_lies':
    case 'hook_errs':
    case 'hook_dies':
      return hooksFail(draw, kind)
    case 'clock_drift':
      // The protocol tolerates 5%.
      return {
        clock_drift: draw.name(),
        ppm: dice.oneOf([-45_000, -5_000, 5_000, 45_000]),
        for: draw.lasting(),
      }
  }
}

function hooksFail(draw: Draw, kind: HookFault): Entry {
  const { dice } = draw
  const how = HOOK_FAILURES[HOOK_FAULTS.indexOf(kind)] ?? 'hang'
  const keeps =
    how === 'lie' && dice.chance(70) ? { keeps_mib: dice.oneOf([0, 40, 300, 900, 1_100, 3_000]) } : {}
  return { hooks_fail: draw.name(), how, ...keeps, for: draw.lasting() }
}

function linked(draw: Draw, kind: FaultKind, rest: Entry): Entry {
  const { link, ...way } = draw.link()
  return { [kind]: link as Value, ...way, ...rest }
}
