/** Uploaded files of tasks in PostgreSQL: the next leader has them too. */
import { sql, type Kysely } from 'kysely'
import type pg from 'pg'
import type { BlobFiles, KeptFile } from '../../ports/blob-files.ts'
import type { BlobOwner } from '../../ports/blobs.ts'
import type { Schema } from '../sql/schema.ts'
import { faultOf } from './faults.ts'
import { connect, endClient, kyselyOn, type SessionLimits } from './session.ts'
import { describePlace, type StoreHost, type StorePlace } from './store-url.ts'

/** A file has up to 4 MiB, for which a commit does not wait. */
const WRITING_FILES: SessionLimits = {
  ...{ name: 'writer', statementMs: 20_000, answerMs: 25_000, idleInTransactionMs: 1_000 },
}
const LISTED = sql<KeptRow>`select owner, sha256, bytes, at from headroom.uploaded_files`

interface KeptRow extends Omit<KeptFile, 'owner'> {
  readonly owner: string
}

type Write = (text: string, values: readonly unknown[]) => Promise<void>

/** The uploaded files of a leader. */
export interface LeaderFiles {
  readonly files: BlobFiles
  close(): Promise<void>
}

/**
 * Writes in a session of its own, which begins with the first change.
 * @param holder names the term in the fence: later changes are refused with the error code HR001
 * @param db reads
 */
export function leaderFiles(
  place: StorePlace,
  at: StoreHost,
  holder: string,
  db: Kysely<Schema>,
): LeaderFiles {
  let client: pg.Client | null = null
  let last: Promise<unknown> = Promise.resolve()
  const begun = async (): Promise<pg.Client> => {
    if (client !== null) return client
    const { client: made } = await connect({ ...place, hosts: [at] }, WRITING_FILES)
    try {
      await made.query('select headroom.join_term($1)', [holder])
    } catch (error) {
      await endClient(made)
      throw error
    }
    return (client = made)
  }
  const change = async (text: string, values: readonly unknown[]): Promise<void> => {
    const session = await begun()
    try {
      await session.query(text, [holder, ...values])
    } catch (error) {
      // The next change connects again.
      client = null
      await endClient(session)
      throw error
    }
  }
  // One at a time: each has the whole time limit.
  const write: Write = (text, values) => {
    const changed = last.then(() => change(text, values))
    last = changed.catch(() => undefined)
    return changed
  }
  return {
    files: filesOver(describePlace(place), db, {
      put: (values) => write('select headroom.put_file($1, $2, $3, $4, $5)', values),
      remove: (values) => write('select headroom.remove_files($1, $2, $3)', values),
    }),
    close: async () => {
      await last
      if (client !== null) await endClient(client)
    },
  }
}

/** Returns the files for commands, while no controller runs or within their transaction. */
export function filesOn(client: pg.Client, place: StorePlace): BlobFiles {
  return filesOver(describePlace(place), kyselyOn(client), {
    put: async ([owner, sha256, at, content]) => {
      await client.query(
        `insert into headroom.uploaded_files (owner, sha256, bytes, at, content)
         values ($1, $2, octet_length($4::bytea), $3, $4::bytea) on conflict (owner, sha256) do nothing`,
        [owner, sha256, at, content],
      )
    },
    remove: async (values) => {
      await client.query('delete from headroom.uploaded_files where owner = $1 and sha256 = any($2)', [
        ...values,
      ])
    },
  })
}

interface Changes {
  /** Owner, hash, instant, content. */
  put(values: readonly [string, string, number, Buffer]): Promise<void>
  /** Owner, hashes. */
  remove(values: readonly [string, readonly string[]]): Promise<void>
}

function filesOver(name: string, db: Kysely<Schema>, { put, remove }: Changes): BlobFiles {
  const named = <T>(work: Promise<T>): Promise<T> =>
    work.catch((error: unknown) => {
      throw faultOf(error, name)
    })
  return {
    name,
    list: async () => {
      const { rows } = await named(LISTED.execute(db))
      return rows.map((row) => ({ ...row, owner: JSON.parse(row.owner) as BlobOwner }))
    },
    read: async (owner, sha256, offset, maxBytes) => {
      const query = sql<{ readonly piece: Buffer }>`
        select substring(content from ${offset + 1}::integer for ${maxBytes}::integer) as piece
        from headroom.uploaded_files where owner = ${keyOf(owner)} and sha256 = ${sha256}`
      const { rows } = await named(query.execute(db))
      return rows[0]?.piece ?? null
    },
    write: (owner, sha256, content) => named(put([keyOf(owner), sha256, Date.now(), Buffer.from(content)])),
    remove: (owner, sha256s) => named(remove([keyOf(owner), sha256s])),
    settle: () => Promise.resolve(),
    space: () => Promise.resolve(null),
  }
}

function keyOf(owner: BlobOwner): string {
  return JSON.stringify(owner)
}
