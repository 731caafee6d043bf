/** Permissions of a user in a cluster, with their reasons. Pure. */
import type { SessionBody } from '../../controller/api/auth/sign-in-schema.ts'
import type { World } from '../api/world.ts'

export type Role = 'viewer' | 'submitter' | 'operator' | 'admin'
const RANK: readonly Role[] = ['viewer', 'submitter', 'operator', 'admin']

/**
 * null: permitted; otherwise the reason. Submitters have the role operator in their own sessions, and only
 * view those of others (docs/simulations.md).
 */
export function whyNot(
  session: SessionBody | null,
  required: Role,
  { mode, owner }: Pick<World, 'mode' | 'owner'>,
): string | null {
  const caller = session?.caller
  if (caller === undefined || caller === null)
    return session === null ? 'Checking your permissions.' : 'Sign in first.'
  const rank = RANK.findIndex((role) => role === caller.role)
  const isOwner =
    mode === 'live' ||
    rank >= RANK.indexOf('operator') ||
    (rank === RANK.indexOf('submitter') && caller.name === owner)
  if (!isOwner && required !== 'viewer')
    return 'Permission denied: the session belongs to another user. This requires role operator.'
  const sessionRank = mode === 'live' ? rank : Math.max(rank, RANK.indexOf('operator'))
  return (isOwner ? sessionRank : rank) >= RANK.indexOf(required)
    ? null
    : `Permission denied: requires role ${required}. Your role is ${caller.role}.`
}
