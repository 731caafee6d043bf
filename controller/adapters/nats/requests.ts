/**
 * Requests in flight: each has exactly one outcome. Deadlines are grouped in time slots, so that a request
 * costs no timer.
 */
import type { DurationMs } from '../../../protocol/units.ts'
import type { RequestOutcome } from '../../ports/bus.ts'
import { callThrowingAsync } from './throw-async.ts'

/** Precision of deadlines. */
const SLOT_MS: DurationMs = 20

interface Outstanding {
  readonly token: string
  readonly subject: string
  /** Null once it has its outcome. */
  done: ((outcome: RequestOutcome) => void) | null
}

export class Requests {
  readonly #byToken = new Map<string, Outstanding>()
  /** By the number of the slot of their deadline. */
  readonly #slots = new Map<number, Outstanding[]>()
  readonly #onTimeout: () => void
  #lastToken = 0
  #sweptSlot = 0
  #timer: NodeJS.Timeout | null = null
  #waiters: (() => void)[] = []

  constructor(onTimeout: () => void) {
    this.#onTimeout = onTimeout
  }

  get count(): number {
    return this.#byToken.size
  }

  /** @returns the token of its answer */
  open(subject: string, timeoutMs: DurationMs, done: (outcome: RequestOutcome) => void): string {
    this.#lastToken += 1
    const request = { token: this.#lastToken.toString(36), subject, done }
    this.#byToken.set(request.token, request)
    const slot = slotOf(performance.now() + timeoutMs) + 1
    const others = this.#slots.get(slot)
    if (others === undefined) this.#slots.set(slot, [request])
    else others.push(request)
    if (this.#timer === null) {
      this.#sweptSlot = slotOf(performance.now())
      this.#timer = setInterval(() => this.#sweep(), SLOT_MS)
    }
    return request.token
  }

  /** The subject of the request in flight with this token. */
  subjectOf(token: string): string | null {
    return this.#byToken.get(token)?.subject ?? null
  }

  /** Drops a request that was not sent; the caller reports it. */
  forget(token: string): void {
    const request = this.#byToken.get(token)
    if (request !== undefined) this.#remove(request)
  }

  close(token: string, outcome: RequestOutcome): void {
    const request = this.#byToken.get(token)
    if (request !== undefined) this.#end(request, outcome)
  }

  /** @returns their number */
  closeAll(outcome: RequestOutcome, subject: string | null = null): number {
    const ending = [...this.#byToken.values()].filter(
      (request) => subject === null || request.subject === subject,
    )
    for (const request of ending) this.#end(request, outcome)
    return ending.length
  }

  /** Resolves when no request is in flight. */
  settled(): Promise<void> {
    if (this.count === 0) return Promise.resolve()
    return new Promise((resolve) => this.#waiters.push(resolve))
  }

  #end(request: Outstanding, outcome: RequestOutcome): void {
    const { done } = request
    if (done === null) return
    this.#remove(request)
    callThrowingAsync(() => done(outcome))
  }

  #remove(request: Outstanding): void {
    request.done = null
    this.#byToken.delete(request.token)
    if (this.count === 0) this.#rest()
  }

  #rest(): void {
    if (this.#timer !== null) clearInterval(this.#timer)
    this.#timer = null
    this.#slots.clear()
    const waiters = this.#waiters
    this.#waiters = []
    waiters.forEach((resolve) => resolve())
  }

  #sweep(): void {
    const slot = slotOf(performance.now())
    for (let each = this.#sweptSlot + 1; each <= slot; each++) {
      const due = this.#slots.get(each)
      if (due === undefined) continue
      this.#slots.delete(each)
      for (const request of due) {
        if (request.done === null) continue
        this.#onTimeout()
        this.#end(request, { answered: false, why: 'timeout' })
      }
    }
    this.#sweptSlot = slot
  }
}

function slotOf(at: number): number {
  return Math.floor(at / SLOT_MS)
}
