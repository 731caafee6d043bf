/**
 * Reports of GPU servers and their effects. Late, duplicate and stale reports change nothing (semantics 3,
 * R8).
 */
import type {
  CommandResult,
  FinishedEvent,
  NodeEvent,
  ResidencyEvent,
} from '../../../../protocol/messages.ts'
import type { Instant, Mib } from '../../../../protocol/units.ts'
import type { EndCode, TaskEnd } from '../../../model/end-reason.ts'
import { ownEnd } from '../../../model/end-reason.ts'
import type { FinalState } from '../../../model/task.ts'
import type { Cluster } from '../../../state/cluster.ts'
import { forgetOtherAttempt } from '../../../state/attempt-limit.ts'
import { askForGrowth, askForSwapIn, dropEntry } from '../../apply/lifecycle/entries.ts'
import { applyLateResult } from './late-result.ts'
import type { LivePlacement, LiveTask } from '../../../state/facts.ts'
import type { Stopping } from '../../../model/placement.ts'
import { lacksHistoryOf, pauseOf } from '../../../state/placement-pause.ts'
import { endUnknown } from './result-unknown.ts'
import { noteUnknownEnd, returnUnlessSuperseded, supersede } from './quarantine.ts'
import { applyPrepareAnswer } from '../../apply/lifecycle/preparations.ts'
import { noteRefusal } from '../../apply/lifecycle/refusals.ts'
import { requeueLost } from '../../apply/lifecycle/requeue-limit.ts'
import { refuseStart } from './start-refusals.ts'
import { whyNeverGranted, refuseTooLarge } from './too-large.ts'
import {
  changeWants,
  finish,
  setNoswap,
  setResidency,
  setSwappedOut,
  setWakeable,
  started,
} from '../../apply/lifecycle/transitions.ts'

/** After a failed swap the task is neither a victim nor swapped in for this long. */
export const SWAP_BACK_OFF_MS = 30_000

/** Returns the placement that a report concerns, if it is still the task's current attempt. */
export function currentPlacement(
  c: Cluster,
  nodeId: string,
  taskId: string,
  attempt: number,
): LivePlacement | null {
  const placement = c.tasks.get(taskId)?.placement ?? null
  return placement !== null && placement.attempt === attempt && placement.node.id === nodeId
    ? placement
    : null
}

export function applyNodeEvent(c: Cluster, nodeId: string, event: NodeEvent, now: Instant): void {
  const placement = currentPlacement(c, nodeId, event.task_id, event.attempt)
  if (placement === null) {
    if (event.kind !== 'finished') return
    const node = c.nodes.get(nodeId)
    if (node !== undefined) forgetOtherAttempt(c, node, event)
    if (node === undefined || !noteUnknownEnd(c, node, event, now)) applyLateResult(c, nodeId, event, now)
    return
  }
  switch (event.kind) {
    case 'started':
      if (event.image_digest !== undefined) noteImage(c, placement.task, event.image_digest)
      if (placement.startedAt === null) confirmStart(c, placement, event.wants_gpu, now)
      return
    case 'finished':
      if (isRefusedStart(placement, event))
        return refuseStart(c, placement, event.start_refused, event.detail ?? event.start_refused.code, now)
      return applyFinished(c, placement, event.outcome, event.exit_code, event.detail, now)
    case 'residency':
      return applyResidency(c, placement, event, now)
    case 'gpu_wanted':
      return applyNodeWants(c, placement, true, 0, now)
    case 'gpu_used':
      return applyNodeWants(c, placement, false, event.idle_ms, now)
    case 'allocation_wanted':
      if (event.mib <= placement.demandMib) grantAgain(c, placement)
      else growOrRefuse(c, placement, event.mib, now)
      return
    case 'reserve_breached':
      c.eventLog.emit(now, 'reserve_breached', event.task_id, nodeId, null, {
        gpu: event.gpu,
        free_mib: event.free_mib,
      })
      return
  }
}

