/** What GPU servers report, and what it changes. Late, duplicate and stale reports change nothing (semantics 3, R8). */
import type { CommandResult, NodeEvent, ResidencyEvent } from '../../protocol/messages.ts'
import type { Instant } from '../../protocol/units.ts'
import type { FinalState } from '../domain/task.ts'
import type { Cluster } from './cluster.ts'
import { askForGrowth, askForSwapIn, dropEntry } from './entries.ts'
import type { LivePlacement } from './live.ts'
import { changeWants, finish, returnToPending, setResidency, started } from './transitions.ts'

/** A failed swap makes its task no victim, and no candidate to return, for this long. */
export const SWAP_BACK_OFF_MS = 30_000

/** The placement a report speaks of, if it is still the current attempt there. */
export function currentPlacement(c: Cluster, nodeId: string, taskId: string, attempt: number): LivePlacement | null {
  const placement = c.tasks.get(taskId)?.placement ?? null
  return placement !== null && placement.attempt === attempt && placement.node.id === nodeId ? placement : null
}

export function applyNodeEvent(c: Cluster, nodeId: string, event: NodeEvent, now: Instant): void {
  const placement = currentPlacement(c, nodeId, event.task_id, event.attempt)
  if (placement === null) return
  switch (event.kind) {
    case 'started':
      if (placement.startedAt === null) started(c, placement, event.wants_gpu, now)
      return
    case 'finished':
      return applyFinished(c, placement, event.outcome, event.exit_code, event.detail, now)
    case 'residency':
      return applyResidency(c, placement, event, now)
    case 'gpu_wanted':
      return applyWants(c, placement, true, 0, now)
    case 'gpu_used':
      return applyWants(c, placement, false, event.idle_ms, now)
    case 'allocation_wanted':
      if (event.mib > placement.demandMib) askForGrowth(c, placement, event.mib, now)
      return
    case 'reserve_breached':
      c.recorder.emit(now, 'reserve_breached', event.task_id, nodeId, null, { gpu: event.gpu, free_mib: event.free_mib })
      return
  }
}

/** The task wants the GPU or has run dry; a swapped-out one asks to return, or no longer does. */
export function applyWants(c: Cluster, placement: LivePlacement, wantsGpu: boolean, idleMs: number, now: Instant): void {
  if (placement.startedAt === null) return
  changeWants(c, placement, wantsGpu, idleMs, now)
  if (wantsGpu && placement.residency === 'swapped_out') askForSwapIn(c, placement, now)
  if (!wantsGpu && placement.heldGrowth === null && placement.entry?.kind === 'swap_in') dropEntry(c, placement.entry)
}

function applyFinished(
  c: Cluster,
  placement: LivePlacement,
  outcome: 'completed' | 'failed' | 'stopped' | 'lease_ended' | 'lost',
  exitCode: number | null,
  detail: string | null,
  now: Instant,
): void {
  const policy = placement.task.spec.onNodeLoss
  if ((outcome === 'lease_ended' || outcome === 'lost') && policy === 'requeue' && !placement.isStopping) {
    returnToPending(c, placement, outcome, now)
    return
  }
  const state: Record<typeof outcome, FinalState> = {
    completed: 'completed',
    failed: 'failed',
    stopped: 'cancelled',
    lease_ended: 'lost',
    lost: 'lost',
  }
  finish(c, placement.task, placement.isStopping ? 'cancelled' : state[outcome], exitCode, detail, now)
}

/** A swap ended, as ordered or not. */
function applyResidency(c: Cluster, placement: LivePlacement, event: ResidencyEvent, now: Instant): void {
  if (event.generation <= placement.generation && event.because === null) return
  placement.generation = Math.max(placement.generation, event.generation)
  const to = event.residency
  if (to !== 'resident' && to !== 'swapped_out') return
  if (event.because !== null && event.because !== 'woke_while_locked') backOff(c, placement, event.because, now)
  setResidency(c, placement, to, event.because, now)
  if (to === 'swapped_out' && placement.wantsGpu) askForSwapIn(c, placement, now)
}

function backOff(c: Cluster, placement: LivePlacement, reason: string, now: Instant): void {
  placement.backOffUntil = now + SWAP_BACK_OFF_MS
  c.recorder.taskEvent(now, 'swap_failed', placement.task, placement.node.id, { reason, residency: placement.residency })
}

/** The answer to a command. `accepted` and `running` change nothing: the node's events do. */
export function applyCommandResult(c: Cluster, nodeId: string, command: string, result: CommandResult, now: Instant): void {
  const placement = currentPlacement(c, nodeId, result.task_id, result.attempt)
  if (placement === null) return
  switch (result.outcome) {
    case 'accepted':
    case 'running':
    case 'finished':
      return
    case 'never_seen':
      returnToPending(c, placement, 'never_seen', now)
      return
    case 'gone':
      return applyFinished(c, placement, 'lost', null, 'the node no longer has it', now)
    case 'refused':
      return applyRefusal(c, placement, command, result, now)
  }
}

function applyRefusal(c: Cluster, placement: LivePlacement, command: string, result: CommandResult, now: Instant): void {
  const reason = result.reason ?? 'refused'
  if (command === 'start') {
    const { task, node } = placement
    const refusedBy = new Map(task.refusedBy ?? [])
    returnToPending(c, placement, reason, now)
    task.refusedBy = refusedBy.set(node.id, node.snapshotSeq)
    c.refusedTasks.add(task)
    return
  }
  if (command === 'swap_out' && placement.residency === 'swapping_out') {
    if (reason !== 'wants_gpu') backOff(c, placement, reason, now)
    setResidency(c, placement, 'resident', reason, now)
    if (reason === 'wants_gpu') applyWants(c, placement, true, 0, now)
  }
  if (command === 'swap_in' && placement.residency === 'swapping_in') {
    backOff(c, placement, reason, now)
    setResidency(c, placement, 'swapped_out', reason, now)
    if (placement.wantsGpu) askForSwapIn(c, placement, now)
  }
}
