/**
 * What one owner may take (docs/decisions/0033-limits-in-the-environment.md). Tasks without an owner, where
 * nobody is known by name, have no limits.
 */
import type { Role } from './role.ts'

export interface OwnerLimits {
  /** More pending tasks of one owner are refused; null: no limit. */
  readonly maxPending: number | null
  /**
   * GPUs that his placed tasks take at most, each counted as often as a task of his is on it; the others wait
   * (OWNER_LIMIT). Null: no limit.
   */
  readonly maxPlacedGpus: number | null
  /** Who may submit P0 tasks: names, and roles as `role:operator`. Null: everybody. */
  readonly p0: readonly string[] | null
}

export const NO_OWNER_LIMITS: OwnerLimits = { maxPending: null, maxPlacedGpus: null, p0: null }

/** Nobody is known by name where none is configured, and whoever is there may do everything. */
export function mayUseP0({ p0 }: OwnerLimits, name: string | null, role: Role): boolean {
  return p0 === null || name === null || p0.includes(name) || p0.includes(`role:${role}`)
}
