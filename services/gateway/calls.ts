/**
 * All requests in progress at a gateway, and their limits: how long they are held, and that a request ends
 * soon after its token is revoked or its replica is gone.
 */
import { isHeld, type Call, type Endpoint } from './endpoint.ts'
import type { GatewayFigures } from './gateway-figures.ts'
import type { Replica } from './replica.ts'

const LOOK_EVERY_MS = 250
/** A task that has ended closes its connections itself; a lost node does not. */
const GONE_MS = 5_000

export interface CallLimits {
  /** A request is held no longer than that. */
  readonly holdMs: number
  /** Maximum number of held requests of one endpoint. */
  readonly maxHeld: number
}

export type Failure = 'late' | 'gone' | 'ended' | 'revoked'

/** A request, as its forwarding sees it. */
export class OpenCall implements Call {
  readonly endpoint: Endpoint
  readonly tokenId: string
  readonly arrivedAt = performance.now()
  /** Since when it is held; null: it is not. */
  heldSince: number | null
  wasHeld: boolean
  replica: Replica | null = null
  isAnswered = false
  isOver = false
  #wake: (() => void) | null = null
  readonly #calls: Calls
  readonly #onFailure: (failure: Failure) => void

  constructor(calls: Calls, endpoint: Endpoint, tokenId: string, onFailure: (failure: Failure) => void) {
    this.#calls = calls
    this.endpoint = endpoint
    this.tokenId = tokenId
    this.#onFailure = onFailure
    this.wasHeld = !endpoint.isIn
    this.heldSince = this.wasHeld ? this.arrivedAt : null
  }

  wake(): void {
    this.#wake?.()
    this.#wake = null
  }

  /** Resolves with a replica to ask and where it is reached, or null when the request is over. */
  async nextReplica() {
    for (;;) {
      if (this.isOver) return null
      const replica = this.endpoint.take()
      if (replica === null) {
        await new Promise<void>((resolve) => (this.#wake = resolve))
        continue
      }
      this.replica = replica
      const address = await replica.address()
      if (this.isOver) return null
      if (address !== null) return { replica, address }
      this.giveBack()
    }
  }

  /** The replica has not taken the request. */
  giveBack(): void {
    const { replica } = this
    this.replica = null
    if (replica !== null) this.endpoint.give(replica)
  }

  /** The head of the answer has arrived. */
  answered(status: number): void {
    const { figures } = this.#calls
    this.isAnswered = true
    figures.answered(this.endpoint, status)
    if (this.wasHeld) figures.woken(this.endpoint, performance.now() - this.arrivedAt)
  }

  end(): void {
    if (this.isOver) return
    this.isOver = true
    this.#calls.remove(this)
    this.giveBack()
    this.wake()
  }

  look(now: number, { holdMs }: CallLimits, isGood: (tokenId: string) => boolean): void {
    if (!isGood(this.tokenId)) return this.#onFailure('revoked')
    if (isHeld(this)) {
      this.wasHeld = true
      this.heldSince ??= now
      if (now - this.heldSince >= holdMs) return this.#onFailure('late')
    } else this.heldSince = null
    const { goneSince = null } = this.replica ?? {}
    if (goneSince !== null && now - goneSince >= GONE_MS) return this.#onFailure('gone')
    const { emptySince } = this.endpoint
    if (this.replica === null && emptySince !== null && now - emptySince >= GONE_MS)
      return this.#onFailure('ended')
    this.wake()
  }
}

export class Calls {
  readonly figures: GatewayFigures
  readonly #limits: CallLimits
  readonly #isGood: (tokenId: string) => boolean
  readonly #open = new Set<OpenCall>()
  #timer: NodeJS.Timeout | null = null

  constructor(limits: CallLimits, figures: GatewayFigures, isGood: (tokenId: string) => boolean) {
    this.#limits = limits
    this.figures = figures
    this.#isGood = isGood
  }

  get holdSeconds(): number {
    return Math.ceil(this.#limits.holdMs / 1000)
  }

  get count(): number {
    return this.#open.size
  }

  /** Null: the endpoint holds as many as it may. */
  begin(endpoint: Endpoint, tokenId: string, onFailure: (failure: Failure) => void): OpenCall | null {
    if (!endpoint.isIn && endpoint.held >= this.#limits.maxHeld) return null
    const call = new OpenCall(this, endpoint, tokenId, onFailure)
    endpoint.calls.add(call)
    this.#open.add(call)
    this.#timer ??= setInterval(() => this.#look(), LOOK_EVERY_MS)
    return call
  }

  remove(call: OpenCall): void {
    this.#open.delete(call)
    call.endpoint.calls.delete(call)
    if (this.#open.size > 0 || this.#timer === null) return
    clearInterval(this.#timer)
    this.#timer = null
  }

  #look(): void {
    const now = performance.now()
    for (const call of [...this.#open]) call.look(now, this.#limits, this.#isGood)
  }
}
