/** The ports of a controller whose inputs come from a recording: nothing happens but what is recorded, at the instants recorded. */
import type { Bus, Handler, RequestOutcome } from '../../controller/ports/bus.ts'
import type { CancelTimer, Clock, TimerRank } from '../../controller/ports/clock.ts'
import { RANK_DECISION } from '../../controller/ports/clock.ts'
import type { Random, RandomStream } from '../../controller/ports/random.ts'
import type { Draw } from '../../controller/ports/recording-log.ts'
import type { Batch, Store, StoredState, StoreReads } from '../../controller/ports/store.ts'
import { StoreFault } from '../../controller/ports/store.ts'
import type { Instant } from '../../protocol/units.ts'

/** The controller asks for something else than the recorded one did: what it is, in words. */
export class OtherCourse extends Error {
  override readonly name = 'OtherCourse'
}

interface Timer {
  fn: (() => void) | null
}

/** Timers run when the recording says so. */
export class ReplayedClock implements Clock {
  #now: Instant
  /** By instant and rank; of those that are alike the first that was asked for is the first. */
  readonly #timers = new Map<string, Timer[]>()

  constructor(now: Instant) {
    this.#now = now
  }

  now(): Instant {
    return this.#now
  }

  setNow(instant: Instant): void {
    this.#now = instant
  }

  at(instant: Instant, fn: () => void, rank: TimerRank = RANK_DECISION): CancelTimer {
    const due = Math.max(instant, this.#now)
    const key = `${due}/${rank}`
    const timer: Timer = { fn }
    const others = this.#timers.get(key)
    if (others === undefined) this.#timers.set(key, [timer])
    else others.push(timer)
    return () => {
      if (timer.fn === null) return
      timer.fn = null
      this.#forget(key, timer)
    }
  }

  soon(fn: () => void, rank: TimerRank): void {
    this.at(this.#now, fn, rank)
  }

  run(due: Instant, rank: TimerRank): void {
    const key = `${due}/${rank}`
    const [timer] = this.#timers.get(key) ?? []
    if (timer === undefined || timer.fn === null) {
      throw new OtherCourse(`nobody asked for a timer of rank ${rank} at ${new Date(due).toISOString()}`)
    }
    this.#forget(key, timer)
    const { fn } = timer
    timer.fn = null
    fn()
  }

  #forget(key: string, timer: Timer): void {
    const all = this.#timers.get(key)
    if (all === undefined) return
    all.splice(all.indexOf(timer), 1)
    if (all.length === 0) this.#timers.delete(key)
  }
}

/** Hands out the numbers that the recorded controller drew. */
export class ReplayedRandom implements Random {
  readonly #drawn = new Map<string, number[]>()

  /** Those of the next input. */
  give(draws: readonly Draw[]): void {
    for (const [stream, value] of draws) {
      const values = this.#drawn.get(stream)
      if (values === undefined) this.#drawn.set(stream, [value])
      else values.push(value)
    }
  }

  stream(name: string): RandomStream {
    return () => {
      const value = this.#drawn.get(name)?.shift()
      if (value === undefined) throw new OtherCourse(`it draws a random number of the stream ${JSON.stringify(name)}`)
      return value
    }
  }

  /** Throws when some of those that were given were not drawn. */
  settle(): void {
    for (const [stream, values] of this.#drawn) {
      if (values.length === 0) continue
      values.length = 0
      throw new OtherCourse(`it does not draw all random numbers of the stream ${JSON.stringify(stream)}`)
    }
  }
}

/** What is said goes nowhere; what is heard is recorded. */
export class ReplayedBus implements Bus {
  readonly #handlers = new Map<string, Handler>()
  readonly #requests = new Map<number, (outcome: RequestOutcome) => void>()
  #requested = 0

  publish(): void {}

  request(_subject: string, _message: unknown, _timeoutMs: number, done: (outcome: RequestOutcome) => void): void {
    this.#requests.set((this.#requested += 1), done)
  }

  subscribe(pattern: string, handler: Handler): () => void {
    this.#handlers.set(pattern, handler)
    return () => this.#handlers.delete(pattern)
  }

  hear(pattern: string, ...[message, subject]: Parameters<Handler>): void {
    const handler = this.#handlers.get(pattern)
    if (handler === undefined) throw new OtherCourse(`it does not listen to ${pattern}`)
    handler(message, subject, () => {})
  }

  answer(n: number, outcome: RequestOutcome): void {
    const done = this.#requests.get(n)
    if (done === undefined) throw new OtherCourse(`it sent no command number ${n}`)
    this.#requests.delete(n)
    done(outcome)
  }

  drain(): Promise<void> {
    return Promise.resolve()
  }
}

/** Starts from the recorded state, and takes what is committed for comparison; it is durable when the recording says so. */
export class ReplayedStore implements Store {
  readonly keepsDecisions = true
  readonly reads: StoreReads = NOTHING_STORED
  readonly #onCommit: (batch: Batch, n: number) => { readonly isDurable: boolean }
  readonly #state: StoredState
  readonly #underWay = new Map<number, PromiseWithResolvers<void>>()
  #commits = 0

  /** @param onCommit answers how it went when it was recorded. */
  constructor(state: StoredState, onCommit: (batch: Batch, n: number) => { readonly isDurable: boolean }) {
    this.#state = state
    this.#onCommit = onCommit
  }

  load(): Promise<StoredState> {
    return Promise.resolve(this.#state)
  }

  commit(batch: Batch): Promise<void> | undefined {
    const n = (this.#commits += 1)
    if (this.#onCommit(batch, n).isDurable) return undefined
    const committed = Promise.withResolvers<void>()
    this.#underWay.set(n, committed)
    return committed.promise
  }

  /** @param fault null: commit `n` is durable. */
  settle(n: number, fault: string | null): void {
    const committed = this.#underWay.get(n)
    if (committed === undefined) throw new OtherCourse(`it has nothing under way to the store as number ${n}`)
    this.#underWay.delete(n)
    if (fault === null) committed.resolve()
    else committed.reject(new StoreFault(fault))
  }

  close(): Promise<void> {
    return Promise.resolve()
  }
}

const NOTHING_STORED: StoreReads = {
  task: () => Promise.resolve(null),
  finishedTasks: () => Promise.resolve([]),
  events: () => Promise.resolve([]),
  eventRange: () => Promise.resolve({ firstSeq: 1, lastSeq: 0 }),
  audits: () => Promise.resolve([]),
  decision: () => Promise.resolve(null),
  decisions: () => Promise.resolve([]),
  configRevisions: () => Promise.resolve([]),
}
