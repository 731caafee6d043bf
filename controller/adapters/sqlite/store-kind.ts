/**
 * The kind of a store, kept in the header of its file (`user_version`), so that every copy has it. Files of
 * earlier versions have none: it is derived from their nodes.
 */
import type Database from 'better-sqlite3'
import { STORE_KINDS, type StoreKind } from '../../model/store-kind.ts'
import { StoreFault } from '../../ports/store.ts'
import { otherKind } from '../sql/other-kind.ts'

/** Nodes of the first schema were all simulated: their records name no device. */
const ALL_SIMULATED =
  'select count(*) as nodes, ' +
  "coalesce(sum(coalesce(json_extract(record, '$.device'), 'simulated') != 'simulated'), 0) as others " +
  'from nodes'

/**
 * Only reads.
 * @param schema 0: the file has no tables yet
 * @throws StoreFault, one line that names both options, if the store is of another kind
 */
export function requireKind(db: Database.Database, path: string, schema: number, wanted: StoreKind): void {
  const number = db.pragma('user_version', { simple: true }) as number
  const kept = STORE_KINDS[number - 1]
  if (number !== 0 && kept === undefined)
    throw new StoreFault(
      `${path} has kind ${number}, which is unknown to this version: start a newer version`,
    )
  if (kept === wanted || (kept === undefined && schema === 0)) return
  if (kept !== undefined) throw new StoreFault(otherKind(path, kept, wanted))
  const { nodes, others } = db.prepare(ALL_SIMULATED).get() as {
    readonly nodes: number
    readonly others: number
  }
  if (others > 0 && wanted !== 'live') throw new StoreFault(otherKind(path, 'live', wanted))
  if (others === 0 && nodes > 0 && wanted === 'live')
    throw new StoreFault(otherKind(path, 'simulated', wanted))
}

export function keepKind(db: Database.Database, kind: StoreKind): void {
  const number = STORE_KINDS.indexOf(kind) + 1
  if (db.pragma('user_version', { simple: true }) !== number) db.pragma(`user_version = ${number}`)
}
