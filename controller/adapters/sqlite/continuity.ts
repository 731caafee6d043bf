/**
 * Compares a store with its mark, to check that everything acknowledged is still there (docs/decisions/0079).
 */
import type Database from 'better-sqlite3'
import { EMPTY_CHAIN } from '../../ports/store.ts'
import { markPath, type FoundMark } from './mark-file.ts'
import { markText, type FileMark } from './store-mark.ts'

/** From this schema version on a store has an id, a transaction counter and a flag for its mark. */
const FIRST_SCHEMA_WITH_HISTORY = 9
/** From this schema version on events form a chain. */
const FIRST_SCHEMA_WITH_CHAIN = 4

/** Extent of the data in a store. */
export interface StorePosition extends Omit<FileMark, 'storeId' | 'chain'> {
  /** Null: the schema is older than the chain. */
  readonly chain: string | null
  /** Null: the schema is older than the id. */
  readonly storeId: string | null
  readonly isMarked: boolean
  readonly supersedes: string | null
  /** Of the last event, milliseconds since the Unix epoch; null without events. */
  readonly lastEventAt: number | null
}

export type Continuity =
  | { readonly is: 'complete' }
  /** `why` is a sentence; `mark` is the text that accepts the loss; no known epoch is above `epoch`. */
  | { readonly is: 'broken'; readonly why: string; readonly mark: string; readonly epoch: number }

/** Only reads. @param schema version of the file, from 1 */
export function readPosition(db: Database.Database, schema: number): StorePosition {
  const history =
    schema < FIRST_SCHEMA_WITH_HISTORY ? undefined : db.prepare<[], HistoryRow>('select * from history').get()
  const epoch = db.prepare<[], number>('select epoch from marks').pluck().get() ?? 0
  const lastEvent = db
    .prepare<[], { seq: number; at: number }>('select seq, at from events order by seq desc limit 1')
    .get()
  const ends =
    schema < FIRST_SCHEMA_WITH_CHAIN
      ? undefined
      : db
          .prepare<[], ChainEnd>('select head_seq as seq, lower(hex(head_hash)) as chain from event_chain')
          .get()
  return {
    storeId: history?.store_id ?? null,
    epoch,
    eventSeq: ends?.seq ?? lastEvent?.seq ?? 0,
    chain: ends?.chain ?? null,
    commits: history?.commits ?? 0,
    isMarked: history?.is_marked === 1,
    supersedes: history?.supersedes ?? null,
    lastEventAt: lastEvent?.at ?? null,
  }
}

/**
 * One line: what is missing, and the options. @param accepted a named mark that does not match; null: none
 */
export function refusal(
  { why, mark }: Continuity & { readonly is: 'broken' },
  accepted: string | null = null,
): string {
  const other = accepted === null ? '' : ` --accept-loss ${accepted} names another mark.`
  return (
    `${why}.${other} Bring back the complete files, or restore a backup (headroom restore), ` +
    `or start once with --accept-loss ${mark}.`
  )
}

interface HistoryRow {
  readonly store_id: string
  readonly commits: number
  readonly is_marked: number
  readonly supersedes: string | null
}

interface ChainEnd {
  readonly seq: number
  readonly chain: string
}

/** Only reads. @param found the mark; while a controller runs it must be read before the position */
export function compareWithMark(
  db: Database.Database,
  path: string,
  position: StorePosition,
  found: FoundMark,
): Continuity {
  switch (found.is) {
    case 'absent':
      return position.isMarked ? unmarked(path, position, 'is gone') : { is: 'complete' }
    case 'damaged':
      return position.isMarked ? unmarked(path, position, 'is damaged') : { is: 'complete' }
    case 'there':
      return compare(db, path, position, found.slot.mark)
  }
}

/** The former content is unknown: an operator must decide. */
function unmarked(path: string, position: StorePosition, what: string): Continuity {
  const why =
    `${markPath(path)} ${what}, so that it is not known whether ${path} still holds ` +
    'everything that was acknowledged'
  return {
    is: 'broken',
    why,
    mark: `no-mark-${markText({ ...position, chain: position.chain ?? EMPTY_CHAIN })}`,
    epoch: position.epoch,
  }
}

function compare(db: Database.Database, path: string, position: StorePosition, mark: FileMark): Continuity {
  const text = markText(mark)
  if (position.supersedes === text) return { is: 'complete' }
  const difference = differenceOf(db, position, mark)
  if (difference === null) return { is: 'complete' }
  return {
    is: 'broken',
    why: `${path} ${difference}`,
    mark: text,
    epoch: Math.max(position.epoch, mark.epoch),
  }
}

/** @returns what the store lacks, as part of a sentence; null: nothing */
function differenceOf(db: Database.Database, position: StorePosition, mark: FileMark): string | null {
  const since =
    position.lastEventAt === null
      ? 'since its beginning'
      : `since ${new Date(position.lastEventAt).toISOString()}`
  const epochs =
    position.epoch === mark.epoch ? `epoch ${mark.epoch}` : `epochs ${position.epoch} to ${mark.epoch}`
  const missing = mark.eventSeq - position.eventSeq
  if (missing > 0) {
    return (
      `went back in time: ${missing} acknowledged events are missing, ` +
      `${position.eventSeq + 1} to ${mark.eventSeq} (${since}, ${epochs})`
    )
  }
  const commits = mark.commits - position.commits
  if (position.epoch < mark.epoch || commits > 0) {
    return (
      'went back in time: no event is missing, ' +
      `but ${Math.max(commits, 1)} acknowledged commits are (${since}, ${epochs})`
    )
  }
  if (position.storeId !== null && position.storeId !== mark.storeId)
    return `is another store than the one of ${text(mark)}: its history began elsewhere`
  if (isInHistory(db, mark, position)) return null
  return (
    'has another history than was acknowledged: ' +
    `its event ${mark.eventSeq} is not the one of the mark (${since}, ${epochs})`
  )
}

function text(mark: FileMark): string {
  return `its mark ${markText(mark)}`
}

/**
 * After a crash the store may be ahead of its mark by unacknowledged data. An event removed by retention
 * cannot be compared.
 */
function isInHistory(db: Database.Database, { eventSeq, chain }: FileMark, position: StorePosition): boolean {
  if (position.chain === null) return true
  if (eventSeq === position.eventSeq) return chain === position.chain
  const prunedSeq = db.prepare<[], number>('select pruned_seq from event_chain').pluck().get() ?? 0
  if (eventSeq <= prunedSeq) return true
  return (
    db
      .prepare<[number], string>('select lower(hex(hash)) from events where seq = ?')
      .pluck()
      .get(eventSeq) === chain
  )
}
