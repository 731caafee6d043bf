/**
 * Leadership by a Lease of Kubernetes. Every write demands the version that was read, so of two candidates
 * one wins. A candidate measures silence with its own clock: times of other hosts are not compared.
 */
import { createLeaseWatch } from '../../controller/model/lease-watch.ts'
import type { CancelTimer, Clock } from '../../controller/ports/clock.ts'
import {
  BEATS_PER_LEASE,
  type Leadership,
  type Term,
  type TermEnd,
  type TermReason,
  resignation,
  CLOSED,
} from '../../controller/ports/leadership.ts'
import type { DurationMs, Instant } from '../../protocol/units.ts'
import { DOMAIN } from '../contract/names.ts'
import {
  CONFLICT,
  type KubeApi,
  KubeError,
  type KubeObject,
  LEASES,
  NOT_FOUND,
  type ObjectKey,
} from '../ports/kube-api.ts'

export interface LeaseLeadershipOptions {
  readonly api: KubeApi
  readonly clock: Clock
  /** Name of this candidate, for example of its pod. */
  readonly name: string
  readonly lease: Required<ObjectKey>
  readonly leaseMs: DurationMs
  /** Failed requests; the candidate continues. */
  readonly onFault?: (error: unknown) => void
}

/** A candidate sees a planned end within half a second of a lease of 15 s. */
const LOOKS_PER_LEASE = 30
/** A leader that cannot renew stops before another one may begin. */
const RENEW_WITHIN = 2 / 3
/** A release may meet a renewal that is in progress, or an edit. */
const RELEASE_TRIES = 3
/** Counts the terms; `leaseTransitions` is reset when the Lease is made again by hand. */
const EPOCH = `${DOMAIN}/epoch`
const LAST_HOLDER = `${DOMAIN}/last-holder`
const HEIR = `${DOMAIN}/heir`
const RELEASED = `${DOMAIN}/released`

interface LeaseFacts {
  readonly holder: string | null
  readonly epoch: number
  readonly lastHolder: string | null
  readonly heir: string | null
  readonly isResigned: boolean
}

export class LeaseLeadership implements Leadership {
  readonly #options: LeaseLeadershipOptions
  #epoch = 0
  #renewedAt: Instant = 0
  /** The lease as this leader has written it. */
  #own: KubeObject | null = null
  #lost = Promise.withResolvers<TermEnd>()
  #won: ((term: Term) => void) | null = null
  /** The look of this candidate that is in progress. */
  #looking: Promise<void> = Promise.resolve()
  #cancel: CancelTimer = () => {}
  #watch = createLeaseWatch(0)

  constructor(options: LeaseLeadershipOptions) {
    this.#options = options
  }

  /** 0 as well when the lease could not be renewed in time: check it before each act of a leader. */
  get epoch(): number {
    return this.#isOverdue() ? 0 : this.#epoch
  }

  get lost(): Promise<TermEnd> {
    return this.#lost.promise
  }

  campaign(): Promise<Term> {
    this.#watch = createLeaseWatch(this.#options.leaseMs)
    return new Promise((resolve) => {
      this.#won = resolve
      this.#looking = this.#look()
    })
  }

  async resign(to: string | null = null): Promise<void> {
    await this.#release('resigned', resignation(to), to)
  }

  async close(): Promise<void> {
    this.#won = null
    this.#cancel()
    // It may have taken the Lease.
    await this.#looking
    await this.#release('closed', CLOSED, null)
  }

