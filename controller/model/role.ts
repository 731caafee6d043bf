/** Roles of the REST interface. */

/** Each role includes the permissions of those before it. */
export const RANKED_ROLES = ['viewer', 'submitter', 'operator', 'admin'] as const
export type RankedRole = (typeof RANKED_ROLES)[number]

/**
 * `metrics` may read the metrics and nothing else; every role that may read the cluster may read them too.
 */
export type Role = RankedRole | 'metrics'
export const ROLES: readonly Role[] = [...RANKED_ROLES, 'metrics']

/** The minimum role of a route; `public` needs no authentication. */
export type LeastRole = Role | 'public'

export function mayCall(role: Role, least: LeastRole): boolean {
  if (least === 'public') return true
  if (least === 'metrics') return true
  if (role === 'metrics') return false
  return RANKED_ROLES.indexOf(role) >= RANKED_ROLES.indexOf(least)
}
