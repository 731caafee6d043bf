/**
 * Why does a task wait? Exactly one primary reason, the first that applies in the order of WAIT_REASONS, and
 * the others (semantics 4).
 *
 * A reason that depends on the node is primary if no node is left once those with it, or with an earlier one,
 * are excluded: one offline or full node does not hide that another lacks only a victim. Reasons of some
 * nodes are secondary. Nothing is decided here: `schedule.ts` answers whether the task fits.
 */
import type { Mib } from '../../../protocol/units.ts'
import type { Gpu, Node } from '../../model/placement.ts'
import { isBeingPrepared } from '../../model/preparation.ts'
import { hasRefusedStart } from '../../model/start-refusal.ts'
import type { PendingFacts } from './explain-facts.ts'
import type { WaitExplanation, WaitReason } from './explain-reasons.ts'
import { sentenceOfPending } from './explain-sentence.ts'
import { rankOf } from './explain-survey.ts'
import type { Tallies, Tally } from './explain-tally.ts'
import { addObstacle, copyOfTallies, detailOf, secondaryOf, tallyOf } from './explain-tally.ts'
import { isRefusedBy, kthLargest } from '../../policy/placement/feasible.ts'
import { lacksPreparingRoom } from '../../policy/placement/prepare.ts'
import { admissibleMib } from '../../policy/placement/schedule.ts'
import { searchDemandMib } from '../../policy/placement/shape.ts'

export { explainAssigned, explainReturn } from './explain-return.ts'
export type { PendingFacts } from './explain-facts.ts'
export { WAIT_REASONS } from './explain-reasons.ts'
export type { ReasonDetail, WaitExplanation, WaitReason } from './explain-reasons.ts'

/** For a pending task without reserved VRAM; otherwise `explainReturn` explains its entry. */
export function explainPending(facts: PendingFacts): WaitExplanation {
  const tallies = copyOfTallies(facts.survey.tallies)
  const ofTask = reasonOfTheTask(facts, tallies)
  const ofNodes = reasonOfTheNodes(facts, tallies)
  const ofOthers = reasonOfTheOwner(facts, tallies, ofNodes)
  const primary = ofTask ?? reasonOfThePause(facts, tallies, ofOthers)
  const tally = tallyOf(tallies, primary)
  const victims = tallies.get('NO_ELIGIBLE_VICTIM')
  const retryAt =
    facts.queued.task.trouble.pause?.until ??
    (victims === undefined ? null : facts.retryAtOn(victims.nearest.map((obstacle) => obstacle.node)))
  return {
    primary: detailOf(primary, tally),
    secondary: secondaryOf(tallies, primary),
    sentence: sentenceOfPending(primary, tally, facts, retryAt),
    retryAt,
    queuePosition: facts.queuePosition,
    servedBefore: servedBeforeIn(primary, tally, facts),
  }
}

/** Counted only where a victim is awaited. */
function servedBeforeIn(
  primary: WaitReason,
  { nearest }: Tally,
  { servedBeforeOn }: PendingFacts,
): number | null {
  const [first] = nearest
  return primary === 'NO_ELIGIBLE_VICTIM' && first !== undefined ? servedBeforeOn(first.node) : null
}

/** Reasons that exclude every node: it is on hold, its groups have no nodes, or no node has registered. */
function reasonOfTheTask(facts: PendingFacts, tallies: Tallies): WaitReason | null {
  const { task } = facts.queued
  const { missingGroups, emptyGroups } = facts
  if (task.isHeld) tallyOf(tallies, 'HELD')
  if (facts.pause !== null) tallyOf(tallies, facts.pause)
  if (missingGroups.length > 0) tallyOf(tallies, 'GROUP_NOT_FOUND')
  if (emptyGroups.length > 0) tallyOf(tallies, 'GROUP_EMPTY')
  const isLost =
    task.spec.groups.length > 0 && missingGroups.length + emptyGroups.length === task.spec.groups.length
  const hasNoNodes = facts.survey.nodeCount === 0 && !isLost
  if (hasNoNodes) tallyOf(tallies, 'NO_NODES')
  if (task.isHeld) return 'HELD'
  if (facts.pause !== null) return facts.pause
  if (isLost) return missingGroups.length > 0 ? 'GROUP_NOT_FOUND' : 'GROUP_EMPTY'
  return hasNoNodes ? 'NO_NODES' : null
}

