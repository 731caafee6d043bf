/**
 * The nodes of which the controller's knowledge may be outdated: a fault affects the connection, or did until
 * recently. Rules that compare the controller's decisions with the servers' state do not apply to them.
 */
import type { Clock } from '../../controller/ports/clock.ts'
import type { DurationMs, Instant } from '../../protocol/units.ts'
import type { Fault } from '../scenario/fault.ts'

/** Every node. */
const ALL = null

interface Disturbance {
  readonly nodes: readonly string[] | null
  /** Infinity while it lasts. */
  until: Instant
}

export class Disturbances {
  readonly #clock: Clock
  /** Time after a fault until every node has been in contact again. */
  readonly #settleMs: DurationMs
  /** Time for which attempts on a machine with a lost disk are in doubt (R6). */
  readonly #doubtMs: DurationMs
  readonly #lasting = new Map<Fault, Disturbance>()
  #ebbing: Disturbance[] = []

  constructor(clock: Clock, settleMs: DurationMs, runLeaseMs: DurationMs) {
    this.#clock = clock
    this.#settleMs = settleMs
    this.#doubtMs = Math.ceil(2.1 * runLeaseMs)
  }

  begin(fault: Fault): void {
    this.#lasting.set(fault, { nodes: nodesOf(fault), until: Infinity })
  }

  end(fault: Fault): void {
    const lasting = this.#lasting.get(fault)
    if (lasting === undefined) return
    this.#lasting.delete(fault)
    this.#ebb(lasting.nodes, this.#afterMs(fault))
  }

  /** A controller has started, without contact to any node. */
  begins(): void {
    this.#ebb(ALL, 0)
  }

  isOn(node: string): boolean {
    for (const disturbance of this.#lasting.values()) if (concerns(disturbance, node)) return true
    if (this.#ebbing.length === 0) return false
    const now = this.#clock.now()
    this.#ebbing = this.#ebbing.filter(({ until }) => until > now)
    return this.#ebbing.some((disturbance) => concerns(disturbance, node))
  }

  /** Time of the after-effects: messages in flight, attempts in doubt. */
  #afterMs(fault: Fault): DurationMs {
    if (fault.kind === 'delay' || fault.kind === 'reorder') return fault.ms
    return fault.kind === 'node_disk_lost' ? this.#doubtMs : 0
  }

  #ebb(nodes: readonly string[] | null, lateMs: DurationMs): void {
    this.#ebbing.push({ nodes, until: this.#clock.now() + lateMs + this.#settleMs })
  }
}

function concerns({ nodes }: Disturbance, node: string): boolean {
  return nodes === ALL || nodes.includes(node)
}

function nodesOf(fault: Fault): readonly string[] | null {
  if ('link' in fault) return fault.link.nodes
  if ('node' in fault) return [fault.node]
  return fault.kind === 'disk_full' && fault.on !== 'controller' ? [fault.on.node] : ALL
}
