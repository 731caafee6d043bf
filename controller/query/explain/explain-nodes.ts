/**
 * The verdicts of nodes on a pending task: the closest nodes by name, the others counted by reason. Scans the
 * pool, on demand only.
 */
import type { Mib } from '../../../protocol/units.ts'
import { byCodeUnits } from '../../structures/order.ts'
import { lateReason, type PendingFacts, type WaitReason } from './explain.ts'
import { createSurveyor, rankOf, type Found, type Request } from './explain-survey.ts'
import { whenPlacedOn } from '../../policy/place-alone.ts'
import { commitRoomMib, reachMib } from '../../policy/placement/feasible.ts'
import { admissibleMib } from '../../policy/placement/schedule.ts'
import { byGpuId, scoreOf, type Score } from '../../policy/placement/score.ts'
import { searchDemandMib } from '../../policy/placement/shape.ts'
import type { LiveGpu, LiveNode } from '../../state/facts.ts'
import { forkNode } from '../../state/snapshot/node-fork.ts'

/** Maximum number of nodes that are named, and of GPUs per node. */
const MAX_NODE_VERDICTS = 20
const MAX_GPU_VERDICTS = 16

export interface GpuVerdict {
  readonly gpu: number
  /** The largest demand that it admits of this task, less the reservations of tasks before it. */
  readonly admitsNowMib: Mib
  readonly admitsAfterSwapMib: Mib
  readonly freeMib: Mib
  readonly commitRoomMib: Mib
  /** Free VRAM once everything on its way out and every eligible victim has left. */
  readonly reachMib: Mib
  /** The score that orders GPUs, ascending (scheduler/score.ts). */
  readonly score: Score
}

export interface NodeVerdict {
  readonly nodeId: string
  readonly name: string
  /** The first reason that excludes the node; null: the task fits. */
  readonly reason: WaitReason | null
  readonly haveMib: Mib | null
  readonly needMib: Mib | null
  /** In the order in which they would be taken. */
  readonly gpus: readonly GpuVerdict[]
}

export interface NodeVerdicts {
  readonly named: readonly NodeVerdict[]
  /** Counts of the nodes that are not named; reason null: the task fits there. */
  readonly others: readonly { readonly reason: WaitReason | null; readonly nodes: number }[]
  readonly nodeCount: number
}

interface Ranked extends Omit<Found, 'reason'> {
  readonly node: LiveNode
  readonly reason: WaitReason | null
}

export function verdictsOn(nodes: Iterable<LiveNode>, facts: PendingFacts, request: Request): NodeVerdicts {
  const survey = createSurveyor(request)
  let looks = 0
  const ranked = Array.from(nodes, (node): Ranked => {
    const [first] = survey(node)
    if (first !== undefined) return { node, ...first }
    const reason = looks++ < MAX_NODE_VERDICTS ? reasonWhereItPasses(node, facts) : lateReason(node, facts)
    return { node, reason, haveMib: null, needMib: null, margin: 0 }
  }).sort(byMargin)
  const counts = new Map<WaitReason | null, number>()
  for (const { reason } of ranked.slice(MAX_NODE_VERDICTS)) counts.set(reason, (counts.get(reason) ?? 0) + 1)
  return {
    named: ranked.slice(0, MAX_NODE_VERDICTS).map((each) => verdictOf(each, facts)),
    others: [...counts].map(([reason, count]) => ({ reason, nodes: count })),
    nodeCount: ranked.length,
  }
}

/**
 * Admission passes; returns a later obstacle: a recent refusal, a reservation, or victims that do not cover.
 * Null: the task fits.
 */
function reasonWhereItPasses(node: LiveNode, facts: PendingFacts): WaitReason | null {
  const { queued, shape, policy, now } = facts
  const late = lateReason(node, facts)
  if (late !== null && late !== 'QUEUED_BEHIND') return late
  return whenPlacedOn(forkNode(node), queued, shape, policy, now) === null ? 'NO_ELIGIBLE_VICTIM' : null
}

function verdictOf(
  { node, reason, haveMib, needMib }: Ranked,
  { queued, shape, policy }: PendingFacts,
): NodeVerdict {
  const admits = (gpu: LiveGpu, when: 'now' | 'after_swap') =>
    Math.max(0, admissibleMib(gpu, queued, shape, when, policy))
  const demandMib = searchDemandMib(queued.task.spec)
  const gpus = node.gpus
    .map((gpu) => ({ gpu, score: scoreOf(gpu, 'now', policy.strategy, demandMib) }))
    .sort(byScore)
  return {
    nodeId: node.id,
    name: node.name,
    reason,
    haveMib,
    needMib,
    gpus: gpus.slice(0, MAX_GPU_VERDICTS).map(({ gpu, score }) => ({
      gpu: gpu.index,
      admitsNowMib: admits(gpu, 'now'),
      admitsAfterSwapMib: admits(gpu, 'after_swap'),
      freeMib: Math.max(0, gpu.freeMib),
      commitRoomMib: commitRoomMib(gpu),
      reachMib: reachMib(gpu, shape.kind, shape.isP0),
      score,
    })),
  }
}

/** 1. Score keys. 2. Node id, GPU index. */
function byScore(
  a: { readonly gpu: LiveGpu; readonly score: Score },
  b: { readonly gpu: LiveGpu; readonly score: Score },
): number {
  return a.score.key1 - b.score.key1 || a.score.key2 - b.score.key2 || byGpuId(a.gpu, b.gpu)
}

/**
 * Order in which nodes are named.
 * 1. Nodes where the task fits.
 * 2. Nodes whose first obstacle is a later rule.
 * 3. Larger margin.
 * 4. Node id, so that the order is total.
 */
function byMargin(a: Ranked, b: Ranked): number {
  const rank = ({ reason }: Ranked) => (reason === null ? Infinity : rankOf(reason))
  const [left, right] = [rank(a), rank(b)]
  if (left !== right) return left > right ? -1 : 1
  return b.margin - a.margin || byCodeUnits(a.node.id, b.node.id)
}
