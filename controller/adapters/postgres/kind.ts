/** The kind of the store, kept in a table. */
import type pg from 'pg'
import type { StoreKind } from '../../model/store-kind.ts'
import { StoreFault } from '../../ports/store.ts'
import { otherKind } from '../sql/other-kind.ts'

/** @throws StoreFault, one line that names both options, if the store is of another kind */
export async function requireKind(client: pg.ClientBase, name: string, wanted: StoreKind): Promise<void> {
  const kept = await readKind(client)
  if (kept !== null && kept !== wanted) throw new StoreFault(otherKind(name, kept, wanted))
}

export async function readKind(client: pg.ClientBase): Promise<StoreKind | null> {
  const { rows } = await client.query<{ kind: StoreKind }>('select kind from store_kind')
  return rows[0]?.kind ?? null
}

export async function keepKind(client: pg.ClientBase, kind: StoreKind): Promise<void> {
  await client.query('insert into store_kind values (1, $1) on conflict (id) do nothing', [kind])
}
