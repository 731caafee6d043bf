/** Leadership in one process: for tests and simulated worlds. */
import { createLeaseWatch } from '../model/lease-watch.ts'
import type { CancelTimer, Clock } from '../ports/clock.ts'
import { RANK_ARRIVAL } from '../ports/clock.ts'
import {
  BEATS_PER_LEASE,
  type Leadership,
  type Term,
  type TermEnd,
  type TermReason,
  resignation,
  CLOSED,
} from '../ports/leadership.ts'

/** The state that the controllers share. */
export interface MemoryLease {
  epoch: number
  /** Null: no session holds the lease. */
  holder: string | null
  /** The holder of the last term. */
  lastHolder: string | null
  heir: string | null
  isResigned: boolean
  beat: number
}

export function createMemoryLease(): MemoryLease {
  return { epoch: 0, holder: null, lastHolder: null, heir: null, isResigned: false, beat: 0 }
}

export interface MemoryLeadershipOptions {
  readonly name: string
  readonly leaseMs: number
  readonly clock: Clock
}

export interface MemoryLeadership extends Leadership {
  /** Neither observes nor beats until it is thawed: a stopped process. */
  freeze(): void
  thaw(): void
}

/** Observations per lease. */
const LOOKS_PER_LEASE = 16

export function createMemoryLeadership(
  lease: MemoryLease,
  options: MemoryLeadershipOptions,
): MemoryLeadership {
  return new InMemory(lease, options)
}

class InMemory implements MemoryLeadership {
  readonly #lease: MemoryLease
  readonly #options: MemoryLeadershipOptions
  #epoch = 0
  #lost = Promise.withResolvers<TermEnd>()
  #won: ((term: Term) => void) | null = null
  #cancel: CancelTimer = () => {}
  #isFrozen = false
  #watch = createLeaseWatch(0)

  constructor(lease: MemoryLease, options: MemoryLeadershipOptions) {
    this.#lease = lease
    this.#options = options
  }

  get epoch(): number {
    return this.#epoch
  }

  get lost(): Promise<TermEnd> {
    return this.#lost.promise
  }

  campaign(): Promise<Term> {
    this.#watch = createLeaseWatch(this.#options.leaseMs)
    return new Promise((resolve) => {
      this.#won = resolve
      if (!this.#isFrozen) this.#look()
    })
  }

  async resign(to: string | null = null): Promise<void> {
    if (this.#epoch === 0) return
    if (this.#leads()) Object.assign(this.#lease, { holder: null, heir: to, isResigned: true })
    this.#end(resignation(to))
  }

  async close(): Promise<void> {
    this.#won = null
    this.#cancel()
    if (this.#leads()) this.#lease.holder = null
    if (this.#epoch !== 0) this.#end(CLOSED)
  }

  freeze(): void {
    this.#isFrozen = true
    this.#cancel()
  }

  thaw(): void {
    this.#isFrozen = false
    if (this.#epoch === 0) this.#look()
    else this.#beat()
  }

  #leads(): boolean {
    return this.#epoch !== 0 && this.#lease.holder === this.#options.name && this.#lease.epoch === this.#epoch
  }

  #after(share: number, then: () => void): void {
    if (this.#isFrozen) return
    const { clock, leaseMs } = this.#options
    this.#cancel = clock.at(clock.now() + Math.max(1, Math.floor(leaseMs / share)), then, RANK_ARRIVAL)
  }

  readonly #look = (): void => {
    if (this.#won === null) return
    const { holder, beat, epoch, heir, lastHolder, isResigned } = this.#lease
    const { clock, leaseMs, name } = this.#options
    const silentMs = this.#watch.observe(`${holder ?? ''}/${epoch}/${beat}`, clock.now())
    const isHeir = heir === null || heir === name || silentMs >= leaseMs
    if (holder === null && isHeir)
      return this.#take(lastHolder === null ? 'first' : isResigned ? 'resigned' : 'disconnected')
    if (silentMs >= leaseMs && holder !== null) return this.#take('silent')
    this.#after(LOOKS_PER_LEASE, this.#look)
  }

  #take(reason: TermReason): void {
    const { name } = this.#options
    const before = this.#lease.lastHolder
    this.#epoch = this.#lease.epoch + 1
    const taken = { epoch: this.#epoch, holder: name, lastHolder: name, heir: null, isResigned: false }
    Object.assign(this.#lease, taken)
    this.#lost = Promise.withResolvers<TermEnd>()
    const won = this.#won
    this.#won = null
    this.#beat()
    won?.({ epoch: this.#epoch, reason, before })
  }

  readonly #beat = (): void => {
    if (this.#epoch === 0) return
    if (!this.#leads()) return this.#end({ reason: 'replaced', detail: `epoch ${this.#lease.epoch} leads` })
    this.#lease.beat += 1
    this.#after(BEATS_PER_LEASE, this.#beat)
  }

  #end(end: TermEnd): void {
    this.#cancel()
    this.#epoch = 0
    this.#lost.resolve(end)
  }
}
