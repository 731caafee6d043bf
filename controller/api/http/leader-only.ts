/**
 * Requests that only a leader answers. A controller whose commit failed no longer leads, and has state in
 * memory that may not be stored: it refuses them until its process has ended (R10).
 */
import { tryLater, type ApiProblem } from './errors.ts'

/** In the answer of a controller that was taken for the leader: it has done nothing. */
export const NOT_LEADING = 'headroom-not-leading'

/** A standby answers its own health and metrics, and forwards everything else to the leader. */
export function isAnsweredByLeader(path: string): boolean {
  return !/\/(?:livez|readyz|metrics)$/.test(path)
}

/** @returns null for a path that a controller answers without leading */
export function afterFailedCommit(path: string): ApiProblem | null {
  if (!isAnsweredByLeader(path)) return null
  return tryLater(
    'no_leader',
    'A commit of this controller failed: it no longer leads, and is ending. ' +
      'Try again, or use another address.',
    { headers: { [NOT_LEADING]: '1' } },
  )
}
