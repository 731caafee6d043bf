/**
 * The ports of a controller whose inputs come from a recording: only recorded inputs arrive, at the recorded
 * instants.
 */
import type { Bus, Handler, RequestOutcome } from '../../../controller/ports/bus.ts'
import type { CancelTimer, Clock, TimerId, TimerRank } from '../../../controller/ports/clock.ts'
import { RANK_DECISION } from '../../../controller/ports/clock.ts'
import type { Random, RandomStream } from '../../../controller/ports/random.ts'
import type { Draw } from '../../../controller/ports/recording-log.ts'
import type { Batch, Store, StoredState, StoreReads } from '../../../controller/ports/store.ts'
import { StoreFault } from '../../../controller/ports/store.ts'
import type { Instant } from '../../../protocol/units.ts'

/** The controller makes another request than the recorded one: a description. */
export class ReplayDivergence extends Error {
  override readonly name = 'ReplayDivergence'
}

interface Timer extends TimerId {
  fn: (() => void) | null
}

/** Timers run when the recording says so. */
export class ReplayedClock implements Clock {
  #now: Instant
  /** By instant and rank; of equal ones, the first requested is the first. */
  readonly #timers = new Map<string, Timer[]>()
  /** By cancel function, and by the function that they run. */
  readonly #known = new WeakMap<() => void, Timer>()
  #count = 0

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
    return this.#wait({ due: Math.max(instant, this.#now), rank, number: (this.#count += 1), fn })
  }

  /** A waiting timer, by its cancel function or the function that it runs. */
  mark(known: () => void): TimerId {
    const timer = this.#known.get(known)
    if (timer === undefined || timer.fn === null)
      throw new Error('broken invariant: a timer that does not wait')
    return { due: timer.due, rank: timer.rank, number: timer.number }
  }

  /** A timer of the checkpoint, in its place. */
  again(mark: TimerId, fn: () => void): CancelTimer {
    this.#count = Math.max(this.#count, mark.number)
    return this.#wait({ ...mark, fn })
  }

  #wait(timer: Timer): CancelTimer {
    const key = `${timer.due}/${timer.rank}`
    const others = this.#timers.get(key)
    if (others === undefined) this.#timers.set(key, [timer])
    else others.splice(others.findLastIndex(({ number }) => number < timer.number) + 1, 0, timer)
    const cancel = (): void => {
      if (timer.fn === null) return
      timer.fn = null
      this.#forget(key, timer)
    }
    if (timer.fn !== null) this.#known.set(timer.fn, timer)
    this.#known.set(cancel, timer)
    return cancel
  }

  soon(fn: () => void, rank: TimerRank): void {
    this.at(this.#now, fn, rank)
  }

  run(due: Instant, rank: TimerRank): void {
    const key = `${due}/${rank}`
    const [timer] = this.#timers.get(key) ?? []
    if (timer === undefined || timer.fn === null) {
      throw new ReplayDivergence(`no timer of rank ${rank} was requested for ${new Date(due).toISOString()}`)
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

/** Returns the numbers that the recorded controller drew. */
export class ReplayedRandom implements Random {
  readonly #drawn = new Map<string, number[]>()

  /** Numbers for the next input. */
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
      if (value === undefined)
        throw new ReplayDivergence(`it draws a random number of the stream ${JSON.stringify(name)}`)
      return value
    }
  }

  /** Throws if some of the given numbers were not drawn. */
  settle(): void {
    for (const [stream, values] of this.#drawn) {
      if (values.length === 0) continue
      values.length = 0
      throw new ReplayDivergence(
        `it does not draw all random numbers of the stream ${JSON.stringify(stream)}`,
      )
    }
  }
}

/** Outgoing messages are dropped; incoming ones are recorded. */
export class ReplayedBus implements Bus {
  readonly #handlers = new Map<string, Handler>()
  readonly #requests = new Map<number, (outcome: RequestOutcome) => void>()
  #requested = 0
  #onConnection: ((isConnected: boolean) => void) | null = null

  /** Number of requests. */
  get requested(): number {
    return this.#requested
  }

  /** @param requested number of requests before */
  recall(requested: number): void {
    this.#requested = requested
  }

  /** The callback of a request that waits for its answer. */
  numberOf(done: (outcome: RequestOutcome) => void): number {
    for (const [number, waiting] of this.#requests) if (waiting === done) return number
    throw new Error('broken invariant: a request that waits for no answer')
  }

  /** A request of the checkpoint. */
  again(number: number, done: (outcome: RequestOutcome) => void): void {
    this.#requests.set(number, done)
  }

  publish(): void {}

  request(
    _subject: string,
    _message: unknown,
    _timeoutMs: number,
    done: (outcome: RequestOutcome) => void,
  ): void {
    this.#requests.set((this.#requested += 1), done)
  }

  subscribe(pattern: string, handler: Handler): () => void {
    this.#handlers.set(pattern, handler)
    return () => this.#handlers.delete(pattern)
  }

  onConnection(listener: (isConnected: boolean) => void): () => void {
    this.#onConnection = listener
    return () => {
      this.#onConnection = null
    }
  }

  connection(isConnected: boolean): void {
    if (this.#onConnection === null)
      throw new ReplayDivergence('it does not watch its connection to the broker')
    this.#onConnection(isConnected)
  }

  hear(pattern: string, ...[message, subject]: Parameters<Handler>): void {
    const handler = this.#handlers.get(pattern)
    if (handler === undefined) throw new ReplayDivergence(`it does not listen to ${pattern}`)
    handler(message, subject, () => {})
  }

  answer(n: number, outcome: RequestOutcome): void {
    const done = this.#requests.get(n)
    if (done === undefined) throw new ReplayDivergence(`it sent no command number ${n}`)
    this.#requests.delete(n)
    done(outcome)
  }

  drain(): Promise<void> {
    return Promise.resolve()
  }
}

/**
 * Starts from the recorded state, and collects commits for comparison; a commit is durable when the recording
 * says so.
 */
export class ReplayedStore implements Store {
  readonly keepsDecisions = true
  readonly reads: StoreReads = NOTHING_STORED
  readonly #onCommit: (batch: Batch, n: number) => { readonly isDurable: boolean }
  readonly #state: StoredState
  readonly #underWay = new Map<number, PromiseWithResolvers<void>>()
  #commits = 0

  /** @param onCommit returns the recorded outcome */
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
    return this.again(n)
  }

  /** @param commits number of commits before */
  recall(commits: number): void {
    this.#commits = commits
  }

  /** Commit `n` is in progress. */
  again(n: number): Promise<void> {
    const committed = Promise.withResolvers<void>()
    this.#underWay.set(n, committed)
    return committed.promise
  }

  /** @param fault null: commit `n` is durable. */
  settle(n: number, fault: string | null): void {
    const committed = this.#underWay.get(n)
    if (committed === undefined)
      throw new ReplayDivergence(`it has nothing under way to the store as number ${n}`)
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
