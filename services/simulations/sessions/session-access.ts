/**
 * Authenticates requests inside a session: the forwarding controller states the caller, and only it can reach
 * that REST interface.
 */
import { createAccess, type Access } from '../../../controller/api/auth/access.ts'
import type { Caller } from '../../../controller/api/auth/caller.ts'
import type { Instant } from '../../../protocol/units.ts'
import type { AskedBy } from './session-input.ts'

const SCHEME = 'Session '

/** Returns the header that states the caller. */
export function signed({ by, role }: AskedBy): string {
  return SCHEME + encodeURIComponent(JSON.stringify({ name: by, role, tokenId: null } satisfies Caller))
}

export function sessionAccess(now: () => Instant): Access {
  return {
    ...createAccess({ book: null, now, requestsPerSecond: 0, anonymousRequestsPerSecond: 0 }),
    authenticator: {
      isRequired: true,
      callerOf: readCaller,
      knownCaller: readCaller,
      isGood: () => true,
      hasAdmin: () => true,
    },
  }
}

function readCaller({ authorization = '' }: { readonly authorization?: string | undefined }): Caller {
  return JSON.parse(decodeURIComponent(authorization.slice(SCHEME.length))) as Caller
}
