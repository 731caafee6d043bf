/** Converts `faults` entries to faults and checks their names against the fleet. */
import type { DurationMs } from '../../protocol/units.ts'
import type { Fault, FaultItem, Link, Machine, Swarm } from './fault.ts'
import { HOOK_FAILURES, HOOK_FAULTS, SWARM_KINDS } from './fault.ts'
import { nearestName } from '../document/nearest-name.ts'
import type { Refuse } from '../document/refusal.ts'
import type { ScenarioNode } from './scenario.ts'
import type { ScenarioDocument } from './schema.ts'
import { permilleOf } from './schema-workload.ts'

type Entry = ScenarioDocument['faults'][number]
type Written = Exclude<Entry, { readonly swarm: unknown }>
/** Reports a problem at a field of the entry. */
type RefuseAt = (keys: readonly (string | number)[], detail: string) => void

const BROKER_AWAY_MS: DurationMs = 1000
/** Names with a special meaning in `faults`. */
const RESERVED = ['controller', 'all']

/** In the order of the file. */
export function faultsOf(
  entries: ScenarioDocument['faults'],
  nodes: readonly ScenarioNode[],
  refuse: Refuse,
): FaultItem[] {
  const names = new Map(nodes.map((node) => [node.name, node]))
  const taken = entries.length > 0 ? RESERVED.find((name) => names.has(name)) : undefined
  if (taken !== undefined)
    refuse(
      ['faults'],
      `a fleet with a node called ${taken} can have no faults: the name means something else there`,
    )
  return entries.map((entry, index) => {
    const refuseAt: RefuseAt = (keys, detail) => refuse(['faults', index, ...keys], detail)
    return 'swarm' in entry ? swarmOf(entry.swarm) : new Builder(names, refuseAt).fault(entry)
  })
}

function swarmOf({
  from,
  until,
  heal_at,
  kinds,
  rate_per_hour,
}: Extract<Entry, { readonly swarm: unknown }>['swarm']): Swarm {
  return {
    kind: 'swarm',
    fromMs: from,
    untilMs: until,
    healAtMs: heal_at ?? until,
    kinds: kinds ?? SWARM_KINDS,
    ratePerHour: rate_per_hour,
  }
}

class Builder {
  readonly #nodes: ReadonlyMap<string, ScenarioNode>
  readonly #refuse: RefuseAt

  constructor(nodes: ReadonlyMap<string, ScenarioNode>, refuse: RefuseAt) {
    this.#nodes = nodes
    this.#refuse = refuse
  }

