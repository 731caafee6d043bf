/** `headroom token …`. */
import { existsSync, linkSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { STORE_FILE } from '../../controller/adapters/sqlite/store.ts'
import { newSecret } from '../../controller/api/auth/token-secrets.ts'
import type { Role } from '../../controller/model/role.ts'
import type { MadeToken, Token } from '../../clients/typescript/client.ts'
import { EXIT_OK, UsageError } from '../../services/exit-codes.ts'
import { cannotBeWritten, checkPlace } from '../../services/output-file.ts'
import { printDone, printList, printOne, type Column } from '../output/table.ts'
import { openClient, type CommandOptions } from '../command/session.ts'
import { withTokenStore } from './token-store.ts'

export interface TokenOptions extends CommandOptions {
  readonly dataDir?: string
}

export interface TokenCreateOptions extends TokenOptions {
  readonly role: Role
  /** Milliseconds. */
  readonly expires?: number
}

/** Only the secret goes to stdout, so that it can be piped. */
export async function tokenCreate(name: string, options: TokenCreateOptions): Promise<number> {
  const { output, role, expires, dataDir, ...server } = options
  const wanted = { name, role, expires_in_seconds: expires === undefined ? null : Math.ceil(expires / 1000) }
  const made: MadeToken =
    dataDir === undefined
      ? await openClient(server).tokens.create(wanted)
      : await withTokenStore(dataDir, (store) => store.create(wanted))
  if (output !== 'table' && output !== 'wide') {
    await printOne(made, [], output)
    return EXIT_OK
  }
  const until = made.expires_at === null ? 'never expires' : `expires at ${made.expires_at}`
  process.stderr.write(
    `token ${made.id}: ${made.name}, ${made.role}, ${until}. This is its secret; it is not shown again:\n`,
  )
  process.stdout.write(`${made.secret}\n`)
  return EXIT_OK
}

export async function tokenList({ output, dataDir, ...server }: TokenOptions): Promise<number> {
  const tokens =
    dataDir === undefined
      ? await openClient(server).tokens.list()
      : await withTokenStore(requireStoreIn(dataDir), (store) => Promise.resolve(store.list()))
  await printList(tokens, COLUMNS, output)
  return EXIT_OK
}

export async function tokenRevoke(
  ids: readonly string[],
  options: TokenOptions & { readonly force?: boolean },
): Promise<number> {
  const { output, dataDir, force = false, ...server } = options
  const revoke = async (revokeOne: (id: string) => Promise<unknown>): Promise<void> => {
    for (const id of ids) {
      await revokeOne(id)
      await printDone({ id, revoked: true }, `${id}: revoked`, output)
    }
  }
  if (dataDir === undefined) {
    const client = openClient(server)
    await revoke((id) => client.tokens.revoke(id, { force }))
  } else await withTokenStore(requireStoreIn(dataDir), (store) => revoke((id) => store.revoke(id, force)))
  return EXIT_OK
}

/**
 * The first token may be made before the store exists; for other commands a missing store is a mistyped name.
 * @throws UsageError
 */
function requireStoreIn(dataDir: string): string {
  const path = resolve(join(dataDir, STORE_FILE))
  if (!existsSync(path)) throw new UsageError(`no store at ${path}: name its folder with --data-dir`)
  return dataDir
}

export function tokenGenerate({ out }: { readonly out?: string }): number {
  const { secret } = newSecret()
  if (out === undefined) process.stdout.write(`${secret}\n`)
  else writeNew(out, `${secret}\n`)
  return EXIT_OK
}

/** Never overwrites: the draft is linked to its place, which fails when a file exists there. */
function writeNew(path: string, text: string): void {
  const option = `--out ${path}`
  if (existsSync(path)) return keepsLink(path)
  checkPlace(option, path)
  const draft = `${path}.new`
  try {
    rmSync(draft, { force: true })
    writeFileSync(draft, text, { mode: 0o600, flag: 'wx' })
    linkSync(draft, path)
    process.stderr.write(`wrote ${path}: it grants the role admin to everyone who can read it\n`)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') cannotBeWritten(option, error)
    keepsLink(path)
  } finally {
    rmSync(draft, { force: true })
  }
}

function keepsLink(path: string): void {
  process.stderr.write(`${path} exists and was not changed\n`)
}

const COLUMNS: readonly Column<Token>[] = [
  { title: 'ID', of: (token) => token.id },
  { title: 'NAME', of: (token) => token.name },
  { title: 'ROLE', of: (token) => token.role },
  { title: 'EXPIRES', of: (token) => token.expires_at },
  { title: 'LAST USED', of: (token) => token.last_used_at },
  { title: 'CREATED', isWide: true, of: (token) => token.created_at },
  { title: 'BY', isWide: true, of: (token) => token.created_by },
]