  readonly #look = async (): Promise<void> => {
    if (this.#won === null) return
    try {
      const found = await this.#read()
      const reason = this.#mayTake(found)
      if (reason !== null && (await this.#take(found, reason))) return
    } catch (error) {
      // Another candidate was faster, or the API server is away.
      if (!isCode(error, CONFLICT)) this.#options.onFault?.(error)
    }
    if (this.#won !== null) this.#after(LOOKS_PER_LEASE, () => (this.#looking = this.#look()))
  }

  async #read(): Promise<KubeObject | null> {
    const { api, lease } = this.#options
    try {
      return await api.get(LEASES, lease)
    } catch (error) {
      if (isCode(error, NOT_FOUND)) return null
      throw error
    }
  }

  /** Null: another one leads, or may lead first. */
  #mayTake(found: KubeObject | null): TermReason | null {
    if (found === null) return 'first'
    const { clock, leaseMs, name } = this.#options
    const { holder, lastHolder, heir, isResigned } = factsOf(found)
    const silentMs = this.#watch.observe(found.metadata.resourceVersion ?? '', clock.now())
    if (holder !== null) return silentMs >= leaseMs ? 'silent' : null
    if (heir !== null && heir !== name && silentMs < leaseMs) return null
    if (lastHolder === null) return 'first'
    return isResigned ? 'resigned' : 'disconnected'
  }

  /** Returns false if it no longer campaigns. Rejects with 409 if another one was faster. */
  async #take(found: KubeObject | null, reason: TermReason): Promise<boolean> {
    if (this.#won === null) return false
    const { api, clock, name, lease } = this.#options
    const { epoch, lastHolder, transitions } = { transitions: transitionsOf(found), ...factsOf(found) }
    const since = clock.now()
    const object: KubeObject = {
      ...found,
      metadata: {
        ...(found?.metadata ?? lease),
        annotations: annotationsOf(found, { [EPOCH]: String(epoch + 1), [LAST_HOLDER]: name }),
      },
      spec: this.#specAt(since, since, transitions + 1),
    }
    this.#own = found === null ? await api.create(LEASES, object) : await api.replace(LEASES, object)
    this.#epoch = epoch + 1
    this.#renewedAt = since
    this.#lost = Promise.withResolvers<TermEnd>()
    const won = this.#won
    this.#won = null
    this.#after(BEATS_PER_LEASE, this.#beat)
    won?.({ epoch: this.#epoch, reason, before: lastHolder })
    return true
  }

  readonly #beat = async (): Promise<void> => {
    const own = this.#own
    if (this.#epoch === 0 || own === null) return
    const { api, clock } = this.#options
    const since = clock.now()
    try {
      const spec = { ...(own['spec'] as object), renewTime: microTime(since) }
      const renewed = await api.replace(LEASES, { ...own, spec })
      if (this.#own !== own) return
      this.#own = renewed
      this.#renewedAt = since
    } catch (error) {
      if (this.#own !== own) return
      const end = await this.#endAfter(error)
      if (end !== null) return this.#end(end)
    }
    this.#after(BEATS_PER_LEASE, this.#beat)
  }

  /** Null: it still leads, and tries again. */
  async #endAfter(error: unknown): Promise<TermEnd | null> {
    if (isCode(error, NOT_FOUND)) return { reason: 'replaced', detail: 'the Lease was deleted' }
    if (isCode(error, CONFLICT)) {
      const found = await this.#read().catch(() => null)
      const { holder, epoch } = factsOf(found)
      if (found !== null && (holder !== this.#options.name || epoch !== this.#epoch))
        return { reason: 'replaced', detail: `epoch ${epoch} leads` }
      // Someone has edited the Lease, for example its labels.
      if (found !== null) this.#own = found
    } else this.#options.onFault?.(error)
    return this.#isOverdue() ? { reason: 'disconnected', detail: 'the Lease was not renewed in time' } : null
  }

  async #release(how: 'resigned' | 'closed', end: TermEnd, heir: string | null): Promise<void> {
    let own = this.#own
    if (this.#epoch === 0 || own === null) return
    const { api, name, onFault } = this.#options
    const epoch = this.#epoch
    this.#end(end)
    for (let tries = 1; own !== null; tries += 1) {
      const { holderIdentity: _holder, ...spec } = own['spec'] as Record<string, unknown>
      const released = annotationsOf(own, { [RELEASED]: how, ...(heir === null ? {} : { [HEIR]: heir }) })
      try {
        await api.replace(LEASES, { ...own, metadata: { ...own.metadata, annotations: released }, spec })
        return
      } catch (error) {
        // The others find it silent after one lease.
        if (!isCode(error, CONFLICT) || tries === RELEASE_TRIES) return onFault?.(error)
        const found = await this.#read().catch(() => null)
        const facts = factsOf(found)
        own = facts.holder === name && facts.epoch === epoch ? found : null
      }
    }
  }

  #end(end: TermEnd): void {
    this.#cancel()
    this.#epoch = 0
    this.#own = null
    this.#lost.resolve(end)
  }

  #isOverdue(): boolean {
    const { clock, leaseMs } = this.#options
    return this.#epoch !== 0 && clock.now() - this.#renewedAt >= leaseMs * RENEW_WITHIN
  }

  #after(share: number, then: () => Promise<void>): void {
    const { clock, leaseMs } = this.#options
    this.#cancel = clock.at(clock.now() + Math.max(1, Math.floor(leaseMs / share)), () => void then())
  }

  #specAt(acquired: Instant, renewed: Instant, leaseTransitions: number): object {
    const { name, leaseMs } = this.#options
    return {
      holderIdentity: name,
      leaseDurationSeconds: Math.ceil(leaseMs / 1000),
      acquireTime: microTime(acquired),
      renewTime: microTime(renewed),
      leaseTransitions,
    }
  }
}

function factsOf(lease: KubeObject | null): LeaseFacts {
  const { holderIdentity } = (lease?.['spec'] ?? {}) as { readonly holderIdentity?: string }
  const annotations = lease?.metadata.annotations ?? {}
  const epoch = Number(annotations[EPOCH] ?? 0)
  return {
    holder: holderIdentity ?? null,
    epoch: Number.isSafeInteger(epoch) ? epoch : 0,
    lastHolder: annotations[LAST_HOLDER] ?? null,
    heir: annotations[HEIR] ?? null,
    isResigned: annotations[RELEASED] === 'resigned',
  }
}

function transitionsOf(lease: KubeObject | null): number {
  return ((lease?.['spec'] ?? {}) as { readonly leaseTransitions?: number }).leaseTransitions ?? 0
}

/** A new term and a release begin without the marks of the release before. */
function annotationsOf(lease: KubeObject | null, more: Readonly<Record<string, string>>) {
  const { [HEIR]: _heir, [RELEASED]: _released, ...rest } = lease?.metadata.annotations ?? {}
  return { ...rest, ...more }
}

/** The API server demands six digits. */
function microTime(instant: Instant): string {
  return new Date(instant).toISOString().replace('Z', '000Z')
}

function isCode(error: unknown, code: number): boolean {
  return error instanceof KubeError && error.code === code
}
