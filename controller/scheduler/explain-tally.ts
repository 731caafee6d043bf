/** Reasons counted node by node: how many nodes each concerns, and the nearest of them by name. */
import type { Mib } from '../../protocol/units.ts'
import type { Node } from '../domain/node.ts'
import { byCodeUnits } from '../domain/order.ts'
import type { ReasonDetail, WaitReason } from './explain-reasons.ts'
import { WAIT_REASONS } from './explain-reasons.ts'

/** A reason names at most so many nodes; the others are only counted. */
export const MAX_NAMED_NODES = 20

/** One reason on one node. */
export interface Obstacle {
  readonly node: Node
  /** What the task could have there and what it needs, per GPU; null where the reason is not about bytes. */
  readonly haveMib: Mib | null
  readonly needMib: Mib | null
  /** The larger, the nearer the task comes to passing here: MiB, or a number of GPUs. */
  readonly margin: number
  /** No earlier reason holds on this node. */
  readonly isFirst: boolean
}

/** All nodes that one reason concerns. */
export interface Tally {
  nodeCount: number
  /** At most MAX_NAMED_NODES, nearest first. */
  readonly nearest: Obstacle[]
}

export type Tallies = Map<WaitReason, Tally>

/**
 * Which nodes of a reason are named.
 * 1. Those where nothing earlier is in the way.
 * 2. Where the task comes nearest.
 * 3. Node id, so that the order is total.
 */
function byMargin(a: Obstacle, b: Obstacle): number {
  return Number(b.isFirst) - Number(a.isFirst) || b.margin - a.margin || byCodeUnits(a.node.id, b.node.id)
}

/** The reason's tally, made when it has none; as it is, it concerns no node. */
export function tallyOf(tallies: Tallies, reason: WaitReason): Tally {
  let tally = tallies.get(reason)
  if (tally === undefined) {
    tally = { nodeCount: 0, nearest: [] }
    tallies.set(reason, tally)
  }
  return tally
}

/** Counts one node, and names it when it is among the nearest. */
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

/** The same counts, to add to without changing the original. */
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