function growOrRefuse(c: Cluster, placement: LivePlacement, mib: Mib, now: Instant): void {
  const why = whyNeverGranted(placement, mib)
  if (why === null) askForGrowth(c, placement, mib, now)
  else refuseTooLarge(c, placement, mib, why, now)
}

/** A later attempt runs the same image. */
function noteImage(c: Cluster, task: LiveTask, digest: string): void {
  if (task.imageDigest !== null) return
  task.imageDigest = digest
  c.eventLog.dirtyTask(task)
}

/** The attempt never ran, and no stop was ordered. */
function isRefusedStart(
  { stopping }: LivePlacement,
  event: FinishedEvent,
): event is FinishedEvent & Required<Pick<FinishedEvent, 'start_refused'>> {
  return (
    event.start_refused !== undefined &&
    event.outcome === 'failed' &&
    (stopping === null || stopping.then === 'pending')
  )
}

/** The node's latest message, or an earlier one, says that the attempt runs. */
export function confirmStart(c: Cluster, placement: LivePlacement, wantsGpu: boolean, now: Instant): void {
  const { boot, contact } = placement.node
  placement.confirmed = { bootCounter: boot.counter, seq: contact.heardSeq }
  started(c, placement, placement.task.clientWants ?? wantsGpu, now)
}

/**
 * Applies the server's report on whether the task wants the GPU; ignored for a lease whose client reports it.
 */
export function applyNodeWants(
  c: Cluster,
  placement: LivePlacement,
  wantsGpu: boolean,
  idleMs: number,
  now: Instant,
): void {
  if (placement.task.clientWants === null) applyWants(c, placement, wantsGpu, idleMs, now)
}

/**
 * Applies what the client of a lease reports about wanting the GPU; null: from now on its server reports it.
 */
export function applyClientWants(c: Cluster, task: LiveTask, wantsGpu: boolean | null, now: Instant): void {
  if (task.clientWants !== wantsGpu) {
    task.clientWants = wantsGpu
    c.eventLog.dirtyTask(task)
  }
  if (wantsGpu !== null && task.placement !== null && task.placement.wantsGpu !== wantsGpu)
    applyWants(c, task.placement, wantsGpu, 0, now)
}

/** The amount was granted before, and the grant did not arrive. */
function grantAgain(c: Cluster, placement: LivePlacement): void {
  const { node, task, attempt, demandMib } = placement
  c.eventLog.transaction.effects.push({
    kind: 'grant',
    nodeId: node.id,
    taskId: task.spec.id,
    attempt,
    mib: demandMib,
    reason: null,
  })
}

/**
 * The attempt ended with an unknown result, or its lease ended it (R7). `because` names the cause in the
 * event.
 */
export function endLost(
  c: Cluster,
  placement: LivePlacement,
  because: LossCause,
  detail: string | null,
  now: Instant,
): void {
  const { task, stopping } = placement
  if (stopping !== null) endStopped(c, placement, null, detail, now)
  else if (supersede(c, placement, now)) return
  else if (task.spec.onNodeLoss === 'requeue') requeueLost(c, placement, because, now)
  else
    finish(
      c,
      task,
      { state: 'lost', code: codeOfLoss(because, placement), exitCode: null, reason: detail },
      now,
    )
}

export type LossCause = 'absent' | 'gone' | 'lease_ended' | 'lost' | 'never_seen' | 'node_unreachable'

function codeOfLoss(because: LossCause, { isInDoubt }: LivePlacement): EndCode {
  switch (because) {
    case 'absent':
    case 'gone':
    case 'never_seen':
      return 'result_unknown'
    case 'lease_ended':
      return 'run_lease_ended'
    case 'lost':
      return 'process_lost'
    case 'node_unreachable':
      return isInDoubt ? 'node_state_lost' : 'node_unreachable'
  }
}

/** A signal is not the end reason of a task that was stopped on order. */
function wordsOf(detail: string | null): string | null {
  return detail === null || detail.startsWith('signal ') ? null : detail
}

