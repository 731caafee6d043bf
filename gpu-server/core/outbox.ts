/**
 * Events that must arrive: kept and resent, oldest first, until the controller has them durably (R1, R8).
 * Bounded (R11).
 */
import type { AttemptRef, FinishedEvent, NodeEvent } from '../../protocol/messages.ts'
import { MAX_EVENTS } from '../../protocol/schema.ts'
import { empty } from '../../controller/domain/list-edit.ts'

/** From so many entries on, those that a later one makes obsolete are dropped. */
export const COMPACT_FROM_ENTRIES = 4096

/**
 * What entries of one message may take, by a careful guess, so that it stays below the longest message
 * (`MAX_MESSAGE_BYTES`).
 */
const CHUNK_BYTES = 192 * 1024
const ENTRY_BYTES = 200
/** A character of an id takes at most so many; one of a detail may be escaped. */
const BYTES_PER_ID_CHARACTER = 3
const BYTES_PER_DETAIL_CHARACTER = 6

/** An event on its way into the outbox, made for it alone: its number is 0 until the outbox gives it one. */
export type Outgoing = NodeEvent

export class Outbox {
  /** One array for life: the storage keeps it (`NodeState.outbox`). */
  readonly #entries: NodeEvent[] = []
  /** What was acknowledged last. */
  readonly #gone: NodeEvent[] = []
  #next = 1
  #finishedCount = 0
  #compactAt = COMPACT_FROM_ENTRIES

  /** @param kept what an earlier start of this server left unacknowledged; they get new numbers. */
  constructor(kept: readonly FinishedEvent[]) {
    for (const event of kept) this.add({ ...event })
  }

  get isEmpty(): boolean {
    return this.#entries.length === 0
  }

  /** How many attempts have ended and are not acknowledged. */
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

  /** The oldest entries, at most a message full. */
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
   * Everything up to `n` is durable at the controller; answers what that was. The list is lent until the next
   * call.
   */
  acknowledge(n: number): readonly NodeEvent[] {
    const gone = this.#gone
    empty(gone)
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

  /** An attempt of this task has ended by itself, and the controller has not acknowledged it. */
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

  /** The live list: whoever keeps it keeps what is true now. */
  entries(): readonly NodeEvent[] {
    return this.#entries
  }

  #takeUpTo(n: number, gone: NodeEvent[]): void {
    const entries = this.#entries
    const [first] = entries
    if (first === undefined || first.n > n) return
    // The usual case, without a list that is cut and filled again each time.
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

  /** Of each attempt only the last word on each topic counts. Its start and its end are kept always. */
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

/** Null: nothing later makes it obsolete. */
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
