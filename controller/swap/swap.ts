/**
 * What happens to one entry of a node's queue now? The one decision of this folder; `victims.ts` says who leaves, `resume.ts` in which
 * order entries are asked, `bytes.ts` what is free and short.
 */
import type { Instant, Mib } from '../../protocol/units.ts'
import type { Policy } from '../domain/config.ts'
import type { QueueEntry } from '../domain/task.ts'
import { freeForMib, shortMib } from './bytes.ts'
import type { SwapGpu } from './eligible.ts'
import { eligibleOn, nextEligibleAt } from './eligible.ts'
import { couldEverBeResident } from './resume.ts'
import type { Shortage, VictimChoice } from './victims.ts'
import { chooseVictims } from './victims.ts'

export type EntryDecision =
  /** Its bytes are free: start, resume or grant. */
  | { readonly kind: 'ready' }
  /** Enough is on its way out. */
  | { readonly kind: 'wait' }
  | { readonly kind: 'swap_out'; readonly choice: Extract<VictimChoice, { covered: true }>; readonly shortages: readonly Shortage[] }
  | { readonly kind: 'not_covered'; readonly gpu: number; readonly haveMib: Mib; readonly needMib: Mib; readonly retryAt: Instant | null }
  /** RESIDENCY_IMPOSSIBLE: noswap tasks and foreign memory leave it too little. */
  | { readonly kind: 'impossible' }

/**
 * @param gpus the entry's GPUs with their rounds, by index
 * @param isCollecting victims leave although they do not cover the shortage yet
 */
export function decideEntry(
  entry: QueueEntry,
  gpus: readonly SwapGpu[],
  policy: Policy,
  now: Instant,
  isCollecting: boolean,
): EntryDecision {
  if (!couldEverBeResident(entry)) return { kind: 'impossible' }
  if (gpus.every((gpu) => freeForMib(gpu, entry) >= entry.needMib)) return { kind: 'ready' }
  const short = gpus.filter((gpu) => shortMib(gpu, entry) > 0)
  if (short.length === 0) return { kind: 'wait' }
  const hostFreeMib = entry.node.hostSwapMib - entry.node.hostUsedMib
  const shortages = short.map((gpu) => ({
    gpu: gpu.index,
    missingMib: shortMib(gpu, entry),
    candidates: eligibleOn(gpu, entry.task, now, hostFreeMib),
  }))
  const choice = chooseVictims(shortages, isCollecting ? 'collect' : 'cover')
  if (!choice.covered) {
    return { kind: 'not_covered', ...choice, retryAt: nextEligibleAt(short, entry.task, policy, now) }
  }
  if (choice.victims.length === 0) return { kind: 'wait' }
  return { kind: 'swap_out', choice, shortages }
}
