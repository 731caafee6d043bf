/** `headroom token …`. */
import { existsSync, linkSync, rmSync, writeFileSync } from 'node:fs'
import type { AuditEntry, AuditQuery, MadeToken, Token } from '../../clients/typescript/client.ts'
import { Authenticator } from '../../controller/api/auth/authenticator.ts'
import { presentToken } from '../../controller/api/auth/token-present.ts'
import {
  TOKEN_NAME_PATTERN,
  TOKEN_NAME_RANGE,
  type NewTokenBody,
} from '../../controller/api/auth/token-schema.ts'
import { newSecret } from '../../controller/api/auth/token-secrets.ts'
import { AccessRegistry } from '../../controller/engine/inputs/commands/access-registry.ts'
import type { Answer, AnswerTo, Refusal } from '../../controller/model/command.ts'
import type { Role } from '../../controller/model/role.ts'
import { NO_CHANGE, type Store, type StoredState, type TokenRecord } from '../../controller/ports/store.ts'
import { Transaction } from '../../controller/state/transaction.ts'
import {
  CommandFailure,
  EXIT_CONFLICT,
  EXIT_NOT_FOUND,
  EXIT_OK,
  UsageError,
} from '../../services/exit-codes.ts'
import { cannotBeWritten, checkPlace } from '../../services/output-file.ts'
import { openClient, type CommandOptions } from '../command/session.ts'
import { printDone, printList, printOne, type Column } from '../output/table.ts'
import { withStoppedStore } from './stopped-store.ts'

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
      : await withTokenStore(dataDir, (store) => store.create(wanted), false)
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
      : await withTokenStore(dataDir, (store) => Promise.resolve(store.list()))
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
  } else await withTokenStore(dataDir, (store) => revoke((id) => store.revoke(id, force)))
  return EXIT_OK
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

/**
 * Manages tokens in store of a stopped controller: to make the first one, and to recover when all admin
 * tokens are lost.
 */

export interface TokenStore {
  list(): readonly Token[]
  create(wanted: NewTokenBody): Promise<MadeToken>
  revoke(id: string, force: boolean): Promise<void>
}

/** The first token may be made before the store exists. */
function withTokenStore<T>(
  dataDir: string,
  work: (store: TokenStore) => Promise<T>,
  isExpected = true,
): Promise<T> {
  return withStoppedStore(dataDir, isExpected, async (store) => work(tokenStore(store, await store.load())))
}

function tokenStore(store: Store, state: StoredState): TokenStore {
  let turn = new Transaction()
  const book = new AccessRegistry({
    transaction: () => turn,
    whenDurable: (done) => done(),
    write: () => {},
    fault: () => null,
  })
  book.restore(state)
  const authenticator = new Authenticator({ book, adminTokenHash: null, now: Date.now })
  const commit = async <V>(command: (answer: AnswerTo<V>) => void): Promise<V> => {
    const value = valueOf(command)
    const { access } = turn
    turn = new Transaction()
    await store.commit({ ...NO_CHANGE, access, marks: state.marks })
    return value
  }
  return {
    list: () => [...book.tokens()].map(presentToken),
    async create({ name, role, expires_in_seconds: seconds = null }) {
      if (!new RegExp(TOKEN_NAME_PATTERN).test(name))
        throw new UsageError(`the name must be ${TOKEN_NAME_RANGE}`)
      if (role !== 'admin' && !authenticator.hasAdmin(null)) {
        throw new CommandFailure(
          'The first token must have the role admin: other roles cannot create tokens.',
          EXIT_CONFLICT,
        )
      }
      const { id, secret, hash } = newSecret()
      const createdAt = Date.now()
      const expiresAt = seconds === null ? null : createdAt + seconds * 1000
      const token = {
        id,
        name,
        role,
        secretHash: hash,
        createdAt,
        createdBy: null,
        expiresAt,
        lastUsedAt: null,
      }
      return { ...presentToken(await commit<TokenRecord>((answer) => book.create(token, answer))), secret }
    },
    async revoke(id, force) {
      if (book.token(id)?.role === 'admin' && !force && !authenticator.hasAdmin(id)) {
        throw new CommandFailure(
          'This is the last admin token. Use --force to revoke it anyway.',
          EXIT_CONFLICT,
        )
      }
      await commit<null>((answer) => book.revoke(id, answer))
    },
  }
}

/** Here the answer arrives within the call. */
function valueOf<V>(command: (answer: AnswerTo<V>) => void): V {
  const given: Answer<V>[] = []
  command((answer) => given.push(answer))
  const [answer] = given
  if (answer?.ok === true) return answer.value
  const refusal: Refusal | undefined = answer?.refusal
  if (refusal?.code === 'not_found')
    throw new CommandFailure(`Token ${JSON.stringify(refusal.id)} not found.`, EXIT_NOT_FOUND)
  throw new CommandFailure(
    refusal !== undefined && 'detail' in refusal ? refusal.detail : 'The change was refused.',
    EXIT_CONFLICT,
  )
}

export interface AuditOptions
  extends CommandOptions, Pick<AuditQuery, 'actor' | 'action' | 'target' | 'outcome'> {
  readonly last: number
}

/** Page size of the interface. */
const PAGE = 200

export async function audit({
  output,
  last,
  actor,
  action,
  target,
  outcome,
  ...server
}: AuditOptions): Promise<number> {
  const client = openClient(server)
  const filter = {
    ...(actor === undefined ? {} : { actor }),
    ...(action === undefined ? {} : { action }),
    ...(target === undefined ? {} : { target }),
    ...(outcome === undefined ? {} : { outcome }),
  }
  const entries: AuditEntry[] = []
  for await (const entry of client.audit.each({ ...filter, limit: Math.min(PAGE, last) })) {
    entries.push(entry)
    if (entries.length === last) break
  }
  await printList(entries, AUDIT_COLUMNS, output)
  return EXIT_OK
}

const AUDIT_COLUMNS: readonly Column<AuditEntry>[] = [
  { title: 'AT', of: (entry) => entry.at },
  { title: 'WHO', of: (entry) => entry.actor },
  { title: 'FROM', of: (entry) => entry.address },
  {
    title: 'OUTCOME',
    of: (entry) => (entry.code === null ? entry.outcome : `${entry.outcome}: ${entry.code}`),
  },
  { title: 'ACTION', of: (entry) => entry.action },
  { title: 'TARGET', of: (entry) => entry.target },
  { title: 'LEFT OUT', isNumber: true, isWide: true, of: (entry) => entry.left_out },
  { title: 'ROLE', isWide: true, of: (entry) => entry.role },
  { title: 'TOKEN', isWide: true, of: (entry) => entry.token_id },
  { title: 'REQUEST', isWide: true, of: (entry) => entry.request_id },
]
