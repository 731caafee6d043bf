/** The controllers of the store, for operators. */
import { sql, type Kysely } from 'kysely'
import type { LeaderView, Standby } from '../../ports/handover.ts'
import { StoreFault } from '../../ports/store.ts'
import type { Schema } from '../sql/schema.ts'

/** A standby tells every second that it is there. */
const SEEN_WITHIN_MS = 10_000

interface LeaseRow {
  readonly name: string
  readonly url: string
  readonly epoch: number
  readonly isLed: boolean
}

/** @throws StoreFault if the store has no lease yet */
export async function viewOfLeader(db: Kysely<Schema>): Promise<LeaderView> {
  const { rows } = await sql<LeaseRow>`
    select name, url, epoch, holder <> '' as "isLed" from headroom.leader, headroom.lease`.execute(db)
  const [row] = rows
  if (row === undefined)
    throw new StoreFault('the store has no lease: start a controller of this version once')
  const { name, url, epoch, isLed } = row
  const standbys = await sql<Standby>`
    select name, url, version, may_lead = 1 as "mayLead", lag_ms as "lagMs",
      greatest(0, extract(epoch from clock_timestamp() - seen) * 1000)::bigint as "ageMs"
    from headroom.controllers
    where name <> ${isLed ? name : ''}
      and seen > clock_timestamp() - ${SEEN_WITHIN_MS} * interval '1 millisecond'
    order by name`.execute(db)
  return { leader: isLed && name !== '' ? { name, url } : null, epoch, standbys: standbys.rows }
}
