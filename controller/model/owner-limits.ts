/**
 * Limits of one owner (docs/decisions/0033-limits-in-the-environment.md). Tasks without an owner have no
 * limits.
 */
import type { Role } from './role.ts'

export interface OwnerLimits {
  /** Maximum number of pending tasks of one owner; more are refused. Null: no limit. */
  readonly maxPending: number | null
  /**
   * Maximum number of GPUs that the owner's placed tasks use, each counted once per task; other tasks wait
   * (OWNER_LIMIT). Null: no limit.
   */
  readonly maxPlacedGpus: number | null
  /** Names, and roles as `role:operator`, that may submit P0 tasks. Null: all. */
  readonly p0: readonly string[] | null
}

export const NO_OWNER_LIMITS: OwnerLimits = { maxPending: null, maxPlacedGpus: null, p0: null }

/** Without configured names callers are anonymous and may do everything. */
export function mayUseP0({ p0 }: OwnerLimits, name: string | null, role: Role): boolean {
  return p0 === null || name === null || p0.includes(name) || p0.includes(`role:${role}`)
}
