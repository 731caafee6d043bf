/** What somebody may do in a cluster, in words. Pure. */
import type { SessionBody } from '../../controller/api/schema/sign-in.ts'
import type { World } from '../api/world.ts'

export type Role = 'viewer' | 'submitter' | 'operator' | 'admin'
const RANK: readonly Role[] = ['viewer', 'submitter', 'operator', 'admin']

/**
 * null: he may; else why not. In a session of his own a submitter has the role operator; those of others he
 * only looks at (docs/simulations.md).
 */
export function whyNot(
  who: SessionBody | null,
  least: Role,
  { mode, owner }: Pick<World, 'mode' | 'owner'>,
): string | null {
  const caller = who?.caller
  if (caller === undefined || caller === null)
    return who === null ? 'It is not known yet who asks.' : 'Sign in first.'
  const rank = RANK.findIndex((role) => role === caller.role)
  const isDriver =
    mode === 'live' ||
    rank >= RANK.indexOf('operator') ||
    (rank === RANK.indexOf('submitter') && caller.name === owner)
  if (!isDriver && least !== 'viewer')
    return 'The session belongs to somebody else; this takes the role operator.'
  const inSession = mode === 'live' ? rank : Math.max(rank, RANK.indexOf('operator'))
  return (isDriver ? inSession : rank) >= RANK.indexOf(least)
    ? null
    : `This takes the role ${least}; you have the role ${caller.role}.`
}