/**
 * The limit of its owner applies on every node: it is the reason unless an earlier one excludes all nodes.
 */
function reasonOfTheOwner(
  { ownerLimit }: PendingFacts,
  tallies: Tallies,
  ofNodes: WaitReason | null,
): WaitReason {
  if (ownerLimit === null) return ofNodes ?? 'QUEUED_BEHIND'
  tallyOf(tallies, 'OWNER_LIMIT')
  return ofNodes !== null && rankOf(ofNodes) < rankOf('OWNER_LIMIT') ? ofNodes : 'OWNER_LIMIT'
}

/**
 * The pause after refused or short attempts, and a preparation, apply on every node: they are the reason
 * unless an earlier one excludes all nodes.
 */
function reasonOfThePause({ queued }: PendingFacts, tallies: Tallies, ofOthers: WaitReason): WaitReason {
  const { trouble } = queued.task
  const reason = trouble.pause?.reason ?? (isBeingPrepared(queued.task) ? 'PREPARING' : null)
  if (reason === null) return ofOthers
  tallyOf(tallies, reason)
  return rankOf(ofOthers) < rankOf(reason) ? ofOthers : reason
}

/** The reason that excludes the last node; QUEUED_BEHIND if the task fits; null without nodes. */
function reasonOfTheNodes(facts: PendingFacts, tallies: Tallies): WaitReason | null {
  const { survey, plan, policy, queuePosition } = facts
  if (policy.strategy === 'fifo' && queuePosition !== null && queuePosition > 1)
    tallyOf(tallies, 'QUEUED_BEHIND')
  if (plan !== null && facts.isPlanCovered) {
    addLate(facts, tallies, 'QUEUED_BEHIND', plan.node, admittedOn(plan.node, facts, false))
    return 'QUEUED_BEHIND'
  }
  let { latest } = survey
  for (const node of survey.passing) {
    const reason = lateReason(node, facts)
    if (reason === null) continue
    // A plan that is not covered needs a swap that would not make room next to the reservations.
    addLate(
      facts,
      tallies,
      reason,
      node,
      reason === 'RESERVED_FOR_ANOTHER' ? admittedOn(node, facts, plan !== null) : null,
    )
    if (latest === null || rankOf(reason) > rankOf(latest)) latest = reason
  }
  return latest
}

/** Why the scheduler does not take a node without obstacles; null if it was not considered. */
export function lateReason(node: Node, facts: PendingFacts): WaitReason | null {
  const { plan, queued, shape } = facts
  if (hasRefusedStart(queued.task.trouble, node.id)) return 'START_REFUSED'
  if (lacksPreparingRoom(queued.task, node)) return 'PREPARING'
  if (isRefusedBy(queued.task, node)) return 'AWAITING_NODE_ACK'
  const hasReservations = node.gpus.some((gpu) => gpu.reservations.length > 0)
  if (plan !== null) {
    if (plan.node !== node) return null
    return hasReservations ? 'RESERVED_FOR_ANOTHER' : 'NO_ELIGIBLE_VICTIM'
  }
  if (hasReservations) return 'RESERVED_FOR_ANOTHER'
  // Each GPU admits the task, but together they would promise more host memory than there is.
  return shape.gpuCount > 1 ? 'SWAP_SPACE_EXHAUSTED' : 'QUEUED_BEHIND'
}

function addLate(
  facts: PendingFacts,
  tallies: Tallies,
  reason: WaitReason,
  node: Node,
  haveMib: Mib | null,
): void {
  const needMib = haveMib === null ? null : searchDemandMib(facts.queued.task.spec)
  addObstacle(tallies, reason, { node, haveMib, needMib, margin: haveMib ?? 0, isFirst: true })
}

/**
 * The demand of this task that the node's best GPUs admit after the reservations of tasks before it; now or,
 * unless `isNowOnly`, after a swap.
 */
function admittedOn(node: Node, { queued, shape, policy }: PendingFacts, isNowOnly: boolean): Mib {
  const admitted = (gpu: Gpu) => {
    const now = admissibleMib(gpu, queued, shape, 'now', policy)
    return isNowOnly ? now : Math.max(now, admissibleMib(gpu, queued, shape, 'after_swap', policy))
  }
  return Math.max(0, kthLargest(node.gpus.map(admitted), shape.gpuCount))
}
