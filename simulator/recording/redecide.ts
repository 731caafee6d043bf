/**
 * Decides a recording again: the recorded inputs go through the production controller, and what it commits is held against what was recorded.
 * Ends at the first difference.
 */
import type { Decision } from '../../controller/domain/decision.ts'
import type { Event } from '../../controller/domain/event.ts'
import type { CommitEntry, InputEntry, RecordedEntry, StartEntry } from '../../controller/ports/recording-log.ts'
import type { Batch, StoredState } from '../../controller/ports/store.ts'
import type { Instant } from '../../protocol/units.ts'
import { ReplayedController } from './replayed-controller.ts'
import { OtherCourse } from './replayed-ports.ts'

/** `recorded` and `redecided` are never equal; null: nothing there, while the other side has something. */
export type Difference = { readonly at: Instant; readonly input: number } & (
  | { readonly what: 'decision'; readonly recorded: Decision | null; readonly redecided: Decision | null }
  | { readonly what: 'event'; readonly recorded: Event | null; readonly redecided: Event | null }
  /** The controller asks for something else than then: what, in words. */
  | { readonly what: 'course'; readonly detail: string }
)

export interface Redecided {
  /** Controllers that began within the recording. */
  readonly starts: number
  readonly inputs: number
  /** As many as were held against recorded ones and are equal. */
  readonly decisions: number
  readonly events: number
  readonly firstAt: Instant | null
  readonly lastAt: Instant | null
  readonly difference: Difference | null
}

export async function redecide(entries: AsyncIterable<RecordedEntry> | Iterable<RecordedEntry>): Promise<Redecided> {
  const run = new Redecision()
  for await (const entry of entries) {
    await run.next(entry)
    if (run.difference !== null) break
  }
  return run.result()
}

class Redecision {
  difference: Difference | null = null
  readonly #counts = { starts: 0, inputs: 0, decisions: 0, events: 0 }
  #firstAt: Instant | null = null
  #lastAt: Instant | null = null
  #start: StartEntry | null = null
  #controller: ReplayedController | null = null
  /** Recorded of the input that comes next, and what has come of it here. */
  #recorded: CommitEntry[] = []
  #committed: Batch[] = []

  async next(entry: RecordedEntry): Promise<void> {
    if (entry.k === 'start') {
      // What was committed last is part of an input that was never written down to its end.
      this.#recorded = []
      this.#start = entry
      this.#controller = null
      this.#counts.starts += 1
    } else if (entry.k === 'commit') this.#recorded.push(entry)
    else await this.#take(entry)
  }

  result(): Redecided {
    return { ...this.#counts, firstAt: this.#firstAt, lastAt: this.#lastAt, difference: this.difference }
  }

  async #take(entry: InputEntry): Promise<void> {
    this.#firstAt ??= entry.at
    this.#lastAt = entry.at
    this.#counts.inputs += 1
    let course: string | null = null
    try {
      if (entry.k === 'loaded') this.#begin(entry.state)
      if (this.#controller === null) throw new OtherCourse('no start is recorded before it')
      await this.#controller.take(entry)
    } catch (error) {
      if (!(error instanceof OtherCourse)) throw error
      course = error.message
    }
    this.#compare(entry.at, course)
    this.#recorded = []
    this.#committed = []
  }

  #begin(state: StoredState): void {
    if (this.#start === null) return
    this.#controller = new ReplayedController(this.#start, state, (batch) => {
      const recorded = this.#recorded[this.#committed.length]
      // Lists of a turn that was durable at once are emptied afterwards.
      this.#committed.push({ ...batch, events: [...batch.events], decisions: [...batch.decisions] })
      return { isDurable: recorded?.isDurable ?? false }
    })
  }

  /** Decisions first: they say more than the events that tell of them. */
  #compare(at: Instant, course: string | null): void {
    const sides = [this.#recorded, this.#committed] as const
    const where = { at, input: this.#counts.inputs }
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
    else if (this.#recorded.length !== this.#committed.length) {
      const detail = `it writes to the store ${this.#committed.length} times at an input at which it did ${this.#recorded.length} times`
      this.difference = { ...where, what: 'course', detail }
    }
  }
}

type Committed = Pick<CommitEntry, 'events' | 'decisions'>

function bothSides<T>(sides: readonly [readonly Committed[], readonly Committed[]], of: (one: Committed) => readonly T[]): [T[], T[]] {
  return [sides[0].flatMap(of), sides[1].flatMap(of)]
}

/** Both are JSON values with their keys in the same order. */
function firstDifferent<T>(recorded: readonly T[], redecided: readonly T[]): { equal: number; pair: [T | null, T | null] | null } {
  const length = Math.max(recorded.length, redecided.length)
  for (let i = 0; i < length; i++) {
    const [a, b] = [recorded[i], redecided[i]]
    if (JSON.stringify(a) !== JSON.stringify(b)) return { equal: i, pair: [a ?? null, b ?? null] }
  }
  return { equal: length, pair: null }
}
