/**
 * Leadership by a lock of a session and a lease in the database. The session of the leader holds the lock: it
 * ends with its process or host. A leader that is silent for one lease loses its sessions. The session that
 * leads is the one that commits, so a beat and a commit are refused alike.
 */
import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import { createLeaseWatch } from '../../model/lease-watch.ts'
import {
  BEATS_PER_LEASE,
  type Leadership,
  type Term,
  type TermEnd,
  type TermReason,
  resignation,
  CLOSED,
} from '../../ports/leadership.ts'
import { FENCED, isPassing } from './faults.ts'
import { LEADER_CHANNEL } from './lease-schema.ts'
import { tryLock, unlock } from './lock.ts'
import type { LeaderSeen } from './messages.ts'
import { endClient } from './session.ts'

export interface LeadershipOptions {
  /** Name of this controller, unique among the controllers of the store. */
  readonly name: string
  /** Address for the other controllers. */
  readonly url: string
  readonly leaseMs: number
  /** Version of the program. */
  readonly version: string
  /** Otherwise it waits, and never leads (default true). */
  readonly mayLead?: boolean
  /** A session for commits; waits for a server that cannot be reached. */
  readonly connect: () => Promise<pg.Client>
  /** Called with the lock held, before the term begins: checks and migrates the store. */
  readonly prepare: (client: pg.Client) => Promise<void>
  /** Milliseconds of a clock that runs while the host sleeps. */
  readonly now: () => number
  /** False: the leader is stuck, and should be replaced. Default: true. */
  readonly isAlive?: () => boolean
  /** How far this standby is behind the leader; null: it does not follow. */
  readonly lagMs?: () => number | null
  /** Called when the database has accepted a beat. */
  readonly onBeat?: () => void
  /** Called when the leader that is observed changes. */
  readonly onLeader?: (leader: ObservedLeader | null) => void
  /** Called once in a term, when an operator asks the leader to resign; null: in favour of any other. */
  readonly onAsked?: (to: string | null) => void
}

export type ObservedLeader = LeaderSeen

export interface PostgresLeadership extends Leadership {
  /** Names the current term in the fence. */
  readonly holder: string
  /** The leader answers requests from now on: standbys learn its URL. @param seal as LeaderSeen has it */
  serves(seal: string): Promise<void>
}

const UNKNOWN = 'unknown'
const NOT_YET = ''
/** Observations per lease. */
const LOOKS_PER_LEASE = 20
const LONGEST_LOOK_MS = 200
/** A standby tells that it is there. */
const ANNOUNCE_EVERY_MS = 1_000

export function createPostgresLeadership(options: LeadershipOptions): PostgresLeadership {
  return new OnPostgres(options)
}

interface Observed {
  readonly sign: string
  readonly epoch: number
  readonly name: string
  readonly url: string
  readonly seal: string
  readonly heir: string | null
  readonly isResigned: boolean
  readonly isLed: boolean
}

class OnPostgres implements PostgresLeadership {
  readonly #options: LeadershipOptions
  #client: pg.Client | null = null
  #term: Term | null = null
  #holder = ''
  #lost = Promise.withResolvers<TermEnd>()
  #timer: NodeJS.Timeout | undefined
  #isClosed = false
  #isAsked = false
  #beatAt = 0
  #running = Promise.resolve()
  #observed = UNKNOWN

  constructor(options: LeadershipOptions) {
    this.#options = options
  }

  get epoch(): number {
    return this.#term?.epoch ?? 0
  }

  get holder(): string {
    return this.#holder
  }

  get lost(): Promise<TermEnd> {
    return this.#lost.promise
  }

