/** Shows who leads, and asks the leader to resign: commands of an operator on a host of a controller. */
import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import { StoreFault } from '../../ports/store.ts'
import { faultOf } from './faults.ts'
import { connect, COPYING } from './session.ts'
import { describePlace, type StorePlace } from './store-url.ts'

export interface StandbyRow {
  readonly name: string
  readonly url: string
  readonly version: string
  readonly mayLead: boolean
  /** Since it was last seen. */
  readonly ageMs: number
  /** How far it was behind the leader then; null: it does not follow. */
  readonly lagMs: number | null
}

export interface LeaderView {
  /** Null: no controller leads. */
  readonly leader: { readonly name: string; readonly url: string } | null
  readonly epoch: number
  /** Number of terms. */
  readonly terms: number
  /** By name; those seen lately. */
  readonly standbys: readonly StandbyRow[]
}

/** A standby tells every second that it is there. */
const SEEN_WITHIN_MS = 10_000
const LOOK_EVERY_MS = 100

/** @throws StoreFault */
export function viewLeader(place: StorePlace): Promise<LeaderView> {
  return connected(place, (client) => view(client))
}

/**
 * Resolves with the next leader, once it answers requests.
 * @param to its name; null: any standby
 * @throws StoreFault if no standby can take over, or none has within this time
 */
export function askToResign(place: StorePlace, to: string | null, withinMs: number): Promise<LeaderView> {
  return connected(place, async (client) => {
    const before = await view(client)
    requireSuccessor(before, to)
    await client.query('update headroom.lease set is_asked = 1, asked_heir = $1', [to])
    const until = performance.now() + withinMs
    for (;;) {
      const now = await view(client)
      if (now.epoch > before.epoch && now.leader !== null && now.leader.url !== '') return now
      if (performance.now() >= until) {
        await client.query('update headroom.lease set is_asked = 0, asked_heir = null')
        throw new StoreFault(`no other controller leads after ${withinMs / 1_000} s: see headroom leader`)
      }
      await delay(LOOK_EVERY_MS)
    }
  })
}

function requireSuccessor({ leader, standbys }: LeaderView, to: string | null): void {
  if (leader === null) throw new StoreFault('no controller leads at the moment: see headroom leader')
  const able = standbys.filter(({ mayLead }) => mayLead).map(({ name }) => name)
  const names = able.length === 0 ? 'no standby is there' : `standbys are ${able.join(', ')}`
  if (to === leader.name) throw new StoreFault(`${to} leads already`)
  if (to === null ? able.length === 0 : !able.includes(to))
    throw new StoreFault(`${to ?? 'another controller'} cannot take over: ${names}`)
}

async function view(client: pg.ClientBase): Promise<LeaderView> {
  const { rows } = await client.query<{
    name: string
    url: string
    epoch: number
    terms: number
    isLed: boolean
  }>(
    `select name, url, epoch, takeovers as terms, holder <> '' as "isLed"
     from headroom.leader, headroom.lease`,
  )
  const [row] = rows
  if (row === undefined)
    throw new StoreFault('the store has no lease: start a controller of this version once')
  const leader = row.isLed && row.name !== '' ? { name: row.name, url: row.url } : null
  const standbys = await client.query<StandbyRow>(
    `select name, url, version, may_lead = 1 as "mayLead", lag_ms as "lagMs",
       (extract(epoch from clock_timestamp() - seen) * 1000)::bigint as "ageMs"
     from headroom.controllers where seen > clock_timestamp() - $1 * interval '1 millisecond'
     order by name`,
    [SEEN_WITHIN_MS],
  )
  return {
    ...{ leader, epoch: row.epoch, terms: row.terms },
    standbys: standbys.rows.filter(({ name }) => name !== leader?.name),
  }
}

async function connected<T>(place: StorePlace, work: (client: pg.ClientBase) => Promise<T>): Promise<T> {
  const name = describePlace(place)
  try {
    const { client } = await connect(place, COPYING)
    return await work(client).finally(() => client.end())
  } catch (error) {
    if ((error as { readonly code?: unknown }).code === UNDEFINED_TABLE)
      throw new StoreFault(`${name} has no lease: start a controller of this version once`, { cause: error })
    throw faultOf(error, name)
  }
}

const UNDEFINED_TABLE = '42P01'
