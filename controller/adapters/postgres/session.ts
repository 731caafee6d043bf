/** Connections: the host that accepts writes, the settings of a session, numbers instead of texts. */
import { setTimeout as delay } from 'node:timers/promises'
import { Kysely, PostgresDialect } from 'kysely'
import pg from 'pg'
import { StoreFault } from '../../ports/store.ts'
import type { Schema } from '../sql/schema.ts'
import { isPassing } from './faults.ts'
import { describeHost, describePlace, tlsOptions, type StoreHost, type StorePlace } from './store-url.ts'

export const SCHEMA = 'headroom'
/** Versions that the tests ran against. */
const TESTED_VERSIONS = [15]
/** `client_connection_check_interval` exists from this one on. */
const MIN_VERSION = 14

const CONNECT_TIMEOUT_MS = 5_000
/** A cut connection is found within this time, on the side of the server too. */
const CUT_CONNECTION_MS = 1_000

export interface SessionLimits {
  readonly name: 'writer' | 'reader'
  /** The server cancels a statement that takes longer. */
  readonly statementMs: number
  /** The client gives up, because a frozen server cancels nothing. */
  readonly answerMs: number
  readonly idleInTransactionMs: number
}

/** Reads: a page of a large store, and everything at a start. */
export const READING: SessionLimits = {
  ...{ name: 'reader', statementMs: 60_000, answerMs: 65_000, idleInTransactionMs: 60_000 },
}

/** Commands: backup, restore and migration of large stores. */
export const COPYING: SessionLimits = {
  ...{ name: 'writer', statementMs: 3_600_000, answerMs: 3_605_000, idleInTransactionMs: 3_600_000 },
}

/** A writer gives up a commit well before its lease has passed. */
export function writing(leaseMs: number): SessionLimits {
  return {
    ...{ name: 'writer', statementMs: Math.floor(leaseMs * 0.75), answerMs: leaseMs },
    idleInTransactionMs: 1_000,
  }
}

const INT8 = 20
/** Every integer of the schema is below 2^53. */
const types: pg.CustomTypesConfig = {
  getTypeParser: ((oid: number, format?: 'text' | 'binary') =>
    oid === INT8 ? Number : pg.types.getTypeParser(oid, format)) as pg.CustomTypesConfig['getTypeParser'],
}

function clientConfig(place: StorePlace, at: StoreHost, limits: SessionLimits): pg.ClientConfig {
  return {
    ...{ host: at.host, port: at.port, database: place.database, user: place.user, types },
    ...(place.password === null ? {} : { password: place.password }),
    ssl: tlsOptions(place, at),
    application_name: `headroom ${limits.name}`,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    query_timeout: limits.answerMs,
    keepAlive: true,
    keepAliveInitialDelayMillis: CUT_CONNECTION_MS,
  }
}

/**
 * Connects to the first host that accepts writes.
 * @throws the error of the last host, or StoreFault
 */
export async function connect(
  place: StorePlace,
  limits: SessionLimits,
): Promise<{ readonly client: pg.Client; readonly at: StoreHost }> {
  let last: unknown = new StoreFault(`${describePlace(place)} names no host`)
  for (const at of place.hosts) {
    const client = new pg.Client(clientConfig(place, at, limits))
    // Reported by the query that fails; without a listener it would end the process.
    client.on('error', () => {})
    try {
      await client.connect()
      // A session that only reads sets it itself.
      const { rows } = await client.query<{ off: boolean }>(
        "select current_setting('transaction_read_only') = 'off' as off",
      )
      await prepareSession(client, limits)
      if (rows[0]?.off === true) return { client, at }
      last = new NoPrimary(`${describeHost(at)} is read-only: no primary is reachable`)
    } catch (error) {
      last = error
    }
    await client.end().catch(() => undefined)
    if (!isPassing(last)) throw last
  }
  throw last
}

class NoPrimary extends Error {
  readonly code = '25006'
}

