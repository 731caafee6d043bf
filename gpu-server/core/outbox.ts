/**
 * Events that must arrive: kept and resent, oldest first, until they are durable at the controller (R1, R8).
 * Bounded (R11).
 */
import type { AttemptRef, FinishedEvent, NodeEvent } from '../../protocol/messages.ts'
import { MAX_EVENTS } from '../../protocol/limits.ts'
import { clear } from '../../controller/structures/list-edit.ts'

/** From this number of entries on, obsolete entries are dropped. */
export const COMPACT_FROM_ENTRIES = 4096

/** Conservative estimate of the bytes of entries in one message, to stay below `MAX_MESSAGE_BYTES`. */
const CHUNK_BYTES = 192 * 1024
const ENTRY_BYTES = 200
/** Maximum bytes of one character: an id's, and a detail's, which may be escaped. */
const BYTES_PER_ID_CHARACTER = 3
const BYTES_PER_DETAIL_CHARACTER = 6

/** An event for the outbox, owned by it: the number is 0 until the outbox assigns one. */
export type Outgoing = NodeEvent

export class Outbox {
  /** Never replaced: the storage keeps a reference (`NodeState.outbox`). */
  readonly #entries: NodeEvent[] = []
  /** The entries of the latest acknowledgement. */
  readonly #gone: NodeEvent[] = []
  #next = 1
  #finishedCount = 0
  #compactAt = COMPACT_FROM_ENTRIES

  /** @param kept the unacknowledged ends of an earlier start of this server; they get new numbers */
  constructor(kept: readonly FinishedEvent[]) {
    for (const event of kept) this.add({ ...event })
  }

  get isEmpty(): boolean {
    return this.#entries.length === 0
  }

  /** Number of unacknowledged ends. */
  get finishedCount(): number {
    return this.#finishedCount
  }

  add(event: Outgoing): void {
    const entry: { n: number } = event
    entry.n = this.#next++
    this.#entries.push(event)
    if (event.kind === 'finished') this.#finishedCount += 1
    if (this.#entries.length >= this.#compactAt) this.#compact()
  }

  /** Returns the oldest entries that fit one message. */
  head(): readonly NodeEvent[] {
    if (this.#entries.length === 1) return [this.#entries[0] as NodeEvent]
    let count = 0
    let bytes = 0
    for (const entry of this.#entries) {
      bytes += likelyBytes(entry)
      if (count === MAX_EVENTS || (bytes > CHUNK_BYTES && count > 0)) break
      count += 1
    }
    return this.#entries.slice(0, count)
  }

  /**
   * Removes and returns all entries up to `n`, which are durable at the controller. The list is reused by the
   * next call.
   */
  acknowledge(n: number): readonly NodeEvent[] {
    const gone = this.#gone
    clear(gone)
    this.#takeUpTo(n, gone)
    for (const entry of gone) if (entry.kind === 'finished') this.#finishedCount -= 1
    return gone
  }

  hasFinished(taskId: string, attempt: number): boolean {
    if (this.#finishedCount === 0) return false
    return this.#entries.some(
      (entry) => entry.kind === 'finished' && entry.task_id === taskId && entry.attempt === attempt,
    )
  }

  /** True if an attempt of this task ended by itself and the end is not acknowledged. */
  hasOwnEnd(taskId: string): boolean {
    if (this.#finishedCount === 0) return false
    return this.#entries.some(
      (entry) => entry.kind === 'finished' && entry.task_id === taskId && isOwnEnd(entry),
    )
  }

  finished(): AttemptRef[] {
    const refs: AttemptRef[] = []
    if (this.#finishedCount === 0) return refs
    for (const entry of this.#entries)
      if (entry.kind === 'finished') refs.push({ task_id: entry.task_id, attempt: entry.attempt })
    return refs
  }

  /** Returns the live list, which stays current. */
  entries(): readonly NodeEvent[] {
    return this.#entries
  }

  #takeUpTo(n: number, gone: NodeEvent[]): void {
    const entries = this.#entries
    const [first] = entries
    if (first === undefined || first.n > n) return
    // The usual case: avoids cutting and refilling the list.
    if (entries.length === 1) {
      entries.pop()
      gone.push(first)
      return
    }
    let count = 0
    while (count < entries.length && (entries[count] as NodeEvent).n <= n)
      gone.push(entries[count++] as NodeEvent)
    entries.splice(0, count)
  }

  /** Keeps only the latest entry of each attempt on each topic. Starts and ends are always kept. */
  #compact(): void {
    const later = new Set<string>()
    const kept: NodeEvent[] = []
    for (const entry of this.#entries.toReversed()) {
      const topic = topicOf(entry)
      const key = `${topic}/${entry.attempt}/${entry.task_id}`
      if (topic !== null && later.has(key)) continue
      later.add(key)
      kept.push(entry)
    }
    this.#entries.length = 0
    for (const entry of kept.reverse()) this.#entries.push(entry)
    this.#compactAt = Math.max(COMPACT_FROM_ENTRIES, 2 * this.#entries.length)
  }
}

/** Null: no later entry makes it obsolete. */
function topicOf(entry: NodeEvent): string | null {
  switch (entry.kind) {
    case 'started':
    case 'finished':
      return null
    case 'gpu_wanted':
    case 'gpu_used':
      return 'use'
    case 'reserve_breached':
      return `reserve of GPU ${entry.gpu}`
    case 'residency':
    case 'allocation_wanted':
      return entry.kind
  }
}

function isOwnEnd({ outcome }: FinishedEvent): boolean {
  return outcome === 'completed' || outcome === 'failed'
}

function likelyBytes(entry: NodeEvent): number {
  const detailLength = entry.kind === 'finished' && entry.detail !== null ? entry.detail.length : 0
  return (
    ENTRY_BYTES + BYTES_PER_ID_CHARACTER * entry.task_id.length + BYTES_PER_DETAIL_CHARACTER * detailLength
  )
}
