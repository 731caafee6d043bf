/**
 * The one entry of a node for which victims leave although they do not cover it yet (semantics 5, "Return",
 * first exception).
 */
import type { Instant } from '../../../protocol/units.ts'
import { byNodeId } from '../../scheduler/score.ts'
import { nextCollector } from '../../swap/resume.ts'
import { decideEntry } from '../../swap/swap.ts'
import type { Cluster } from '../cluster.ts'
import { addClaim, rederive, removeClaim } from '../gpu-ledger.ts'
import type { LiveEntry, LiveNode } from '../live.ts'
import { loseHold } from './enact-entry.ts'
import { own } from './entries.ts'
import { missesBytesAlone } from './entry-obstacles.ts'
import { firstP0On, fitsSomewhere, placeQueued } from './queued-placements.ts'

/**
 * The oldest that has waited long begins to collect: it owns all its bytes, and victims leave as they ripen.
 */
export function appointCollector(c: Cluster, node: LiveNode, now: Instant): boolean {
  if (node.collector !== null) return false
  const entry = nextCollector(node.queue, (one) => missesBytesAlone(c, one, now), c.policy, now)
  if (entry === null) return false
  entry.isCollector = true
  node.collector = entry
  c.collecting.add(node)
  own(c, entry)
  return true
}

/**
 * A P0 entry needs the bytes of a collector that is not P0, and would be covered without it: the collector
 * lets go.
 */
export function makeRoomOfCollector(c: Cluster, entry: LiveEntry, now: Instant): boolean {
  const collector = entry.node.collector
  if (
    collector === null ||
    collector === entry ||
    entry.task.spec.priority !== 0 ||
    collector.task.spec.priority === 0
  )
    return false
  const isCovered = withoutOwner(collector, () => isCoveredNow(entry, now))
  return isCovered && loseHold(c, collector, now)
}

/**
 * The same for a pending P0 task that fits nowhere while the collector keeps its bytes. It is placed at once.
 */
export function makeRoomForPending(c: Cluster, node: LiveNode, now: Instant): void {
  const { collector } = node
  if (collector === null || collector.task.spec.priority === 0 || c.pendingCount === 0) return
  const needing = withoutOwner(collector, () => firstP0On(c, node, now))
  if (needing === null || fitsSomewhere(c, needing, now) || !loseHold(c, collector, now)) return
  placeQueued(c, needing, now)
}

/** Pending tasks changed: a P0 among them may need the bytes of a collector. */
export function lookAtCollectors(c: Cluster): void {
  if (c.collecting.size === 0 || c.queueChanges === c.queueChangesSeen) return
  for (const node of [...c.collecting].sort(byNodeId)) c.touchNode(node)
}

function isCoveredNow(entry: LiveEntry, now: Instant): boolean {
  const { kind } = decideEntry(entry, entry.gpus, now, false)
  return kind !== 'not_covered' && kind !== 'impossible'
}

/** Asks while the owner's bytes are not counted as its own. The books are as before afterwards. */
function withoutOwner<T>(owner: LiveEntry, ask: () => T): T {
  const positions = owner.gpus.map((gpu) => [gpu.owners.indexOf(owner), gpu.claims.indexOf(owner)] as const)
  owner.gpus.forEach((gpu, i) => {
    gpu.owners.splice(positions[i]?.[0] as number, 1)
    removeClaim(gpu, owner)
    rederive(gpu)
  })
  const answer = ask()
  owner.gpus.forEach((gpu, i) => {
    const [place, claim] = positions[i] as readonly [number, number]
    gpu.owners.splice(place, 0, owner)
    if (claim >= 0) addClaim(gpu, owner, claim)
    rederive(gpu)
  })
  return answer
}
