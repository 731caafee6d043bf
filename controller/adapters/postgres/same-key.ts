/**
 * All controllers of a store need the same key of secrets: with another one a new leader could not read what
 * tasks need. A standby is refused when it starts, and not when it is to take over.
 */
import type pg from 'pg'
import { StoreFault } from '../../ports/store.ts'
import type { CandidateKey } from './settings.ts'

/**
 * Checks the key of a store, which may have no lease yet.
 * @throws StoreFault if the key is another one
 */
export async function requireSameKey(client: pg.ClientBase, name: string, key: CandidateKey): Promise<void> {
  const { rows: found } = await client.query<{ there: boolean }>(
    "select to_regclass('headroom.lease') is not null as there",
  )
  if (found[0]?.there !== true || key.isNew) return
  // An earlier version has no such column.
  const { rows } = await client.query<{ id: string | null }>(
    "select to_jsonb(lease)->>'key_id' as id from headroom.lease",
  )
  const id = rows[0]?.id ?? null
  if (id === null || id === key.id) return
  throw new StoreFault(
    `${key.path} is not the key of the other controllers of ${name}: copy their file to this path, or ` +
      'start one controller once with --new-secrets-key, then the others with its key: secrets are lost',
  )
}

export async function keepKey(client: pg.ClientBase, { id, isNew }: CandidateKey): Promise<void> {
  await client.query(`update headroom.lease set key_id = $1 ${isNew ? '' : 'where key_id is null'}`, [id])
}
