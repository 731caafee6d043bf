/** Open tasks with an uploaded folder, as a store or a backup has them. Only reads. */
import Database from 'better-sqlite3'
import { faultOf } from './faults.ts'

export interface OpenWorkdir {
  readonly taskId: string
  readonly name: string
  readonly owner: string | null
  /** SHA-256 of its manifest. */
  readonly manifest: string
}

/** @throws StoreFault */
export function openWorkdirs(path: string): readonly OpenWorkdir[] {
  let db: Database.Database | undefined
  try {
    db = new Database(path, { readonly: true, fileMustExist: true })
    db.pragma('trusted_schema = off')
    return db
      .prepare<[], OpenWorkdir>(
        `select id as taskId, name, json_extract(record, '$.owner') as owner,
           json_extract(record, '$.workdir') as manifest
         from tasks where is_final = 0 and json_extract(record, '$.workdir') is not null order by seq`,
      )
      .all()
  } catch (error) {
    throw faultOf(error, path)
  } finally {
    db?.close()
  }
}
