/** The controllers of one store, as the leader sees them. */
import type { Succession } from '../../controller/adapters/postgres/standbys.ts'
import type { SummaryBody } from '../../controller/api/observe/summary-schema.ts'

/**
 * @param leader name of this controller, which leads
 * @returns null until a standby is seen; from then on a standby that is missing can be told.
 */
export function createControllers(
  leader: string,
  succession: () => Pick<Succession, 'standbys'> | null,
): () => SummaryBody['controllers'] {
  let hasStandby = false
  return () => {
    const standbys = succession()?.standbys ?? null
    if (standbys !== null && standbys > 0) hasStandby = true
    return hasStandby ? { leader, standbys } : null
  }
}
