/**
 * The one entry of a node for which victims leave although they do not cover it yet (semantics 5, "Return",
 * first exception).
 */
import type { Instant } from '../../../../protocol/units.ts'
import { byNodeId } from '../../../policy/placement/score.ts'
import { chooseCollector, yieldsToP0 } from '../../../policy/node-queue.ts'
import { decideEntry } from '../../../policy/swap/swap.ts'
import type { Cluster } from '../../../state/cluster.ts'
import { addPendingClaimant, rederive, removePendingClaimant } from '../../../state/gpu-ledger.ts'
import type { LiveEntry, LiveNode } from '../../../state/facts.ts'
import { cancelReservation } from './enact-entry.ts'
import { reserveVram } from '../lifecycle/entries.ts'
import { firstP0On, fitsSomewhere, placeQueued } from './queued-placements.ts'

/**
 * Appoints the oldest entry that has waited long as collector: its VRAM is reserved, and victims leave as
 * they become eligible.
 */
export function appointCollector(c: Cluster, node: LiveNode, now: Instant): boolean {
  if (node.collector !== null) return false
  const entry = chooseCollector(node.queue, c.policy, now)
  if (entry === null) return false
  entry.isCollector = true
  node.collector = entry
  c.collecting.add(node)
  reserveVram(c, entry)
  return true
}

/**
 * Cancels the collector's reservation if a P0 entry needs its VRAM and would be covered without it, and the
 * collector is not P0.
 */
export function preemptCollector(c: Cluster, entry: LiveEntry, now: Instant): boolean {
  const collector = entry.node.collector
  if (collector === null || entry.task.spec.priority !== 0 || !yieldsToP0(collector)) return false
  const isCovered = withoutReservationOf(collector, () => isCoveredNow(entry, now))
  return isCovered && cancelReservation(c, collector, now)
}

/**
 * As above, for a pending P0 task that fits nowhere while the collector keeps its VRAM. The task is placed at
 * once.
 */
export function preemptCollectorForPending(c: Cluster, node: LiveNode, now: Instant): void {
  const { collector } = node
  if (collector === null || !yieldsToP0(collector) || c.pendingCount === 0) return
  const needing = withoutReservationOf(collector, () => firstP0On(c, node, now))
  if (needing === null || fitsSomewhere(c, needing, now) || !cancelReservation(c, collector, now)) return
  placeQueued(c, needing, now)
}

/** Pending tasks changed: a P0 task among them may need the VRAM of a collector. */
export function revisitCollectors(c: Cluster): void {
  if (c.collecting.size === 0 || c.queueChanges === c.queueChangesSeen) return
  for (const node of [...c.collecting].sort(byNodeId)) c.touchNode(node)
}

function isCoveredNow(entry: LiveEntry, now: Instant): boolean {
  const { kind } = decideEntry(entry, entry.gpus, now, false)
  return kind !== 'not_covered' && kind !== 'impossible'
}

/** Evaluates `ask` without the reservation of the claimant, then restores the ledger. */
function withoutReservationOf<T>(claimant: LiveEntry, ask: () => T): T {
  const positions = claimant.gpus.map(
    (gpu) => [gpu.claimants.indexOf(claimant), gpu.pendingClaimants.indexOf(claimant)] as const,
  )
  claimant.gpus.forEach((gpu, i) => {
    gpu.claimants.splice(positions[i]?.[0] as number, 1)
    removePendingClaimant(gpu, claimant)
    rederive(gpu)
  })
  const answer = ask()
  claimant.gpus.forEach((gpu, i) => {
    const [place, pendingPlace] = positions[i] as readonly [number, number]
    gpu.claimants.splice(place, 0, claimant)
    if (pendingPlace >= 0) addPendingClaimant(gpu, claimant, pendingPlace)
    rederive(gpu)
  })
  return answer
}
