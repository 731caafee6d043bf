/** Who may do what through the REST interface. */

/** Each may do all that those before it may. */
export const RANKED_ROLES = ['viewer', 'submitter', 'operator', 'admin'] as const
export type RankedRole = (typeof RANKED_ROLES)[number]

/** `metrics` may read the metrics and nothing else; whoever may look at the cluster may read them, too. */
export type Role = RankedRole | 'metrics'
export const ROLES: readonly Role[] = [...RANKED_ROLES, 'metrics']

/** What a route asks for at least; `public` asks for nobody's name. */
export type LeastRole = Role | 'public'

export function mayCall(role: Role, least: LeastRole): boolean {
  if (least === 'public') return true
  if (least === 'metrics') return true
  if (role === 'metrics') return false
  return RANKED_ROLES.indexOf(role) >= RANKED_ROLES.indexOf(least)
}
