/**
 * Follows the commit log of the leader, so that a takeover reads only the rest of it. A takeover uses what it
 * has if the store is what was followed; otherwise it loads everything.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { sql, type Kysely, type Transaction } from 'kysely'
import type pg from 'pg'
import type { DurationMs, Instant } from '../../../protocol/units.ts'
import { clockOffset } from '../../model/cluster-time.ts'
import { secretId, type StoredState } from '../../ports/store.ts'
import { readHistory } from '../sql/history.ts'
import { finishedCountsQuery, loadRowsIn } from '../sql/queries.ts'
import { countsOf, decodeMarks, decodeState } from '../sql/rows.ts'
import type { Schema } from '../sql/schema.ts'
import type { FileMark } from '../sql/store-mark.ts'
import { Replica, type LoggedBatch } from './replica.ts'
import { COMMIT_CHANNEL } from './commit-function.ts'
import { markOf, readPosition } from './position.ts'
import { connect, endClient, kyselyOn, READING } from './session.ts'
import { openStandbyMark, type StandbyMark } from './standby-mark.ts'
import { describePlace, type StorePlace } from './store-url.ts'

export interface Follower {
  /** Another controller leads. Call it again at will. */
  begin(): void
  /** Time since everything was applied; null: it does not follow. */
  lagMs(): number | null
  /**
   * Stops following, and resolves with the state of the store; null: it has to be loaded.
   * @param db of the store, whose fence this controller has
   */
  finish(db: Kysely<Schema>): Promise<StoredState | null>
  /** What this host adds to its own time, once it has finished; 0: it has followed no event. */
  readonly clockOffsetMs: DurationMs
  stop(): void
}

/** Notifications are hints. */
const LOOK_EVERY_MS = 200
const RETRY_MS = 1_000
const END_WITHIN_MS = 500
/** Entries read at a time. */
const ENTRIES = 200

interface Entry {
  readonly seq: number
  readonly epoch: number
  readonly batch: LoggedBatch
}

/** A followed store. */
interface Followed {
  readonly replica: Replica
  readonly schema: number
  /** Extent of the store after the last commit that was applied. */
  extent: FileMark
  /** Before that commit. The leader sends a commit once the one before is durable, also at standbys. */
  acknowledged: FileMark | null
  /** The newest event, and when it was received on this host's clock. */
  newest: { readonly at: Instant; readonly receivedAt: number } | null
}

/**
 * @param markBase the mark of this host is this path with `.standby.mark`
 * @param log of faults, one line each; following continues after them
 */
export function createFollower(place: StorePlace, markBase: string, log: (line: string) => void): Follower {
  return new OfLog(place, markBase, log)
}

class OfLog implements Follower {
  readonly #place: StorePlace
  readonly #markBase: string
  readonly #log: (line: string) => void
  #followed: Followed | null = null
  #running: Promise<void> | null = null
  #client: pg.Client | null = null
  #isEnding = false
  #caughtUpAt = 0
  #clockOffsetMs: DurationMs = 0
  #wake: () => void = () => {}

  constructor(place: StorePlace, markBase: string, log: (line: string) => void) {
    this.#place = place
    this.#markBase = markBase
    this.#log = log
  }

