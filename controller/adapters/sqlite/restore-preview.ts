/** Reports the loss of a restore: compares the backup with the current store and its mark. Only reads. */
import { existsSync } from 'node:fs'
import Database from 'better-sqlite3'
import type { StorePosition } from '../sql/continuity.ts'
import { readPosition } from './position.ts'
import { kyselyOf } from './dialect.ts'
import { faultOf } from './faults.ts'
import { readMark } from '../sql/mark-file.ts'
import { schemaVersion } from './migrations.ts'
import type { FileMark } from '../sql/store-mark.ts'

/** Maximum number of tasks that are named. */
const MAX_NAMED_TASKS = 20

export interface RestorePreview {
  readonly backup: StorePosition
  /** Null: missing or unreadable. */
  readonly store: StorePosition | null
  /** Why the existing store cannot be read; null: it can, or no store exists. */
  readonly unreadable: string | null
  readonly mark: FileMark | null
  /** Events in the store or the mark that the backup lacks. */
  readonly events: number
  /** The backup is no earlier state of the existing store. */
  readonly isOtherHistory: boolean
  /** Additional contents of the store; null without one. */
  readonly lost: LostRecords | null
}

export interface LostRecords {
  /** Submitted since. */
  readonly tasks: number
  /** The first of them, by submission. */
  readonly named: readonly { readonly id: string; readonly name: string; readonly state: string }[]
  /** Ended since: they would be open again. */
  readonly reopened: number
  readonly configRevisions: number
}

/** @throws StoreFault if the backup cannot be read */
export async function previewRestore(backup: string, path: string): Promise<RestorePreview> {
  const found = readMark(path)
  const mark = found.is === 'there' ? found.slot.mark : null
  const kept = await reading(backup, (db, schema) => ({
    position: readPosition(db, schema),
    next: nextOf(db),
  }))
  const { position } = kept
  const now = existsSync(path)
    ? await reading(path, (db, schema) => ({
        position: readPosition(db, schema),
        lost: lostRecords(db, backup, kept.next),
        isOtherHistory: !hasEvent(db, schema, position),
      })).catch((error: unknown) => faultOf(error, path).message)
    : null
  const store = typeof now === 'string' || now === null ? null : now
  const reached = Math.max(store?.position.eventSeq ?? 0, mark?.eventSeq ?? 0)
  return {
    backup: position,
    store: store?.position ?? null,
    unreadable: typeof now === 'string' ? now : null,
    mark,
    events: Math.max(0, reached - position.eventSeq),
    isOtherHistory: store?.isOtherHistory ?? false,
    lost: store?.lost ?? null,
  }
}

async function reading<T>(path: string, read: (db: Database.Database, schema: number) => T): Promise<T> {
  let db: Database.Database | undefined
  try {
    db = new Database(path, { readonly: true, fileMustExist: true })
    db.pragma('trusted_schema = off')
    return read(db, await schemaVersion(kyselyOf(db), path))
  } catch (error) {
    throw faultOf(error, path)
  } finally {
    db?.close()
  }
}

interface Next {
  readonly taskSeq: number
  readonly revision: number
}

function nextOf(db: Database.Database): Next {
  const row = db
    .prepare<[], Next>(
      'select coalesce(max(seq), 0) + 1 as taskSeq, ' +
        '(select coalesce(max(revision), 0) from config_revisions) as revision from tasks',
    )
    .get()
  return row ?? { taskSeq: 1, revision: 0 }
}

function lostRecords(db: Database.Database, backup: string, { taskSeq, revision }: Next): LostRecords {
  db.prepare('attach ? as kept').run(backup)
  const count = (sql: string, value: number): number =>
    db.prepare<[number], number>(sql).pluck().get(value) ?? 0
  return {
    tasks: count('select count(*) from main.tasks where seq >= ?', taskSeq),
    named: db
      .prepare<[number], LostRecords['named'][number]>(
        `select id, name, state from main.tasks where seq >= ? order by seq limit ${MAX_NAMED_TASKS}`,
      )
      .all(taskSeq),
    reopened: count(
      `select count(*) from main.tasks as present join kept.tasks as past on past.id = present.id
       where present.is_final = 1 and past.is_final = 0 and present.seq < ?`,
      taskSeq,
    ),
    configRevisions: count('select count(*) from main.config_revisions where revision > ?', revision),
  }
}

/** The backup's last event, unless retention has removed it since. */
function hasEvent(db: Database.Database, schema: number, { eventSeq, chain }: StorePosition): boolean {
  const here = readPosition(db, schema)
  if (eventSeq === here.eventSeq) return chain === here.chain
  const row = db
    .prepare<[number], string>('select lower(hex(hash)) from main.events where seq = ?')
    .pluck()
    .get(eventSeq)
  return row === undefined ? eventSeq < here.eventSeq : row === chain
}
