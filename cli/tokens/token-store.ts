/**
 * Manages tokens in the store of a stopped controller: to make the first one, and to recover when all admin
 * tokens are lost.
 */
import { AccessRegistry } from '../../controller/engine/inputs/commands/access-registry.ts'
import { Authenticator } from '../../controller/api/auth/authenticator.ts'
import { newSecret } from '../../controller/api/auth/token-secrets.ts'
import { presentToken } from '../../controller/api/auth/token-present.ts'
import {
  TOKEN_NAME_PATTERN,
  TOKEN_NAME_RANGE,
  type NewTokenBody,
} from '../../controller/api/auth/token-schema.ts'
import { createSqliteStore } from '../../controller/adapters/sqlite/store.ts'
import type { Answer, AnswerTo, Refusal } from '../../controller/model/command.ts'
import { Transaction } from '../../controller/state/transaction.ts'
import {
  NO_CHANGE,
  StoreFault,
  type Store,
  type StoredState,
  type TokenRecord,
} from '../../controller/ports/store.ts'
import type { MadeToken, Token } from '../../clients/typescript/client.ts'
import { CommandFailure, EXIT_CONFLICT, EXIT_NOT_FOUND, UsageError } from '../../services/exit-codes.ts'

export interface TokenStore {
  list(): readonly Token[]
  create(wanted: NewTokenBody): Promise<MadeToken>
  revoke(id: string, force: boolean): Promise<void>
}

/** @throws StoreFault when a controller uses the store, or it is not writable */
export async function withTokenStore<T>(
  dataDir: string,
  work: (store: TokenStore) => Promise<T>,
): Promise<T> {
  const store = createSqliteStore({ dataDir, log: (line) => process.stderr.write(`${line}\n`) })
  try {
    return await work(tokenStore(store, await store.load()))
  } catch (error) {
    if (!(error instanceof StoreFault) || !error.message.includes('another controller')) throw error
    throw new CommandFailure(
      `A controller is running on ${dataDir}: use its interface, without --data-dir.`,
      EXIT_CONFLICT,
    )
  } finally {
    await store.close()
  }
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
          'The first token must be an admin: other roles cannot make tokens.',
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
          'It is the last admin token. Use --force to revoke it anyway.',
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
