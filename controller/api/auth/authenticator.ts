/** Identifies the caller by bearer token or browser session. */
import type { Socket } from 'node:net'
import type { Instant } from '../../../protocol/units.ts'
import type { AccessRegistry } from '../../engine/inputs/commands/access-registry.ts'
import type { Caller } from './caller.ts'
import { ApiProblem } from '../http/errors.ts'
import { cookieIn, sessionCookieOf } from './cookies.ts'
import type { SignIn } from './sign-in.ts'
import { idIn, isSecretOf } from './token-secrets.ts'

export interface AuthenticatorOptions {
  /** null: there are no stored tokens. */
  readonly book: AccessRegistry | null
  /** Hash of the admin token from the environment, or null. */
  readonly adminTokenHash: string | null
  readonly now: () => Instant
  /** null: sign-in with a browser is not configured. */
  readonly signIn?: SignIn | null
  /** null: there is no Unix socket. */
  readonly peers?: Peers | null
}

/** Callers that a Unix socket identifies. */
export interface Peers {
  /** Resolves once the caller of a connection is known. */
  identified(socket: Socket): Promise<void>
  /** null: a connection of another kind, or of an unknown user. */
  callerOf(socket: Socket): Caller | null
}

/** Begins the token id of a caller that a Unix socket identified. */
export const PEER_ID_PREFIX = 'uid:'

/** Parts of a request that identify its caller. */
export interface Credentials {
  readonly authorization?: string | undefined
  readonly cookie?: string | undefined
}

/** Name of the environment's token in audit entries. */
const FILE_TOKEN_ID = 'admin-token-file'
const FILE_CALLER: Caller = { name: 'admin', role: 'admin', tokenId: FILE_TOKEN_ID }

export class Authenticator {
  readonly #options: AuthenticatorOptions
  #wasRequired = false

  constructor(options: AuthenticatorOptions) {
    this.#options = options
  }

  /** Stays true until the next start once there was a token: revoking the last one does not open the API. */
  get isRequired(): boolean {
    const { book, adminTokenHash, signIn = null, peers = null } = this.#options
    this.#wasRequired ||=
      signIn !== null || peers !== null || adminTokenHash !== null || (book !== null && book.size > 0)
    return this.#wasRequired
  }

  /**
   * A token takes precedence over the user of a Unix socket, and that user over a session.
   * @throws ApiProblem unauthorized, with details only for the holder of the secret.
   */
  callerOf({ authorization, cookie }: Credentials, socket: Socket): Caller {
    if (authorization === undefined) {
      const caller = this.#options.peers?.callerOf(socket) ?? this.#signedIn(cookie)
      if (caller !== null) return caller
      throw unauthorized(
        this.#options.signIn
          ? 'Sign in, or send a token: Authorization: Bearer …'
          : 'Send a token: Authorization: Bearer …',
      )
    }
    const secret = /^Bearer +([\x21-\x7e]{1,512}) *$/i.exec(authorization)?.[1]
    if (secret === undefined)
      throw unauthorized('Unsupported authorization scheme. Send a token: Authorization: Bearer …')
    const { book, adminTokenHash, now } = this.#options
    const token = book?.token(idIn(secret) ?? '')
    if (token === undefined) {
      if (isSecretOf(secret, adminTokenHash)) return FILE_CALLER
      throw unauthorized('The token is unknown.')
    }
    if (!isSecretOf(secret, token.secretHash)) throw unauthorized('The token is unknown.')
    if (token.expiresAt !== null && token.expiresAt <= now()) throw unauthorized('The token has expired.')
    book?.used(token, now())
    return { name: token.name, role: token.role, tokenId: token.id }
  }

  /** Returns null instead of throwing a problem. */
  knownCaller(credentials: Credentials, socket: Socket): Caller | null {
    try {
      return this.callerOf(credentials, socket)
    } catch (error) {
      if (error instanceof ApiProblem) return null
      throw error
    }
  }

  #signedIn(cookie: string | undefined): Caller | null {
    const { signIn = null } = this.#options
    if (signIn === null) return null
    const secret = cookieIn(cookie, sessionCookieOf(signIn.isSecure))
    return secret === null ? null : signIn.sessions.callerOf(secret)
  }

  /** Returns whether a known token or session is still valid: neither revoked nor expired. */
  isGood(tokenId: string): boolean {
    if (tokenId === FILE_TOKEN_ID) return true
    const { book, now, signIn, peers = null } = this.#options
    if (peers !== null && tokenId.startsWith(PEER_ID_PREFIX)) return true
    if (signIn?.sessions.isGood(tokenId) === true) return true
    const token = book?.token(tokenId)
    return token !== undefined && (token.expiresAt === null || token.expiresAt > now())
  }

  /** Returns whether an admin other than `exceptId` remains. */
  hasAdmin(exceptId: string | null): boolean {
    const { book, adminTokenHash, now, peers = null } = this.#options
    // The user of the server is always an admin of the socket.
    if (adminTokenHash !== null || peers !== null) return true
    for (const { id, role, expiresAt } of book?.tokens() ?? []) {
      if (role === 'admin' && id !== exceptId && (expiresAt === null || expiresAt > now())) return true
    }
    return false
  }
}

function unauthorized(detail: string): ApiProblem {
  return new ApiProblem('unauthorized', detail, {
    headers: { 'www-authenticate': 'Bearer realm="headroom"' },
  })
}
