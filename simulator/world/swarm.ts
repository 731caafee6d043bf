/** Draws random faults from a seed: number, kind, place and duration. All are healed by `healAtMs`. */
import { DEFAULT_CONFIG } from '../../controller/model/config.ts'
import type { RandomStream } from '../../controller/ports/random.ts'
import type { DurationMs, Mib } from '../../protocol/units.ts'
import { log } from '../kernel/exact-math.ts'
import type { Fault, FaultKind, Link, Swarm } from '../scenario/fault.ts'
import { LEASE_LOSSES, PERSIST_POINTS } from '../scenario/fault.ts'
import type { Scenario, ScenarioNode } from '../scenario/scenario.ts'
import { seededStream } from '../kernel/seeded-random.ts'

export interface SwarmPlace {
  readonly nodes: readonly ScenarioNode[]
  /** The run lease of the configuration: half of the faults, and of the delays, last longer. */
  readonly runLeaseMs: DurationMs
}

const DIRECTIONS: readonly Link['direction'][] = ['both', 'both', 'to_controller', 'from_controller']
const SHORTEST_MS: DurationMs = 100
const MAX_FAULTS = 100_000
/** Twice what a suspend of a small task may leave. */
const MAX_KEPT_MIB: Mib = 2048
const MAX_BACK_MS: DurationMs = 120_000

/** The faults of a scenario, and the lease times they depend on. */
export type FaultPlan = Pick<Scenario, 'faults' | 'nodes' | 'config' | 'seed'>

/** Faults of the file and of its swarms. */
export function faultsDrawn({ faults, nodes, config, seed }: FaultPlan): readonly Fault[] {
  const runLeaseMs = runLeaseMsOf(config)
  return faults.flatMap((item, index) =>
    item.kind === 'swarm'
      ? drawSwarm(item, { nodes, runLeaseMs }, seededStream(seed, `faults/swarm ${index}`))
      : [item],
  )
}

export function runLeaseMsOf({
  run_lease_seconds: seconds = DEFAULT_CONFIG.run_lease_seconds,
}: Scenario['config']): DurationMs {
  return seconds * 1000
}

/** By instant. */
function drawSwarm(swarm: Swarm, place: SwarmPlace, random: RandomStream): Fault[] {
  const faults: Fault[] = []
  const meanMs = 3_600_000 / swarm.ratePerHour
  let atMs = swarm.fromMs
  while (faults.length < MAX_FAULTS) {
    atMs += Math.max(1, Math.ceil(-log(1 - random()) * meanMs))
    if (atMs >= swarm.untilMs) break
    const kind = oneOf(swarm.kinds, random)
    faults.push(new Draw(place, random, atMs, swarm.healAtMs - atMs).fault(kind))
  }
  return faults
}

class Draw {
  readonly #place: SwarmPlace
  readonly #random: RandomStream
  readonly #atMs: DurationMs
  readonly #leftMs: DurationMs

  constructor(place: SwarmPlace, random: RandomStream, atMs: DurationMs, leftMs: DurationMs) {
    this.#place = place
    this.#random = random
    this.#atMs = atMs
    this.#leftMs = leftMs
  }

  fault(kind: FaultKind): Fault {
    const timed = { atMs: this.#atMs, forMs: this.#length() }
    switch (kind) {
      case 'crash':
      case 'node_disk_lost':
        return { kind, ...timed, node: this.#node().name }
      case 'bounce':
        return { kind, ...timed, forMs: 0, node: this.#node().name }
      case 'partition':
      case 'hold':
        return { kind, ...timed, link: this.#link() }
      case 'delay':
      case 'reorder':
        return { kind, ...timed, link: this.#link(), ms: this.#length(), permille: 50 + this.#below(951) }
      case 'drop':
      case 'duplicate':
        return { kind, ...timed, link: this.#link(), permille: 50 + this.#below(451) }
      case 'restart_broker':
      case 'second_controller':
      case 'store_frozen':
      case 'store_failover':
        return { kind, ...timed }
      case 'lease_lost':
        return { kind, ...timed, how: oneOf(LEASE_LOSSES, this.#random) }
      case 'restart_controller':
        return { kind, ...timed, forMs: Math.min(this.#below(20_000), this.#leftMs) }
      case 'fsync_error':
        return { kind, ...timed, forMs: null }
      case 'crash_controller': {
        const atPoint = this.#below(2) === 0 ? null : oneOf(PERSIST_POINTS, this.#random)
        return { kind, ...timed, forMs: this.#below(2) === 0 ? null : timed.forMs, atPoint }
      }
      case 'store_set_back':
        // Silent losses require an operator to settle them, which a swarm does not have.
        return {
          kind,
          ...timed,
          forMs: this.#below(2) === 0 ? null : timed.forMs,
          to: { backMs: this.#below(Math.min(this.#atMs, MAX_BACK_MS) + 1) },
          loss: 'restored',
        }
      case 'slow_disk':
        return { kind, ...timed, ms: 1 + this.#below(100) }
      case 'disk_full':
        return { kind, ...timed, on: this.#below(3) === 0 ? 'controller' : { node: this.#node().name } }
      case 'gpu_lost': {
        const { name, gpuCount } = this.#node()
        return { kind, ...timed, node: name, gpu: this.#below(gpuCount) }
      }
      case 'slow_swap':
        return { kind, ...timed, node: this.#node().name, factorPermille: 1000 + this.#below(20_000) }
      case 'host_memory_short': {
        const { name, hostSwapMib } = this.#node()
        return { kind, ...timed, node: name, mib: 1 + this.#below(Math.max(1, hostSwapMib)) }
      }
      case 'hook_lies':
        return { kind, ...timed, node: this.#node().name, keepsMib: this.#keepsMib() }
      case 'hook_hangs':
      case 'hook_late':
      case 'hook_errs':
      case 'hook_dies':
        return { kind, ...timed, node: this.#node().name, keepsMib: null }
      case 'clock_drift':
        return { kind, ...timed, node: this.#node().name, ppm: this.#ppm() }
    }
  }

  /** Short ones as well as ones that last longer than a lease; never beyond the healing. */
  #length(): DurationMs {
    const longestMs = this.#below(2) === 0 ? 5_000 : 3 * this.#place.runLeaseMs
    return Math.max(1, Math.min(SHORTEST_MS + this.#below(longestMs), this.#leftMs))
  }

  /** Within the tolerance of the protocol. */
  #ppm(): number {
    const ppm = 1_000 + this.#below(44_000)
    return this.#below(2) === 0 ? ppm : -ppm
  }

  /** All of it, or less than it may keep. */
  #keepsMib(): Mib | null {
    return this.#below(2) === 0 ? null : this.#below(MAX_KEPT_MIB)
  }

  /** One node, some, or all. */
  #link(): Link {
    const { nodes } = this.#place
    const direction = oneOf(DIRECTIONS, this.#random)
    const how = this.#below(4)
    if (how === 0) return { nodes: null, direction }
    if (how === 1)
      return { nodes: nodes.filter(() => this.#below(2) === 0).map((node) => node.name), direction }
    return { nodes: [this.#node().name], direction }
  }

  #node(): ScenarioNode {
    return oneOf(this.#place.nodes, this.#random)
  }

  #below(limit: number): number {
    return Math.floor(this.#random() * limit)
  }
}

function oneOf<T>(items: readonly T[], random: RandomStream): T {
  return items[Math.floor(random() * items.length)] as T
}
