/** The extent of the store, and how it compares with the mark of this host. Only reads. */
import type pg from 'pg'
import { compareWithMark, type Continuity, type StorePosition } from '../sql/continuity.ts'
import { markPath, type FoundMark } from '../sql/mark-file.ts'
import type { FileMark } from '../sql/store-mark.ts'

/** Reads the position of a store with tables. */
export async function readPosition(client: pg.ClientBase): Promise<StorePosition> {
  const { rows } = await client.query<StorePosition>(
    `select store_id as "storeId", coalesce((select epoch from marks), 0) as epoch,
       head_seq as "eventSeq", encode(head_hash, 'hex') as chain, commits, is_marked = 1 as "isMarked",
       supersedes, (select at from events order by seq desc limit 1) as "lastEventAt"
     from history, event_chain`,
  )
  const [position] = rows
  if (position === undefined) throw new Error('broken invariant: the store has no history')
  return position
}

/**
 * A host without a mark has seen nothing that could be missing: another host may have written.
 * @param name of the store, for messages
 */
export async function compareStore(
  client: pg.ClientBase,
  name: string,
  markBase: string,
  position: StorePosition,
  found: FoundMark,
): Promise<Continuity> {
  if (found.is === 'absent') return { is: 'complete' }
  const seq = found.is === 'there' ? found.slot.mark.eventSeq : 0
  const { rows } = await client.query<{ pruned: number; link: string | null }>(
    `select pruned_seq as pruned, (select encode(hash, 'hex') from events where seq = $1) as link
     from event_chain`,
    [seq],
  )
  const { pruned = 0, link = null } = rows[0] ?? {}
  return compareWithMark({ name, markFile: markPath(markBase) }, position, found, () =>
    seq <= pruned ? null : (link ?? undefined),
  )
}

export function markOf({ storeId, epoch, eventSeq, commits, chain }: StorePosition): FileMark {
  if (storeId === null || chain === null)
    throw new Error('broken invariant: the store has no id, or no chain')
  return { storeId, epoch, eventSeq, commits, chain }
}