  fault(entry: Written): Fault {
    const atMs = entry.at
    if ('crash' in entry) return this.#crash(entry)
    if ('bounce' in entry) return { kind: 'bounce', atMs, forMs: 0, node: this.#node(entry.bounce, 'bounce') }
    if ('restart' in entry) return restartOf(entry)
    if ('second_controller' in entry) return { kind: 'second_controller', atMs, forMs: entry.for }
    if ('lease_lost' in entry) return { kind: 'lease_lost', atMs, forMs: entry.for, how: entry.lease_lost }
    if ('store_frozen' in entry) return { kind: 'store_frozen', atMs, forMs: entry.for }
    if ('store_failover' in entry) return { kind: 'store_failover', atMs, forMs: entry.for }
    if ('fsync_error' in entry) return { kind: 'fsync_error', atMs, forMs: null }
    if ('store_set_back' in entry) return setBackOf(entry)
    if ('gpu_lost' in entry) return this.#gpuLost(entry)
    if ('hooks_fail' in entry) return this.#hooksFail(entry)
    return this.#lasting(entry, atMs)
  }

  #lasting(
    entry: Exclude<
      Written,
      | { crash: unknown }
      | { bounce: unknown }
      | { restart: unknown }
      | { second_controller: unknown }
      | { lease_lost: unknown }
      | { store_frozen: unknown }
      | { store_failover: unknown }
      | { fsync_error: unknown }
      | { store_set_back: unknown }
      | { gpu_lost: unknown }
      | { hooks_fail: unknown }
    >,
    atMs: DurationMs,
  ): Fault {
    const forMs = entry.for
    if ('node_disk_lost' in entry)
      return { kind: 'node_disk_lost', atMs, forMs, node: this.#node(entry.node_disk_lost, 'node_disk_lost') }
    if ('partition' in entry)
      return { kind: 'partition', atMs, forMs, link: this.#link(entry.partition, entry.one_way, 'partition') }
    if ('hold' in entry)
      return { kind: 'hold', atMs, forMs, link: this.#link(entry.hold, entry.one_way, 'hold') }
    if ('delay' in entry)
      return {
        kind: 'delay',
        atMs,
        forMs,
        ms: entry.ms,
        permille: shareOf(entry),
        link: this.#link(entry.delay, entry.one_way, 'delay'),
      }
    if ('reorder' in entry)
      return {
        kind: 'reorder',
        atMs,
        forMs,
        ms: entry.ms,
        permille: shareOf(entry),
        link: this.#link(entry.reorder, entry.one_way, 'reorder'),
      }
    if ('drop' in entry)
      return {
        kind: 'drop',
        atMs,
        forMs,
        permille: shareOf(entry),
        link: this.#link(entry.drop, entry.one_way, 'drop'),
      }
    if ('duplicate' in entry)
      return {
        kind: 'duplicate',
        atMs,
        forMs,
        permille: shareOf(entry),
        link: this.#link(entry.duplicate, entry.one_way, 'duplicate'),
      }
    if ('slow_disk' in entry) return { kind: 'slow_disk', atMs, forMs, ms: entry.ms }
    if ('disk_full' in entry)
      return { kind: 'disk_full', atMs, forMs, on: this.#machine(entry.disk_full, 'disk_full') }
    if ('slow_swap' in entry)
      return {
        kind: 'slow_swap',
        atMs,
        forMs,
        node: this.#node(entry.slow_swap, 'slow_swap'),
        factorPermille: permilleOf(entry.factor) ?? 0,
      }
    if ('clock_drift' in entry)
      return {
        kind: 'clock_drift',
        atMs,
        forMs,
        node: this.#node(entry.clock_drift, 'clock_drift'),
        ppm: entry.ppm,
      }
    return {
      kind: 'host_memory_short',
      atMs,
      forMs,
      node: this.#node(entry.host_memory_short, 'host_memory_short'),
      mib: entry.mib,
    }
  }

  #crash({ at: atMs, crash, for: forMs, at_point }: Extract<Written, { crash: unknown }>): Fault {
    if (crash === 'controller') return { kind: 'crash_controller', atMs, forMs, atPoint: at_point }
    return { kind: 'crash', atMs, forMs, node: this.#node(crash, 'crash', ['controller']) }
  }

  #gpuLost({
    at: atMs,
    for: forMs,
    gpu_lost: { node, gpu },
  }: Extract<Written, { gpu_lost: unknown }>): Fault {
    this.#node(node, ['gpu_lost', 'node'])
    const gpuCount = this.#nodes.get(node)?.gpuCount ?? Infinity
    if (gpu >= gpuCount)
      this.#refuse(
        ['gpu_lost', 'gpu'],
        `node ${node} has ${gpuCount} GPUs: indexes go from 0 to ${gpuCount - 1}`,
      )
    return { kind: 'gpu_lost', atMs, forMs, node, gpu }
  }

  #hooksFail({
    at: atMs,
    for: forMs,
    hooks_fail,
    how,
    keeps_mib: keepsMib,
  }: Extract<Written, { hooks_fail: unknown }>): Fault {
    const kind = HOOK_FAULTS[HOOK_FAILURES.indexOf(how)] ?? 'hook_hangs'
    return { kind, atMs, forMs, node: this.#node(hooks_fail, 'hooks_fail'), keepsMib }
  }

  #machine(name: string, field: string): Machine {
    return name === 'controller' ? 'controller' : { node: this.#node(name, field, ['controller']) }
  }

  /** `all`, one node, or two ends of which one is the controller. */
  #link(
    written: string | readonly [string | readonly string[], string | readonly string[]],
    oneWay: boolean,
    field: string,
  ): Link {
    if (typeof written === 'string') {
      if (oneWay)
        this.#refuse(
          ['one_way'],
          `needs to know which way: write ${field}: [controller, ${written}] or [${written}, controller]`,
        )
      return { nodes: written === 'all' ? null : [this.#node(written, field, ['all'])], direction: 'both' }
    }
    const at = written.indexOf('controller')
    if (at < 0 || written[0] === written[1]) {
      this.#refuse([field], 'must name controller and a node (or all): nodes do not speak to each other')
      return { nodes: null, direction: 'both' }
    }
    const other = written[1 - at] as string | readonly string[]
    const direction = !oneWay ? 'both' : at === 0 ? 'from_controller' : 'to_controller'
    if (typeof other === 'string')
      return { nodes: other === 'all' ? null : [this.#node(other, [field, 1 - at], ['all'])], direction }
    return { nodes: other.map((name, i) => this.#node(name, [field, 1 - at, i])), direction }
  }

  #node(
    name: string,
    field: string | readonly (string | number)[],
    alsoAllowed: readonly string[] = [],
  ): string {
    if (this.#nodes.has(name)) return name
    const near = nearestName(name, [...[...this.#nodes.keys()].slice(0, 1000), ...alsoAllowed])
    const detail = `the fleet has no node ${name}${near === null ? '' : `; did you mean ${near}?`}`
    this.#refuse(typeof field === 'string' ? [field] : field, detail)
    return name
  }
}

function restartOf({ at: atMs, restart, for: forMs }: Extract<Written, { restart: unknown }>): Fault {
  if (restart === 'broker') return { kind: 'restart_broker', atMs, forMs: forMs ?? BROKER_AWAY_MS }
  return { kind: 'restart_controller', atMs, forMs: forMs ?? 0 }
}

function setBackOf({
  at: atMs,
  back,
  to,
  loss,
  for: forMs,
}: Extract<Written, { store_set_back: unknown }>): Fault {
  return { kind: 'store_set_back', atMs, forMs, to: to ?? { backMs: back ?? 0 }, loss }
}

function shareOf({ probability }: { readonly probability: number }): number {
  return permilleOf(probability) ?? 0
}
