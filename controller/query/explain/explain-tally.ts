/** Reasons counted by node: the number of nodes, and the closest of them by name. */
import type { Mib } from '../../../protocol/units.ts'
import type { Node } from '../../model/placement.ts'
import { byCodeUnits } from '../../structures/order.ts'
import { WAIT_REASONS, type ReasonDetail, type WaitReason } from './explain-reasons.ts'

/** Maximum number of nodes named per reason; the others are only counted. */
export const MAX_NAMED_NODES = 20

/** One reason on one node. */
export interface Obstacle {
  readonly node: Node
  /**
   * VRAM that is available to the task and VRAM that it needs, per GPU; null if the reason is not about VRAM.
   */
  readonly haveMib: Mib | null
  readonly needMib: Mib | null
  /** Larger means closer to passing: MiB, or a number of GPUs. */
  readonly margin: number
  /** No earlier reason applies to this node. */
  readonly isFirst: boolean
}

/** All nodes that one reason concerns. */
export interface Tally {
  nodeCount: number
  /** At most MAX_NAMED_NODES, closest first. */
  readonly nearest: Obstacle[]
}

export type Tallies = Map<WaitReason, Tally>

/**
 * Order in which the nodes of a reason are named.
 * 1. Nodes without an earlier reason.
 * 2. Larger margin.
 * 3. Node id, so that the order is total.
 */
function byMargin(a: Obstacle, b: Obstacle): number {
  return Number(b.isFirst) - Number(a.isFirst) || b.margin - a.margin || byCodeUnits(a.node.id, b.node.id)
}

/** Returns the tally of a reason; a new one concerns no node. */
export function tallyOf(tallies: Tallies, reason: WaitReason): Tally {
  let tally = tallies.get(reason)
  if (tally === undefined) {
    tally = { nodeCount: 0, nearest: [] }
    tallies.set(reason, tally)
  }
  return tally
}

/** Counts one node, and names it if it is among the closest. */
export function addObstacle(tallies: Tallies, reason: WaitReason, obstacle: Obstacle): void {
  const tally = tallyOf(tallies, reason)
  tally.nodeCount += 1
  const { nearest } = tally
  let at = nearest.length
  while (at > 0 && byMargin(obstacle, nearest[at - 1] as Obstacle) < 0) at -= 1
  if (at === MAX_NAMED_NODES) return
  nearest.splice(at, 0, obstacle)
  if (nearest.length > MAX_NAMED_NODES) nearest.pop()
}

/** Returns a copy that can be added to. */
export function copyOfTallies(tallies: Tallies): Tallies {
  return new Map(
    [...tallies].map(([reason, { nodeCount, nearest }]) => [reason, { nodeCount, nearest: [...nearest] }]),
  )
}

/** Every counted reason but the primary, in order of precedence. */
export function secondaryOf(tallies: Tallies, primary: WaitReason): ReasonDetail[] {
  const others = WAIT_REASONS.filter((reason) => reason !== primary && tallies.has(reason))
  return others.map((reason) => detailOf(reason, tallyOf(tallies, reason)))
}

export function detailOf(reason: WaitReason, tally: Tally): ReasonDetail {
  const [best] = tally.nearest
  return {
    reason,
    nodeIds: tally.nearest.map((obstacle) => obstacle.node.id),
    nodeCount: tally.nodeCount,
    haveMib: best?.haveMib ?? null,
    needMib: best?.needMib ?? null,
  }
}
