/**
 * What the nodes have reported to the current controller, and whether its store has what they have heard of.
 * Derived from messages and from the process that wrote each part of the history, not from the controller's
 * own verdicts.
 */
import type { Event } from '../../controller/model/event.ts'
import type { Envelope } from '../../protocol/envelope.ts'
import type { Instant } from '../../protocol/units.ts'
import type { LostHistory } from '../world/store-history.ts'
import type { ObservedFaults } from './observed.ts'

/** A part of the history, written by one controller process. */
interface Part {
  readonly process: string
  readonly epoch: number
  readonly fromSeq: number
}

/** Parts of the store since an instant, in order. */
interface Lineage {
  readonly since: Instant
  readonly parts: readonly Part[]
  /**
   * What processes below this number wrote is in the store, or an operator has accepted its loss. A store
   * that goes back to before the acceptance has lost that too.
   */
  readonly settledBelow: number
}

export interface NodeMessage {
  readonly nodeId: string
  readonly message: Envelope
  /** The node has heard of more than the store has, and no operator has accepted the loss. */
  readonly isAhead: boolean
}

export class NodeMessages {
  readonly #faults: ObservedFaults
  readonly #now: () => Instant
  readonly #lineages: Lineage[] = [{ since: -Infinity, parts: [], settledBelow: 0 }]
  /** All processes so far, by number. */
  readonly #processes = new Map<string, number>()
  #lastSeq = 0
  /** The process that began last, if the store has not gone back since. */
  #present: string | null = null
  readonly #heard = new Set<string>()
  readonly #ahead = new Set<string>()
  /** Nodes that have reported their tasks to the current controller. */
  readonly #spoken = new Set<string>()
  readonly #listeners: ((word: NodeMessage) => void)[] = []
  /** Since when most nodes in contact with the current controller are ahead of it; null: they are not. */
  mostAreAheadSince: Instant | null = null

  constructor(faults: ObservedFaults, now: () => Instant) {
    this.#faults = faults
    this.#now = now
    faults.onControllerBegun(() => this.#begun())
    faults.watchBus({
      delivered: (_subject, message, from) => {
        if (from !== null) this.#delivered(message)
      },
    })
  }

  /** Called with each message of a node before the controller handles it. */
  listen(listener: (word: NodeMessage) => void): void {
    this.#listeners.push(listener)
  }

  hasSpoken(nodeId: string): boolean {
    return this.#spoken.has(nodeId)
  }

  /** The controller started after the store last went back. */
  isPresent(process: string | undefined): boolean {
    return process !== undefined && process === this.#present
  }

  saw({ seq, kind, nodeId }: Event): void {
    this.#lastSeq = seq
    if (kind !== 'node_forgotten' || nodeId === null) return
    this.#heard.delete(nodeId)
    this.#ahead.delete(nodeId)
    this.#weigh()
  }

  setBack({ fault, stored, asOf }: LostHistory): void {
    const then = this.#lineages.findLast(({ since }) => since <= asOf)
    const parts = (then?.parts ?? []).filter(({ epoch }) =>
      stored.epochs.some((record) => record.epoch === epoch),
    )
    const settledBelow = fault.loss === 'silent' ? (then?.settledBelow ?? 0) : this.#processes.size
    this.#lineages.push({ since: this.#now(), parts, settledBelow })
    this.#lastSeq = stored.marks.nextEventSeq - 1
    this.#present = null
  }

  #begun(): void {
    const { epoch, process } = this.#faults.controller()
    this.#processes.set(process, this.#processes.size)
    this.#present = process
    this.#lineages.push({
      since: this.#now(),
      parts: [...this.#lineage().parts, { process, epoch, fromSeq: this.#lastSeq + 1 }],
      settledBelow: this.#lineage().settledBelow,
    })
    this.#heard.clear()
    this.#ahead.clear()
    this.#spoken.clear()
    this.mostAreAheadSince = null
  }

  #delivered(message: Envelope): void {
    const { body } = message
    if (body.op !== 'hello' && body.op !== 'heartbeat' && body.op !== 'events') return
    const nodeId = body.node_id
    const isAhead = this.#isAhead(message)
    if (isAhead) {
      this.#heard.add(nodeId)
      this.#ahead.add(nodeId)
    } else if (body.op !== 'events') {
      this.#heard.add(nodeId)
      this.#ahead.delete(nodeId)
    }
    if (body.op !== 'events') this.#spoken.add(nodeId)
    this.#weigh()
    for (const listener of this.#listeners) listener({ nodeId, message, isAhead })
  }

  #weigh(): void {
    if (2 * this.#ahead.size <= this.#heard.size) this.mostAreAheadSince = null
    else this.mostAreAheadSince ??= this.#now()
  }

  #isAhead({ controller, event_seq: eventSeq = 0 }: Envelope): boolean {
    const number = controller === undefined ? undefined : this.#processes.get(controller)
    const { parts, settledBelow } = this.#lineage()
    if (number === undefined || number < settledBelow) return false
    const place = parts.findIndex(({ process }) => process === controller)
    if (place < 0) return true
    const next = parts[place + 1]
    return eventSeq > (next === undefined ? this.#lastSeq : next.fromSeq - 1)
  }

  #lineage(): Lineage {
    const last = this.#lineages.at(-1)
    if (last === undefined) throw new Error('broken invariant: the store has no history')
    return last
  }
}
