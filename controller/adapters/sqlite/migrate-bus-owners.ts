/**
 * Owners of tasks that came over the bus get the prefix that no token can have. Such tasks are recognised by
 * their id, which is made from the client and the message, a UUID of version 5; all others are version 4.
 * Released: this file must not change.
 */
import { sql, type Kysely } from 'kysely'

export async function renameBusOwners(db: Kysely<never>): Promise<void> {
  await sql`update tasks set owner = 'nats:' || owner, record = json_set(record, '$.owner', 'nats:' || owner)
    where owner is not null and owner not like 'nats:%' and length(id) = 36
      and substr(id, 15, 1) = '5'`.execute(db)
}
