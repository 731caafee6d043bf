/**
 * Why does a task wait? Exactly one primary reason, the first that holds in the order of WAIT_REASONS, and
 * the others (semantics 4).
 *
 * A reason that each node answers for itself holds for the task when no node is left once those with it, or
 * with an earlier one, are taken away: one node that is offline or full does not hide that another lacks only
 * a victim. What keeps it out of some nodes is a secondary reason. Nothing is decided here: whether the task
 * fits is what `schedule.ts` answers for it alone.
 */
import type { Mib } from '../../protocol/units.ts'
import type { Gpu, Node } from '../domain/node.ts'
import { hasRefusedStart } from '../domain/start-refusal.ts'
import type { PendingFacts } from './explain-facts.ts'
import type { WaitExplanation, WaitReason } from './explain-reasons.ts'
import { sentenceOfPending } from './explain-sentence.ts'
import { kthLargest, rankOf } from './explain-survey.ts'
import type { Tallies, Tally } from './explain-tally.ts'
import { addObstacle, copyOfTallies, detailOf, secondaryOf, tallyOf } from './explain-tally.ts'
import { isRefusedBy } from './feasible.ts'
import { admissibleMib } from './schedule.ts'
import { searchDemandMib } from './shape.ts'

export { explainAssigned, explainReturn } from './explain-return.ts'
export type { EntryFacts, PendingFacts } from './explain-facts.ts'
export { WAIT_REASONS } from './explain-reasons.ts'
export type { ReasonDetail, WaitExplanation, WaitReason } from './explain-reasons.ts'

/** A pending task that owns no bytes. One that does is explained by its entry (`explainReturn`). */
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

/** Counted where the next victim is looked for. */
function servedBeforeIn(
  primary: WaitReason,
  { nearest }: Tally,
  { servedBeforeOn }: PendingFacts,
): number | null {
  const [first] = nearest
  return primary === 'NO_ELIGIBLE_VICTIM' && first !== undefined ? servedBeforeOn(first.node) : null
}

/** What would keep it out of every node: it is held, its groups lead nowhere, or no node has registered. */
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
 * Its owner's limit is in its way on every node: it holds unless an earlier reason keeps it out of all of
 * them.
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
 * After refused or short attempts it waits wherever it would fit: that holds unless an earlier reason keeps
 * it out of all nodes.
 */
function reasonOfThePause({ queued }: PendingFacts, tallies: Tallies, ofOthers: WaitReason): WaitReason {
  const { pause } = queued.task.trouble
  if (pause === null) return ofOthers
  tallyOf(tallies, pause.reason)
  return rankOf(ofOthers) < rankOf(pause.reason) ? ofOthers : pause.reason
}

/** The reason at which no node is left; QUEUED_BEHIND when the task fits; null when there is no node. */
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
    // A plan that is not covered asked for a swap that would not make room beside what is kept.
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

/**
 * A node that the survey found nothing against, and that the scheduler does not take all the same; null when
 * it was not asked about.
 */
export function lateReason(node: Node, facts: PendingFacts): WaitReason | null {
  const { plan, queued, shape } = facts
  if (hasRefusedStart(queued.task.trouble, node.id)) return 'START_REFUSED'
  if (isRefusedBy(queued.task, node)) return 'AWAITING_NODE_ACK'
  const hasReservations = node.gpus.some((gpu) => gpu.reservations.length > 0)
  if (plan !== null) {
    if (plan.node !== node) return null
    return hasReservations ? 'RESERVED_FOR_ANOTHER' : 'NO_ELIGIBLE_VICTIM'
  }
  if (hasReservations) return 'RESERVED_FOR_ANOTHER'
  // Its GPUs admit the task one by one, but together they would promise more host memory than there is.
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
 * What the node's best GPUs admit of this task, holds of tasks before it left alone; now or, unless
 * `isNowOnly`, after a swap.
 */
function admittedOn(node: Node, { queued, shape, policy }: PendingFacts, isNowOnly: boolean): Mib {
  const admitted = (gpu: Gpu) => {
    const now = admissibleMib(gpu, queued, shape, 'now', policy)
    return isNowOnly ? now : Math.max(now, admissibleMib(gpu, queued, shape, 'after_swap', policy))
  }
  return Math.max(0, kthLargest(node.gpus.map(admitted), shape.gpuCount))
}
