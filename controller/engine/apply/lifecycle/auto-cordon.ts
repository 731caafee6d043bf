/**
 * Nodes that cannot start tasks are closed for a while (safety 3). The controller cordons such a node, and
 * uncordons it when a trial start works. It never closes more than half of the nodes: if more fail, the cause
 * is shared and needs an operator.
 */
import type { DurationMs, Instant } from '../../../../protocol/units.ts'
import type { AutoCordon } from '../../../model/node.ts'
import type { Cluster } from '../../../state/cluster.ts'
import type { LiveNode, LivePlacement } from '../../../state/facts.ts'
import { doubled } from './doubled.ts'
import { tryRefusedAgain } from './start-tries.ts'

/** This number of refused starts for reasons of the host, within this time, closes the node. */
const REFUSALS_TO_CORDON = 3
export const REFUSALS_WITHIN_MS: DurationMs = 5 * 60_000
/** Wait before the first trial start; it doubles with each failure. */
const FIRST_TRIAL_MS: DurationMs = 30_000
const MAX_TRIAL_MS: DurationMs = 30 * 60_000

/** Records that the node could not start this attempt for reasons of its own. */
export function noteHostRefusal(
  c: Cluster,
  node: LiveNode,
  attempt: NonNullable<AutoCordon['trial']>,
  code: string,
  reason: string,
  now: Instant,
): void {
  const { autoCordon } = node
  node.hostRefusals = [...node.hostRefusals.filter((at) => now - at < REFUSALS_WITHIN_MS), now].slice(
    -REFUSALS_TO_CORDON,
  )
  if (autoCordon !== null) {
    if (isTrial(autoCordon, attempt))
      close(c, node, { ...autoCordon, code, reason }, autoCordon.failedTrials + 1, now)
    return
  }
  if (node.hostRefusals.length < REFUSALS_TO_CORDON || node.isCordoned) return
  if (!mayClose(c)) {
    node.isCordonDenied = true
    return
  }
  close(
    c,
    node,
    { code, reason, since: now, nextTrialAt: now, failedTrials: 0, isTrialOpen: false, trial: null },
    0,
    now,
  )
}

/**
 * Makes a placement on a closed node its trial start: no other task is placed there until the trial has
 * started.
 */
export function noteTrial(c: Cluster, { node, task, attempt }: LivePlacement): void {
  const { autoCordon } = node
  if (autoCordon === null || !autoCordon.isTrialOpen) return
  node.autoCordon = { ...autoCordon, isTrialOpen: false, trial: { taskId: task.spec.id, attempt } }
  for (const gpu of node.gpus) c.gpuLostRoom(gpu)
  c.eventLog.dirtyNode(node)
}

/** A start has worked on the node. */
export function noteStarted(c: Cluster, { node, task, attempt }: LivePlacement, now: Instant): void {
  node.isCordonDenied = false
  if (node.autoCordon !== null && isTrial(node.autoCordon, { taskId: task.spec.id, attempt })) {
    endAutoCordon(c, node, 'trial_start', now)
  }
}

/** An attempt ended without a confirmed start: another task may become the trial. */
export function noteUnstarted(c: Cluster, { node, task, attempt }: LivePlacement): void {
  const { autoCordon } = node
  if (autoCordon === null || !isTrial(autoCordon, { taskId: task.spec.id, attempt })) return
  node.autoCordon = { ...autoCordon, isTrialOpen: true, trial: null }
  c.eventLog.dirtyNode(node)
}

/** Opens the node again, by an operator or after a trial start. */
export function endAutoCordon(c: Cluster, node: LiveNode, because: string, now: Instant): void {
  node.hostRefusals = []
  node.isCordonDenied = false
  if (node.autoCordon === null) return
  node.autoCordon = null
  node.cancelTrial?.()
  node.cancelTrial = null
  for (const gpu of node.gpus) c.touchGpu(gpu)
  c.waiting.isFeasibilityStale = true
  c.eventLog.emit(now, 'node_auto_cordon', null, node.id, null, { is_auto_cordoned: false, because })
  c.eventLog.dirtyNode(node)
  tryRefusedAgain(c, 'node_uncordoned', now)
}

/** Plans the next trial start; also after a restart of the controller. */
function planTrial(c: Cluster, node: LiveNode): void {
  node.cancelTrial?.()
  node.cancelTrial = null
  const { autoCordon } = node
  if (autoCordon === null || autoCordon.isTrialOpen || autoCordon.trial !== null) return
  node.cancelTrial = c.wake(autoCordon.nextTrialAt, () => openTrial(c, node))
}

/** After a restart of the controller: finds a trial in progress, or reopens the trial if it has ended. */
export function resumeAutoCordon(c: Cluster, node: LiveNode): void {
  const { autoCordon } = node
  if (autoCordon === null) return
  const task = autoCordon.trial === null ? undefined : c.tasks.get(autoCordon.trial.taskId)
  const isUnderWay =
    task?.placement?.attempt === autoCordon.trial?.attempt && task?.placement?.startedAt === null
  if (autoCordon.trial !== null && !isUnderWay)
    node.autoCordon = { ...autoCordon, isTrialOpen: true, trial: null }
  planTrial(c, node)
}

/** Allows one task to be placed there as a trial. */
export function openTrial(c: Cluster, node: LiveNode): void {
  node.cancelTrial = null
  if (node.autoCordon === null) return
  node.autoCordon = { ...node.autoCordon, isTrialOpen: true, trial: null }
  for (const gpu of node.gpus) c.touchGpu(gpu)
  c.eventLog.dirtyNode(node)
}

function close(c: Cluster, node: LiveNode, cordon: AutoCordon, failedTrials: number, now: Instant): void {
  const nextTrialAt = now + doubled(FIRST_TRIAL_MS, failedTrials + 1, MAX_TRIAL_MS)
  node.isCordonDenied = false
  node.autoCordon = { ...cordon, failedTrials, nextTrialAt, isTrialOpen: false, trial: null }
  for (const gpu of node.gpus) c.touchGpu(gpu)
  c.waiting.isFeasibilityStale = true
  const { code, reason } = cordon
  const data = {
    is_auto_cordoned: true,
    code,
    reason,
    next_trial_at: nextTrialAt,
    failed_trials: failedTrials,
  }
  c.eventLog.emit(now, 'node_auto_cordon', null, node.id, null, data)
  c.eventLog.dirtyNode(node)
  planTrial(c, node)
}

/** Returns true if at most half of the nodes are closed with one more. */
function mayClose(c: Cluster): boolean {
  let closed = 1
  for (const node of c.nodes.values()) if (node.autoCordon !== null) closed += 1
  return 2 * closed <= c.nodes.size
}

function isTrial({ trial }: AutoCordon, { taskId, attempt }: NonNullable<AutoCordon['trial']>): boolean {
  return trial !== null && trial.taskId === taskId && trial.attempt === attempt
}
