/** Roles of the REST API. */

/** Each role includes the permissions of those before it. */
export const RANKED_ROLES = ['viewer', 'submitter', 'operator', 'admin'] as const
export type RankedRole = (typeof RANKED_ROLES)[number]

/**
 * Roles of programs, each for one purpose: `metrics` reads the metrics, `gateway` reads what a gateway needs
 * (docs/serving.md), and `endpoint` may call the endpoints of its owner at a gateway, and no route here.
 */
const PROGRAM_ROLES = ['metrics', 'gateway', 'endpoint'] as const
type ProgramRole = (typeof PROGRAM_ROLES)[number]

export type Role = RankedRole | ProgramRole
export const ROLES: readonly Role[] = [...RANKED_ROLES, ...PROGRAM_ROLES]

/** The minimum role of a route; `public` needs no authentication. */
export type LeastRole = Exclude<Role, 'endpoint'> | 'public'

export function mayCall(role: Role, least: LeastRole): boolean {
  if (least === 'public' || role === least) return true
  const rank = RANKED_ROLES.indexOf(role as RankedRole)
  if (rank < 0) return false
  // Every role that may read the cluster may read its metrics; what is for gateways helps no person.
  if (least === 'metrics') return true
  return rank >= RANKED_ROLES.indexOf(least === 'gateway' ? 'admin' : least)
}
