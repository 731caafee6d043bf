/** The controllers of one store, as the leader sees them. */
import type { Succession } from '../../controller/adapters/postgres/standbys.ts'
import type { SummaryBody } from '../../controller/api/observe/summary-schema.ts'
import type { Handover } from '../../controller/ports/handover.ts'
import type { DurableStore } from './open-store.ts'

/**
 * @param leader name of this controller, which leads
 * @param before the leader before it; null: none
 * @returns null while this controller knows of no other one. After a takeover the other one is missing, and
 * that must be told.
 */
export function createControllers(
  leader: string,
  before: string | null,
  succession: () => Pick<Succession, 'standbys' | 'others'> | null,
): () => SummaryBody['controllers'] {
  let isAmongOthers = before !== null && before !== leader
  return () => {
    const seen = succession()
    if (seen !== null && seen.others > 0) isAmongOthers = true
    return isAmongOthers ? { leader, standbys: seen?.standbys ?? null } : null
  }
}

/** @param name of this controller, which leads */
export function createHandover(
  { leaderView }: Pick<DurableStore, 'leaderView'>,
  name: string,
  controller: { readonly status: { readonly epoch: number } },
  ask: (resignation: { readonly to: string | null }) => void,
): Handover {
  const alone = () =>
    Promise.resolve({ leader: { name, url: '' }, epoch: controller.status.epoch, standbys: [] })
  return { view: leaderView ?? alone, resign: (to) => ask({ to }) }
}