/** Settings of a session. */
async function prepareSession(client: pg.ClientBase, limits: SessionLimits): Promise<void> {
  const { rows } = await client.query<{ version: number; encoding: string }>(
    "select current_setting('server_version_num')::int as version, " +
      "current_setting('server_encoding') as encoding",
  )
  const { version = 0, encoding = '' } = rows[0] ?? {}
  if (version < MIN_VERSION * 10_000)
    throw new StoreFault(
      `PostgreSQL ${Math.floor(version / 10_000)} is too old: ${MIN_VERSION} or newer is required, and ` +
        `${TESTED_VERSIONS.join()} is tested`,
    )
  if (encoding !== 'UTF8')
    throw new StoreFault(`the database has encoding ${encoding}: create it with encoding UTF8`)
  const settings: Readonly<Record<string, string>> = {
    search_path: SCHEMA,
    statement_timeout: String(limits.statementMs),
    idle_in_transaction_session_timeout: String(limits.idleInTransactionMs),
    client_min_messages: 'error',
    // PostgreSQL compiles short statements for 50 ms while its estimates of new tables are too high.
    jit: 'off',
    // A cut connection of a controller must not keep the lock of the store.
    tcp_keepalives_idle: '1',
    tcp_keepalives_interval: '1',
    tcp_keepalives_count: '3',
    tcp_user_timeout: String(CUT_CONNECTION_MS),
    client_connection_check_interval: String(CUT_CONNECTION_MS),
    ...(limits.name === 'reader' ? { default_transaction_read_only: 'on' } : {}),
    // A commit is durable when it is acknowledged, whatever the default of the server is.
    ...(limits.name === 'writer' ? { synchronous_commit: 'on' } : {}),
  }
  const calls = Object.entries(settings).map(([name], i) => `set_config('${name}', $${i + 1}, false)`)
  await client.query(`select ${calls.join(', ')}`, Object.values(settings))
  // The commit log is most of what is compressed, and LZ4 takes a fifth of the server's time off a commit.
  await client.query(
    `select set_config(name, 'lz4', false) from pg_settings
     where name = 'default_toast_compression' and 'lz4' = any(enumvals)`,
  )
}

/**
 * PgBouncer in transaction mode gives each transaction another session: settings, locks and the fence would
 * belong to other clients too. A pooler that gives out the session that was used last gives the same one to
 * both clients; one that gives them out in turn gives another one to the client that asks twice.
 * @throws StoreFault if the clients share sessions
 */
export async function requireOwnSessions(a: pg.ClientBase, b: pg.ClientBase): Promise<void> {
  const [ofA, ofB] = [new Set<number>(), new Set<number>()]
  for (const [client, sessions] of [...turns(a, ofA), ...turns(b, ofB), ...turns(a, ofA)])
    sessions.add(await sessionOf(client))
  const isShared = [...ofA].some((session) => ofB.has(session))
  if (ofA.size === 1 && ofB.size === 1 && !isShared) return
  throw new StoreFault(
    'the connection goes through a pooler that shares sessions (PgBouncer in transaction mode): ' +
      'use pool_mode = session, or connect to PostgreSQL itself',
  )
}

function turns(client: pg.ClientBase, sessions: Set<number>) {
  return [1, 2].map(() => [client, sessions] as const)
}

async function sessionOf(client: pg.ClientBase): Promise<number> {
  const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid')
  return rows[0]?.pid ?? 0
}

/** Kysely on one client, for commands. The caller ends the client. */
export function kyselyOn(client: pg.Client): Kysely<Schema> {
  const released = Object.assign(client, { release: () => {} })
  return new Kysely<Schema>({
    dialect: new PostgresDialect({
      pool: {
        options: {},
        connect: () => Promise.resolve(released as never),
        end: () => Promise.resolve(),
      },
    }),
  })
}

/** Kysely on a pool of connections that only read. */
export function readingPool(place: StorePlace, at: StoreHost): { db: Kysely<Schema>; end(): Promise<void> } {
  const pool = new pg.Pool({
    ...clientConfig(place, at, READING),
    max: place.poolSize,
    // The types lack it, but the pool waits for the promise.
    onConnect: ((client) => prepareSession(client, READING)) as (client: pg.ClientBase) => void,
  })
  const open = new Set<pg.PoolClient>()
  // Errors are those of its queries, also while the pool ends.
  pool.on('connect', (client) => open.add(client.on('error', () => {})))
  pool.on('remove', (client) => open.delete(client))
  // An idle connection was cut: the pool makes another one when it is needed.
  pool.on('error', () => {})
  const db = new Kysely<Schema>({ dialect: new PostgresDialect({ pool }) })
  return { db, end: () => ended(db.destroy(), () => [...open]) }
}

export function endClient(client: pg.Client): Promise<void> {
  return ended(client.end(), () => [client])
}

/** A connection that does not close is left to the server. */
const CLOSE_WITHIN_MS = 1_000

async function ended(end: Promise<void>, clients: () => readonly pg.ClientBase[]): Promise<void> {
  // The timer keeps no thread alive.
  const late = delay(CLOSE_WITHIN_MS, undefined, { ref: false })
  await Promise.race([end.catch(() => undefined), late])
  for (const client of clients() as readonly (pg.Client & { readonly _ended: boolean })[])
    if (!client._ended) client.connection.stream.destroy()
}