/** Returns how a stopped task ends: as ordered, unless an earlier attempt has a result. */
export function endOfStopped(
  state: FinalState,
  stopping: Stopping,
  exitCode: number | null,
  detail: string | null,
): TaskEnd {
  return {
    state,
    code: stopping.code ?? (state === 'failed' ? 'max_runtime' : 'cancelled'),
    exitCode: stopping.exitCode ?? exitCode,
    reason:
      stopping.exitCode === undefined
        ? (stopping.endReason ?? wordsOf(detail) ?? stopping.reason)
        : stopping.endReason,
  }
}

/** A stopped attempt has ended. */
function endStopped(
  c: Cluster,
  placement: LivePlacement,
  exitCode: number | null,
  detail: string | null,
  now: Instant,
): void {
  const { task, stopping } = placement
  if (stopping === null) throw new Error(`broken invariant: task ${task.spec.id} was not told to stop`)
  if (stopping.then === 'pending') returnUnlessSuperseded(c, placement, stopping.reason, now)
  else finish(c, task, endOfStopped(stopping.then, stopping, exitCode, detail), now)
}

/**
 * The task starts or stops wanting the GPU; a swapped-out one requests its return, or withdraws the request.
 */
function applyWants(
  c: Cluster,
  placement: LivePlacement,
  wantsGpu: boolean,
  idleMs: number,
  now: Instant,
): void {
  if (placement.startedAt === null) return
  changeWants(c, placement, wantsGpu, idleMs, now)
  if (wantsGpu && placement.residency === 'swapped_out') askForSwapIn(c, placement, now)
  if (isWantedBack(placement) || placement.heldGrowth !== null) return
  if (placement.entry?.kind === 'swap_in') dropEntry(c, placement.entry)
}

function applyFinished(
  c: Cluster,
  placement: LivePlacement,
  outcome: 'completed' | 'failed' | 'stopped' | 'lease_ended' | 'lost',
  exitCode: number | null,
  detail: string | null,
  now: Instant,
): void {
  const { task, stopping } = placement
  const isItsOwnEnd = outcome === 'completed' || outcome === 'failed'
  // A task that ends by itself while a stop is pending counts as finished, unless it was cancelled.
  if (stopping !== null && !(isItsOwnEnd && stopping.then !== 'cancelled'))
    return endStopped(c, placement, exitCode, detail, now)
  if (isItsOwnEnd) return finish(c, task, ownEnd(outcome, exitCode, detail), now)
  if (outcome === 'stopped')
    return finish(c, task, { state: 'cancelled', code: 'stopped_by_node', exitCode, reason: detail }, now)
  endLost(c, placement, outcome, detail, now)
}

/** Returns true if work, an operator, its probe or a stop grace (to handle SIGTERM) requests its return. */
export function isWantedBack({ wantsGpu, isSwapInRequested, isProbed, stopping }: LivePlacement): boolean {
  return wantsGpu || isSwapInRequested || isProbed || (stopping?.graceMs ?? 0) > 0
}

/** A swap ended, as ordered or not. */
function applyResidency(c: Cluster, placement: LivePlacement, event: ResidencyEvent, now: Instant): void {
  if (event.generation <= placement.generation) return
  placement.generation = event.generation
  const to = event.residency
  if (to !== 'resident' && to !== 'swapped_out') return
  if (event.because !== null && event.because !== 'woke_while_locked')
    backOff(c, placement, event.because, now)
  placement.outBy = to === 'swapped_out' ? (event.swap_method ?? null) : null
  if (to === 'swapped_out') setSwappedOut(c, placement, event.residual_mib ?? 0, event.because, now)
  else setResidency(c, placement, to, event.because, now)
  setWakeable(c, placement, event.wakeable === true, now)
  if (event.because === 'not_swappable') becomesNoswap(c, placement, event.detail ?? null, now)
  if (to === 'swapped_out' && isWantedBack(placement)) askForSwapIn(c, placement, now)
}

/**
 * Its server found that it cannot be swapped (several processes, managed memory, …). The server decides (R12)
 * and already counts the task as noswap.
 */
