/** Who a bearer token belongs to. */
import type { Instant } from '../../../protocol/units.ts'
import type { AccessBook } from '../../engine/access-book.ts'
import type { Caller } from '../caller.ts'
import { ApiProblem } from '../errors.ts'
import { idIn, isSecretOf } from './token-secrets.ts'

export interface AuthenticatorOptions {
  /** null: no tokens are kept here. */
  readonly book: AccessBook | null
  /** Hash of the admin token that the environment names; null: none. */
  readonly adminTokenHash: string | null
  readonly now: () => Instant
}

/** As it stands beside the name of a stored token in audit entries. */
export const FILE_TOKEN_ID = 'admin-token-file'
const FILE_CALLER: Caller = { name: 'admin', role: 'admin', tokenId: FILE_TOKEN_ID }

export class Authenticator {
  readonly #options: AuthenticatorOptions
  #wasRequired = false

  constructor(options: AuthenticatorOptions) {
    this.#options = options
  }

  /** Once there was a token it stays so until the next start: the last one that is revoked opens nothing. */
  get isRequired(): boolean {
    const { book, adminTokenHash } = this.#options
    this.#wasRequired ||= adminTokenHash !== null || (book !== null && book.size > 0)
    return this.#wasRequired
  }

  /** @throws ApiProblem unauthorized, which says nothing of what is wrong but to who holds the secret. */
  callerOf(authorization: string | undefined): Caller {
    if (authorization === undefined) throw unauthorized('Send a token: Authorization: Bearer …')
    const secret = /^Bearer +([\x21-\x7e]{1,512}) *$/i.exec(authorization)?.[1]
    if (secret === undefined) throw unauthorized('Only tokens are taken here: Authorization: Bearer …')
    const { book, adminTokenHash, now } = this.#options
    const token = book?.token(idIn(secret) ?? '')
    if (token === undefined) {
      if (isSecretOf(secret, adminTokenHash)) return FILE_CALLER
      throw unauthorized('The token is not known here.')
    }
    if (!isSecretOf(secret, token.secretHash)) throw unauthorized('The token is not known here.')
    if (token.expiresAt !== null && token.expiresAt <= now()) throw unauthorized('The token has expired.')
    book?.used(token, now())
    return { name: token.name, role: token.role, tokenId: token.id }
  }

  /** A token that was known still is: neither revoked nor expired. */
  isGood(tokenId: string): boolean {
    if (tokenId === FILE_TOKEN_ID) return true
    const { book, now } = this.#options
    const token = book?.token(tokenId)
    return token !== undefined && (token.expiresAt === null || token.expiresAt > now())
  }

  /** Whether an admin remains who is not `exceptId`. */
  hasAdmin(exceptId: string | null): boolean {
    const { book, adminTokenHash, now } = this.#options
    if (adminTokenHash !== null) return true
    for (const { id, role, expiresAt } of book?.tokens() ?? []) {
      if (role === 'admin' && id !== exceptId && (expiresAt === null || expiresAt > now())) return true
    }
    return false
  }
}

function unauthorized(detail: string): ApiProblem {
  return new ApiProblem('unauthorized', detail, { headers: { 'www-authenticate': 'Bearer realm="headroom"' } })
}
