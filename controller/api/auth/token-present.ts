import type { TokenRecord } from '../../ports/store.ts'
import type { TokenBody } from './token-schema.ts'
import { presentInstant, presentInstantOrNull } from '../http/instant.ts'

/** The hash is not shown either. */
export function presentToken({
  id,
  name,
  role,
  createdAt,
  createdBy,
  expiresAt,
  lastUsedAt,
}: TokenRecord): TokenBody {
  return {
    id,
    name,
    role,
    created_at: presentInstant(createdAt),
    created_by: createdBy,
    expires_at: presentInstantOrNull(expiresAt),
    last_used_at: presentInstantOrNull(lastUsedAt),
  }
}
