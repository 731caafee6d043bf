/**
 * Re-decides a recording: the recorded inputs pass through the production controller, and its commits are
 * compared with the recorded ones. Ends at the first difference.
 */
import type { Decision } from '../../../controller/model/decision.ts'
import type { Event } from '../../../controller/model/event.ts'
import type { Checkpoint, CommitEntry, RecordedEntry } from '../../../controller/ports/recording-log.ts'
import type { Instant } from '../../../protocol/units.ts'
import { ReplayedRun, type TakenInput } from './replayed-run.ts'

/** A checkpoint comes before everything else. */
export type Recorded = RecordedEntry | Checkpoint

/** `recorded` and `redecided` are never equal; null: nothing, while the other side has something. */
export type Difference = { readonly at: Instant; readonly input: number } & (
  | { readonly what: 'decision'; readonly recorded: Decision | null; readonly redecided: Decision | null }
  | { readonly what: 'event'; readonly recorded: Event | null; readonly redecided: Event | null }
  /** The controller makes another request than the recorded one: a description. */
  | { readonly what: 'course'; readonly detail: string }
)

export interface Redecided {
  /** Controllers that started within the recording. */
  readonly starts: number
  readonly inputs: number
  /** Number of compared transactions that are equal. */
  readonly decisions: number
  readonly events: number
  readonly firstAt: Instant | null
  readonly lastAt: Instant | null
  readonly difference: Difference | null
}

export async function redecide(entries: AsyncIterable<Recorded> | Iterable<Recorded>): Promise<Redecided> {
  const run = new Redecision()
  for await (const entry of entries) {
    await run.next(entry)
    if (run.difference !== null) break
  }
  return run.result()
}

/** A checkpoint may be taken between two entries. */
export class Redecision {
  difference: Difference | null = null
  readonly #counts = { starts: 0, inputs: 0, decisions: 0, events: 0 }
  #firstAt: Instant | null = null
  #lastAt: Instant | null = null
  readonly #run = new ReplayedRun()

  async next(entry: Recorded): Promise<void> {
    if (entry.k === 'checkpoint') return this.#run.recall(entry)
    if (entry.k === 'start') this.#counts.starts += 1
    const taken = await this.#run.next(entry)
    if (taken === null) return
    this.#firstAt ??= taken.input.at
    this.#lastAt = taken.input.at
    this.#counts.inputs += 1
    this.#compare(taken)
  }

  result(): Redecided {
    return { ...this.#counts, firstAt: this.#firstAt, lastAt: this.#lastAt, difference: this.difference }
  }

  checkpoint(): Checkpoint | null {
    return this.#run.checkpoint()
  }

  /** Decisions first: they say more than their events. */
  #compare({ input, recorded: then, committed, course }: TakenInput): void {
    const sides = [then, committed] as const
    const where = { at: input.at, input: this.#counts.inputs }
    const decision = firstDifferent(...bothSides(sides, ({ decisions }) => decisions))
    this.#counts.decisions += decision.equal
    if (decision.pair !== null) {
      const [recorded, redecided] = decision.pair
      this.difference = { ...where, what: 'decision', recorded, redecided }
      return
    }
    const event = firstDifferent(...bothSides(sides, ({ events }) => events))
    this.#counts.events += event.equal
    if (event.pair !== null) {
      const [recorded, redecided] = event.pair
      this.difference = { ...where, what: 'event', recorded, redecided }
    } else if (course !== null) this.difference = { ...where, what: 'course', detail: course }
    else if (then.length !== committed.length) {
      const detail =
        `it writes to the store ${committed.length} times at an input at which it did ` +
        `${then.length} times`
      this.difference = { ...where, what: 'course', detail }
    }
  }
}

type Committed = Pick<CommitEntry, 'events' | 'decisions'>

function bothSides<T>(
  sides: readonly [readonly Committed[], readonly Committed[]],
  of: (one: Committed) => readonly T[],
): [T[], T[]] {
  return [sides[0].flatMap(of), sides[1].flatMap(of)]
}

/** Both are JSON values with their keys in the same order. */
function firstDifferent<T>(
  recorded: readonly T[],
  redecided: readonly T[],
): { equal: number; pair: [T | null, T | null] | null } {
  const length = Math.max(recorded.length, redecided.length)
  for (let i = 0; i < length; i++) {
    const [a, b] = [recorded[i], redecided[i]]
    if (JSON.stringify(a) !== JSON.stringify(b)) return { equal: i, pair: [a ?? null, b ?? null] }
  }
  return { equal: length, pair: null }
}