  campaign(): Promise<Term> {
    const campaign = this.#campaign()
    this.#running = campaign.then(
      () => undefined,
      () => undefined,
    )
    return campaign
  }

  async #campaign(): Promise<Term> {
    for (;;) {
      const client = await this.#options.connect()
      try {
        if (this.#isClosed) throw new Error('the campaign was closed')
        return await this.#begin(client, await this.#untilFree(client))
      } catch (error) {
        await endClient(client)
        // It is reported again after the server was waited for.
        this.#observed = UNKNOWN
        if (this.#isClosed || !isPassing(error)) throw error
      }
    }
  }

  async #begin(client: pg.Client, won: Omit<Term, 'epoch'>): Promise<Term> {
    await this.#options.prepare(client)
    this.#holder = randomUUID()
    const { rows } = await client.query<{ epoch: number }>('select headroom.lead($1, $2, $3) as epoch', [
      this.#holder,
      this.#options.name,
      NOT_YET,
    ])
    const term = { ...won, epoch: rows[0]?.epoch ?? 0 }
    this.#client = client
    this.#term = term
    this.#beatAt = 0
    this.#isAsked = false
    this.#lost = Promise.withResolvers<TermEnd>()
    client.once('end', () => this.#end({ reason: 'disconnected', detail: 'the connection has ended' }))
    const { leaseMs } = this.#options
    this.#timer = setInterval(() => void this.#beat(), leaseMs / BEATS_PER_LEASE / 2)
    return term
  }

  /** Resolves with the lock held. */
  async #untilFree(client: pg.Client): Promise<Omit<Term, 'epoch'>> {
    const { leaseMs, name, now, mayLead = true } = this.#options
    const watch = createLeaseWatch(leaseMs)
    let deposed = ''
    const everyMs = Math.min(leaseMs / LOOKS_PER_LEASE, LONGEST_LOOK_MS)
    const look = async () => {
      const leader = await this.#observe(client)
      const isSilent = watch.observe(leader?.sign ?? null, now()) >= leaseMs
      const isHeir = leader === null || leader.heir === null || leader.heir === name
      return { leader, isSilent, mayTake: mayLead && (isHeir || isSilent) }
    }
    let announcedAt = -Infinity
    await client.query(`listen ${LEADER_CHANNEL}`)
    for (;;) {
      const { leader, isSilent, mayTake } = await look()
      if (leader !== null && now() - announcedAt >= ANNOUNCE_EVERY_MS) {
        announcedAt = now()
        await this.#announce(client)
      }
      if (mayTake && (await tryLock(client))) {
        // The leader may have ended its term since it was observed, in favour of another one.
        const seen = await look()
        if (seen.mayTake) return wonFrom(seen.leader, seen.leader?.sign === deposed)
        await unlock(client)
      } else if (mayTake && isSilent && leader !== null) {
        // It is ended only if it has given no sign of life since.
        await client.query('select headroom.depose($1)', [leader.sign])
        deposed = leader.sign
      }
      if (this.#isClosed) throw new Error('the campaign was closed')
      await notificationWithin(client, everyMs)
    }
  }

  async #announce(client: pg.Client): Promise<void> {
    const { name, url, version, mayLead = true, lagMs = () => null } = this.#options
    await client.query('select headroom.announce($1, $2, $3, $4)', [name, url, version, mayLead ? 1 : 0])
    await client.query('update headroom.controllers set lag_ms = $1 where name = $2', [lagMs(), name])
  }

  /** Null: the store has no lease yet. */
  async #observe(client: pg.Client): Promise<Observed | null> {
    const { rows: found } = await client.query<{ there: boolean }>(
      "select to_regclass('headroom.controllers') is not null as there",
    )
    if (found[0]?.there !== true) return null
    const { rows } = await client.query<Observed>({
      name: 'observe',
      text: `select headroom.sign_of_life() as sign, leader.epoch, name, url, heir,
        coalesce(to_jsonb(lease)->>'seal', '') as seal,
        is_resigned = 1 as "isResigned", holder <> '' as "isLed" from headroom.leader, headroom.lease`,
    })
    const leader = rows[0] ?? null
    const key =
      leader === null || !leader.isLed ? '' : `${leader.name}/${leader.url}/${leader.epoch}/${leader.seal}`
    if (key !== this.#observed) {
      this.#observed = key
      this.#options.onLeader?.(leader === null || !leader.isLed ? null : leader)
    }
    return leader
  }

  /** Commits count as beats too; only a beat learns that the leader is asked to resign. */
  async #beat(): Promise<void> {
    const { leaseMs, now, isAlive = () => true } = this.#options
    const client = this.#client
    if (client === null || now() - this.#beatAt < leaseMs / BEATS_PER_LEASE || !isAlive()) return
    this.#beatAt = now()
    try {
      const { rows } = await client.query<{ heir: string | null }>({
        name: 'beat',
        text: 'select headroom.beat($1) as heir',
        values: [this.#holder],
      })
      this.#options.onBeat?.()
      const heir = rows[0]?.heir ?? null
      if (heir === null || this.#isAsked || this.#client === null) return
      this.#isAsked = true
      this.#options.onAsked?.(heir === '' ? null : heir)
    } catch (error) {
      const isReplaced = (error as { readonly code?: unknown }).code === FENCED
      const detail = error instanceof Error ? error.message : String(error)
      this.#end({ reason: isReplaced ? 'replaced' : 'disconnected', detail })
    }
  }

  async serves(seal: string): Promise<void> {
    const values = [this.#holder, this.#options.url, seal]
    await this.#client?.query('select headroom.serve_at($1, $2, $3)', values)
  }

  async resign(to: string | null = null): Promise<void> {
    const client = this.#client
    if (client === null || this.#term === null) return
    this.#stop()
    await giveUpLead(client, this.#holder, to).catch(() => undefined)
    this.#end(resignation(to))
    await endClient(client)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await this.#running
    const client = this.#client
    this.#end(CLOSED)
    if (client !== null) await endClient(client)
  }

  #stop(): void {
    clearInterval(this.#timer)
    this.#client = null
  }

  #end(end: TermEnd): void {
    this.#stop()
    if (this.#term === null) return
    this.#term = null
    this.#lost.resolve(end)
  }
}

function wonFrom(leader: Observed | null, isSilent: boolean): Omit<Term, 'epoch'> {
  const before = leader === null || leader.name === '' ? null : leader.name
  const reason: TermReason =
    before === null ? 'first' : leader?.isResigned ? 'resigned' : isSilent ? 'silent' : 'disconnected'
  return { reason, before }
}

/** The lock is free before the standbys are told. */
async function giveUpLead(client: pg.Client, holder: string, to: string | null): Promise<void> {
  await client.query('select headroom.resign($1, $2)', [holder, to])
  await unlock(client)
  await client.query(`notify ${LEADER_CHANNEL}`)
}

async function notificationWithin(client: pg.Client, ms: number): Promise<void> {
  const notified = Promise.withResolvers<void>()
  const timer = setTimeout(notified.resolve, ms)
  client.once('notification', notified.resolve)
  await notified.promise
  clearTimeout(timer)
  client.off('notification', notified.resolve)
}
