/**
 * What happens to one entry of a node's queue now? The one decision of this folder; `victims.ts` decides
 * which victims leave, `resume.ts` the order of entries, `bytes.ts` what is free and short.
 */
import type { Instant, Mib } from '../../../protocol/units.ts'
import type { Policy } from '../../model/config.ts'
import type { Node, QueueEntry, Task } from '../../model/placement.ts'
import { maySwapOutFor } from '../../model/vram.ts'
import { freeForMib, shortMib } from './bytes.ts'
import type { SwapGpu } from './eligible.ts'
import { eligibleVictimsMib, eligibleOn, nextEligibleAt } from './eligible.ts'
import { couldEverBeResident } from './resume.ts'
import type { CoveredChoice, Shortage } from './victims.ts'
import { chooseVictims } from './victims.ts'

export type EntryDecision =
  /** Its VRAM is free: start, resume or grant. */
  | { readonly kind: 'ready' }
  /** Enough is on its way out. */
  | { readonly kind: 'wait' }
  | {
      readonly kind: 'swap_out'
      readonly choice: CoveredChoice
      readonly shortages: readonly Shortage[]
    }
  /** On some GPU all eligible victims together are not enough. */
  | { readonly kind: 'not_covered' }
  /** RESIDENCY_IMPOSSIBLE: noswap tasks and foreign memory leave too little. */
  | { readonly kind: 'impossible' }

const READY: EntryDecision = { kind: 'ready' }
const WAIT: EntryDecision = { kind: 'wait' }
const NOT_COVERED: EntryDecision = { kind: 'not_covered' }
const IMPOSSIBLE: EntryDecision = { kind: 'impossible' }

/**
 * @param gpus the entry's GPUs with their rounds, by index
 * @param isCollecting victims leave although they do not cover the shortage yet
 */
export function decideEntry(
  entry: QueueEntry,
  gpus: readonly SwapGpu[],
  now: Instant,
  isCollecting: boolean,
): EntryDecision {
  if (!couldEverBeResident(entry)) return IMPOSSIBLE
  if (isFree(entry, gpus)) return READY
  if (isOnItsWayOut(entry, gpus)) return WAIT
  if (!maySwapOut(entry, gpus)) return NOT_COVERED
  const hostFreeMib = entry.node.hostSwapMib - entry.node.hostUsedMib
  // The usual answers on a full node, without a list of candidates.
  if (isCollecting && hasNoEligibleVictim(entry, gpus, hostFreeMib)) return WAIT
  if (!isCollecting && !isCovered(entry, gpus, hostFreeMib)) return NOT_COVERED
  const shortages: Shortage[] = []
  for (const gpu of gpus) {
    const missingMib = shortMib(gpu, entry)
    if (missingMib > 0)
      shortages.push({
        gpu: gpu.index,
        missingMib,
        candidates: eligibleOn(gpu, entry.task, now, hostFreeMib),
      })
  }
  const choice = chooseVictims(shortages, isCollecting ? 'collect' : 'cover')
  if (!choice.covered) return NOT_COVERED
  return choice.victims.length === 0 ? WAIT : { kind: 'swap_out', choice, shortages }
}

/** Returns the outcome of the cycle when it reserves these GPUs for a task. */
export function decidePlacement(
  task: Task,
  node: Node,
  gpus: readonly SwapGpu[],
  now: Instant,
): EntryDecision {
  const entry: QueueEntry = {
    kind: 'placement',
    task,
    node,
    gpus,
    needMib: task.spec.vramMib,
    askedAt: task.spec.submittedAt,
    hasReserved: false,
    isCollector: false,
  }
  return decideEntry(entry, gpus, now, false)
}

/** Returns true if the cycle would start it there after victims have left. */
export function coversPlacement(task: Task, node: Node, gpus: readonly SwapGpu[], now: Instant): boolean {
  const { kind } = decidePlacement(task, node, gpus, now)
  return kind === 'swap_out' || kind === 'wait'
}

/** When another task may leave on the GPUs that are short; null if none will. */
export function retryAt(entry: QueueEntry, policy: Policy, now: Instant): Instant | null {
  const short = entry.gpus.filter((gpu) => shortMib(gpu, entry) > 0)
  return nextEligibleAt(short, entry.task, policy, now)
}

function isFree(entry: QueueEntry, gpus: readonly SwapGpu[]): boolean {
  for (const gpu of gpus) if (freeForMib(gpu, entry) < entry.needMib) return false
  return true
}

function isOnItsWayOut(entry: QueueEntry, gpus: readonly SwapGpu[]): boolean {
  for (const gpu of gpus) if (shortMib(gpu, entry) > 0) return false
  return true
}

/**
 * Returns false for the placement of a noswap task where overcommit is off: the percentage may have been
 * lowered while it waits.
 */
function maySwapOut({ kind, task }: QueueEntry, gpus: readonly SwapGpu[]): boolean {
  return kind !== 'placement' || gpus.every((gpu) => maySwapOutFor(task.spec.noswap, gpu.overcommitPercent))
}

function hasNoEligibleVictim(entry: QueueEntry, gpus: readonly SwapGpu[], hostFreeMib: Mib): boolean {
  for (const gpu of gpus) if (eligibleVictimsMib(gpu, entry.task, hostFreeMib) > 0) return false
  return true
}

/** Returns true if the eligible victims cover each shortage. */
function isCovered(entry: QueueEntry, gpus: readonly SwapGpu[], hostFreeMib: Mib): boolean {
  for (const gpu of gpus)
    if (eligibleVictimsMib(gpu, entry.task, hostFreeMib) < shortMib(gpu, entry)) return false
  return true
}
