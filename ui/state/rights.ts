/** Permissions of a user in a cluster, with their reasons. Pure. */
import type { SessionBody } from '../../controller/api/schema/sign-in.ts'
import type { World } from '../api/world.ts'

export type Role = 'viewer' | 'submitter' | 'operator' | 'admin'
const RANK: readonly Role[] = ['viewer', 'submitter', 'operator', 'admin']

/**
 * null: permitted; otherwise the reason. Submitters have the role operator in their own sessions, and only
 * view those of others (docs/simulations.md).
 */
export function whyNot(
  who: SessionBody | null,
  least: Role,
  { mode, owner }: Pick<World, 'mode' | 'owner'>,
): string | null {
  const caller = who?.caller
  if (caller === undefined || caller === null)
    return who === null ? 'Checking your permissions.' : 'Sign in first.'
  const rank = RANK.findIndex((role) => role === caller.role)
  const isDriver =
    mode === 'live' ||
    rank >= RANK.indexOf('operator') ||
    (rank === RANK.indexOf('submitter') && caller.name === owner)
  if (!isDriver && least !== 'viewer')
    return 'Permission denied: the session belongs to another user. Requires role operator.'
  const inSession = mode === 'live' ? rank : Math.max(rank, RANK.indexOf('operator'))
  return (isDriver ? inSession : rank) >= RANK.indexOf(least)
    ? null
    : `Permission denied: requires role ${least}. Your role is ${caller.role}.`
}
