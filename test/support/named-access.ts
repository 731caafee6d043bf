/** `Bearer NAME ROLE`, so that a test states the caller; without it the caller is `root`, an admin. */
import { createAccess, type Access } from '../../controller/api/auth/access.ts'
import type { Caller } from '../../controller/api/auth/caller.ts'
import type { Role } from '../../controller/model/role.ts'

export function namedAccess(): Access {
  const callerOf = ({ authorization = '' }: { readonly authorization?: string | undefined }): Caller => {
    const [, name = 'root', role = 'admin'] = authorization.split(' ')
    return { name, role: role as Role, tokenId: name }
  }
  return {
    ...createAccess({ book: null, now: () => 0, requestsPerSecond: 0 }),
    authenticator: {
      isRequired: true,
      callerOf,
      knownCaller: callerOf,
      isGood: () => true,
      hasAdmin: () => true,
    },
  }
}