function becomesNoswap(c: Cluster, placement: LivePlacement, why: string | null, now: Instant): void {
  if (placement.noswap === 1 || placement.residency !== 'resident') return
  placement.whyNotSwappable = why
  setNoswap(c, placement, 1, now)
  c.eventLog.taskEvent(now, 'task_became_noswap', placement.task, placement.node.id, {
    attempt: placement.attempt,
    ...(why === null ? {} : { reason: why }),
  })
}

/** It is swapped again after a while. */
export function backOff(c: Cluster, placement: LivePlacement, reason: string, now: Instant): void {
  placement.backOffUntil = now + SWAP_BACK_OFF_MS
  c.eventLog.taskEvent(now, 'swap_failed', placement.task, placement.node.id, {
    reason,
    residency: placement.residency,
  })
}

/**
 * The answer to a command, in the node's message number `seq`. `accepted` and `running` change nothing: the
 * node's events do. Answers of a server that has lost its state say nothing about earlier attempts (R6).
 */
export function applyCommandResult(
  c: Cluster,
  nodeId: string,
  command: string,
  result: CommandResult,
  seq: number,
  now: Instant,
): void {
  if (command === 'prepare') return applyPrepareAnswer(c, nodeId, result, seq, now)
  const placement = currentPlacement(c, nodeId, result.task_id, result.attempt)
  if (placement === null || placement.isInDoubt) return
  switch (result.outcome) {
    case 'accepted':
      if (command === 'set_noswap') acknowledgeNoswap(c, placement)
      return
    case 'running':
    case 'finished':
      return
    case 'never_seen':
      return applyNeverSeen(c, placement, now)
    case 'gone':
      // A later attempt may run on a node that was not heard yet: the next snapshot shows whether this one is
      // over.
      if (pauseOf(c) !== null && placement.startedAt !== null) return
      // The start was never confirmed in this store, and the node reports the end: the store lost the result.
      if (placement.startedAt === null && placement.stopping === null && lacksHistoryOf(c, placement.node.id))
        return endUnknown(c, placement, now)
      return endLost(c, placement, 'gone', 'the node no longer has it', now)
    case 'refused':
      return applyRefusal(c, placement, command, result, seq, now)
  }
}

/** The attempt has never run there, and never will (R7). */
function applyNeverSeen(c: Cluster, placement: LivePlacement, now: Instant): void {
  if (placement.startedAt !== null)
    endLost(c, placement, 'never_seen', 'the node says that it never had it', now)
  else if (placement.stopping !== null) endStopped(c, placement, null, null, now)
  else returnUnlessSuperseded(c, placement, 'never_seen', now)
}

function acknowledgeNoswap(c: Cluster, placement: LivePlacement): void {
  placement.isNoswapUnacknowledged = false
  c.eventLog.dirtyTask(placement.task)
}

function applyRefusal(
  c: Cluster,
  placement: LivePlacement,
  command: string,
  result: CommandResult,
  seq: number,
  now: Instant,
): void {
  const reason = result.reason ?? 'refused'
  if (command === 'start') {
    const { task, node } = placement
    if (placement.stopping?.then === 'cancelled') return endStopped(c, placement, null, null, now)
    if (result.start_refused !== undefined && result.start_refused.cause !== 'passing')
      return refuseStart(c, placement, result.start_refused, reason, now)
    returnUnlessSuperseded(c, placement, reason, now)
    noteRefusal(c, task, node.id, Math.max(seq, node.snapshotSeq))
    return
  }
  if (command === 'swap_out' && placement.residency === 'swapping_out') {
    if (reason !== 'wants_gpu') backOff(c, placement, reason, now)
    setResidency(c, placement, 'resident', reason, now)
    if (reason === 'noswap') becomesNoswap(c, placement, null, now)
    if (reason === 'wants_gpu') applyNodeWants(c, placement, true, 0, now)
  }
  if (command === 'swap_in' && placement.residency === 'swapping_in') {
    backOff(c, placement, reason, now)
    setResidency(c, placement, 'swapped_out', reason, now)
    if (isWantedBack(placement)) askForSwapIn(c, placement, now)
  }
}