  begin(): void {
    if (!this.#isEnding) this.#running ??= this.#run()
  }

  lagMs(): number | null {
    return this.#followed === null ? null : performance.now() - this.#caughtUpAt
  }

  stop(): void {
    this.#isEnding = true
    this.#wake()
  }

  async finish(db: Kysely<Schema>): Promise<StoredState | null> {
    this.stop()
    let isRunning = this.#running !== null
    void this.#running?.then(() => (isRunning = false))
    await Promise.race([this.#running, delay(END_WITHIN_MS, undefined, { ref: false })])
    const followed = this.#followed
    this.#followed = null
    // It waits for a database that does not answer there, or loads everything for the first time.
    if (followed === null || isRunning) return null
    const reading = db.transaction().setIsolationLevel('repeatable read')
    const state = await reading.execute((at) => stateAt(at, followed))
    if (followed.newest !== null) {
      const { at, receivedAt } = followed.newest
      this.#clockOffsetMs = clockOffset({ at, ageMs: performance.now() - receivedAt }, Date.now())
    }
    return state
  }

  get clockOffsetMs(): DurationMs {
    return this.#clockOffsetMs
  }

  async #run(): Promise<void> {
    let reported = ''
    while (!this.#isEnding) {
      try {
        await this.#follow()
      } catch (error) {
        const why = error instanceof Error ? error.message : String(error)
        if (why !== reported) this.#log(`the commit log cannot be followed at the moment: ${why}`)
        reported = why
        if (!this.#isEnding) await this.#within(RETRY_MS)
      }
    }
    // The next read uses another connection.
    if (this.#client !== null) void endClient(this.#client)
  }

  /** Follows the store until it is stopped, or the connection ends. */
  async #follow(): Promise<void> {
    const { client } = await connect(this.#place, READING)
    this.#client = client
    let mark: StandbyMark | null = null
    try {
      client.on('notification', () => this.#wake())
      await client.query(`listen ${COMMIT_CHANNEL}`)
      const db = kyselyOn(client)
      if (this.#followed !== null && !(await isThere(db, this.#followed.extent))) {
        this.#log('the store lacks commits that this standby has followed: it loads everything again')
        this.#followed = null
      }
      mark = await openStandbyMark(client, describePlace(this.#place), this.#markBase, this.#log)
      while (!this.#isEnding) {
        this.#followed ??= await followedFrom(db, client)
        const isMore = await this.#applyNext(db, this.#followed)
        const acknowledged = this.#followed?.acknowledged ?? null
        if (acknowledged !== null) mark.put(acknowledged)
        if (isMore) continue
        this.#caughtUpAt = performance.now()
        await this.#within(LOOK_EVERY_MS)
      }
    } catch (error) {
      this.#client = null
      await endClient(client)
      throw error
    } finally {
      mark?.close()
    }
  }

  /** @returns true: more may be there */
  async #applyNext(db: Kysely<Schema>, followed: Followed): Promise<boolean> {
    const entries = await entriesAfter(db, followed.extent.commits)
    if (!applied(followed, entries)) {
      // Entries are removed after ten minutes.
      this.#log(
        `entry ${followed.extent.commits + 1} of the commit log is gone: this standby loads everything again`,
      )
      this.#followed = null
      return true
    }
    return entries.length === ENTRIES
  }

  async #within(ms: number): Promise<void> {
    const woken = new Promise<void>((resolve) => (this.#wake = resolve))
    await Promise.race([woken, delay(ms, undefined, { ref: false })])
  }
}

/** @param client the one of `db` */
async function followedFrom(db: Kysely<Schema>, client: pg.Client): Promise<Followed> {
  return db
    .transaction()
    .setIsolationLevel('repeatable read')
    .execute(async (at) => {
      const replica = new Replica(decodeState(await loadRowsIn(at)), secretId)
      const { schema } = await extentOf(at)
      return { replica, schema, extent: markOf(await readPosition(client)), acknowledged: null, newest: null }
    })
}

/** Null: the store is not the one that was followed. */
async function stateAt(at: Transaction<Schema>, followed: Followed): Promise<StoredState | null> {
  const extent = await extentOf(at)
  if (extent.schema !== followed.schema || !(await isThere(at, followed.extent))) return null
  for (;;) {
    const entries = await entriesAfter(at, followed.extent.commits)
    if (!applied(followed, entries)) return null
    if (entries.length < ENTRIES) break
  }
  if (followed.extent.commits !== extent.commits) return null
  const marks = await at
    .selectFrom('marks')
    .select(['epoch', 'next_task_seq', 'next_event_seq', 'next_decision'])
    .executeTakeFirst()
  if (marks === undefined) return null
  const state = followed.replica.state()
  return {
    ...state,
    ...(await readHistory(at)),
    marks: decodeMarks([marks.epoch, marks.next_task_seq, marks.next_event_seq, marks.next_decision]),
    finishedCounts: state.finishedCounts ?? countsOf(await finishedCountsQuery(at).execute()),
  }
}

/** False: a backup was restored, or a server answers that lacks commits. */
async function isThere(
  db: Kysely<Schema>,
  { storeId, eventSeq, chain, commits }: FileMark,
): Promise<boolean> {
  const { rows } = await sql<{ isThere: boolean }>`
    select store_id = ${storeId} and commits >= ${commits} and (
      head_seq = ${eventSeq} and head_hash = decode(${chain}, 'hex')
      or exists (select from events where seq = ${eventSeq} and hash = decode(${chain}, 'hex'))
    ) as "isThere" from history, event_chain`.execute(db)
  return rows[0]?.isThere === true
}

async function extentOf(db: Kysely<Schema>): Promise<{ readonly schema: number; readonly commits: number }> {
  const { rows } = await sql<{ schema: number; commits: number }>`
    select commits, (select max(version) from schema_version) as schema from history`.execute(db)
  const [row] = rows
  if (row === undefined) throw new Error('broken invariant: the store has no history')
  return row
}

async function entriesAfter(db: Kysely<Schema>, seq: number): Promise<readonly Entry[]> {
  const { rows } = await sql<Entry>`
    select seq, epoch, batch from commit_log where seq > ${seq}
    order by seq limit ${sql.lit(ENTRIES)}`.execute(db)
  return rows
}

/** @returns false: an entry is missing */
function applied(followed: Followed, entries: readonly Entry[]): boolean {
  for (const { seq, epoch, batch } of entries) {
    const { extent } = followed
    if (seq !== extent.commits + 1) return false
    followed.replica.apply(batch)
    const [, eventSeq, chain] = batch.chain ?? [0, extent.eventSeq, extent.chain]
    followed.extent = { storeId: extent.storeId, epoch, eventSeq, commits: seq, chain }
    followed.acknowledged = extent
    const last = batch.events?.at(-1)
    if (last !== undefined) followed.newest = { at: last[1], receivedAt: performance.now() }
  }
  return true
}
