/** One controller per database: a lock of the session, which ends with its connection. */
import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import { StoreFault } from '../../ports/store.ts'

/** The letters `headroom` as a number. */
const LOCK = '7521962890172263277'
const TRY_EVERY_MS = 100

/** @throws StoreFault if another session has it and keeps it for this time */
export async function holdLock(client: pg.ClientBase, waitMs: number): Promise<void> {
  const until = performance.now() + waitMs
  for (;;) {
    if (await tryLock(client)) return
    if (performance.now() >= until)
      throw new StoreFault(
        `the database is in use by another controller${await whoHolds(client)}: stop it first, or use ` +
          'another database',
      )
    await delay(TRY_EVERY_MS)
  }
}

export async function tryLock(client: pg.ClientBase): Promise<boolean> {
  const { rows } = await client.query<{ held: boolean }>(`select pg_try_advisory_lock(${LOCK}) as held`)
  return rows[0]?.held === true
}

export async function unlock(client: pg.ClientBase): Promise<void> {
  await client.query(`select pg_advisory_unlock(${LOCK})`)
}

async function whoHolds(client: pg.ClientBase): Promise<string> {
  const { rows } = await client.query<{ address: string | null }>(
    `select host(activity.client_addr) as address from pg_locks join pg_stat_activity activity using (pid)
     where locktype = 'advisory' and granted and database =
       (select oid from pg_database where datname = current_database())
       and (classid::bigint << 32 | objid::bigint) = ${LOCK} limit 1`,
  )
  const address = rows[0]?.address ?? null
  return address === null ? '' : ` (connected from ${address})`
}
