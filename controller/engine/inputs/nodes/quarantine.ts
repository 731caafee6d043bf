/**
 * Decides about an attempt that a node reports and that is no task's current attempt. With a complete history
 * it was given up and is stopped, an unknown one only when two snapshots name it. While the history may be
 * incomplete the attempt is quarantined (docs/protocol.md, R5).
 */
import type { FinishedEvent, TaskReport } from '../../../../protocol/messages.ts'
import type { DurationMs, Instant } from '../../../../protocol/units.ts'
import type { TaskEnd } from '../../../model/end-reason.ts'
import { ownEnd } from '../../../model/end-reason.ts'
import type { QuarantinedAttempt } from '../../../model/node.ts'
import { isAttempt } from '../../../model/node.ts'
import type { Cluster } from '../../../state/cluster.ts'
import { countQuarantined } from '../../../state/gpu-ledger.ts'
import type { LiveNode, LivePlacement, LiveTask } from '../../../state/facts.ts'
import { attemptKey } from '../../../state/facts.ts'
import { finish, returnToPending } from '../../apply/lifecycle/transitions.ts'
import { isHistoryComplete, pauseOf } from '../../../state/placement-pause.ts'
import { takeReported } from './reported-attempt.ts'

/** `unknown`: named for the first time, or while it must not be stopped. */
export type Fate = 'keeps_running' | 'unknown' | 'stop'

export function fateOf(c: Cluster, node: LiveNode, report: TaskReport, now: Instant): Fate {
  const { task_id: taskId, attempt } = report
  const quarantined = node.quarantine.find((one) => isAttempt(one, taskId, attempt))
  const task = c.tasks.get(taskId)
  if (isKnownToBeOver(c, node, task, report, quarantined)) return 'stop'
  const isIncomplete = !isHistoryComplete(c, node.id)
  if (
    (isIncomplete || quarantined !== undefined) &&
    task?.state === 'pending' &&
    (quarantined?.stoppedBy ?? null) === null
  ) {
    const reported = { ...reportedOf(report), idleMs: idleMsOf(report) }
    if (takeReported(c, node, task, reported, now)) {
      if (quarantined !== undefined) release(c, node, quarantined)
      return 'keeps_running'
    }
  }
  if (quarantined !== undefined) return quarantined.stoppedBy === null ? 'keeps_running' : 'stop'
  if (isIncomplete) {
    quarantine(c, node, report, now)
    return 'keeps_running'
  }
  if (pauseOf(c) !== null) return 'unknown'
  const before = node.unknown.find((one) => isAttempt(one, taskId, attempt))
  if (before === undefined) return 'unknown'
  if (!before.isStopped) emitSettled(c, node, report, { how: 'stopped_unknown', by: null }, now)
  return 'stop'
}

/**
 * An earlier attempt than the task's current one, or a current one that is over or elsewhere. An attempt in
 * quarantine may have the number of one that the store knew on another node: the end of that one says nothing
 * about it.
 */
function isKnownToBeOver(
  c: Cluster,
  node: LiveNode,
  task: LiveTask | undefined,
  { task_id: taskId, attempt }: TaskReport,
  quarantined: QuarantinedAttempt | undefined,
): boolean {
  if (attempt <= (c.endedUnconfirmed.get(taskId) ?? 0)) return true
  if (task === undefined || attempt > task.attempt) return false
  if (attempt < task.attempt) return true
  if (quarantined !== undefined && task.lastNodeId !== node.id) return false
  return task.placement === null || isHistoryComplete(c, node.id)
}

/** Attempts in quarantine that the node no longer has are over. */
export function settleQuarantine(
  c: Cluster,
  node: LiveNode,
  present: ReadonlySet<string>,
  now: Instant,
): void {
  for (const one of node.quarantine)
    if (!present.has(attemptKey(one.taskId, one.attempt)))
      endQuarantined(c, node, one, { outcome: null, exit_code: null }, now)
}

/**
 * The node reports the end of an attempt that is no task's current one. Returns false if this is unrelated to
 * lost history.
 */
export function noteUnknownEnd(c: Cluster, node: LiveNode, event: FinishedEvent, now: Instant): boolean {
  const { task_id: taskId, attempt, outcome, exit_code } = event
  const quarantined = node.quarantine.find((one) => isAttempt(one, taskId, attempt))
  if (quarantined !== undefined) {
    endQuarantined(c, node, quarantined, { outcome, exit_code }, now)
    return true
  }
  if (isHistoryComplete(c, node.id)) return false
  const task = c.tasks.get(taskId)
  if (task === undefined) {
    emitSettled(c, node, { task_id: taskId, attempt }, { how: 'ended', outcome, exit_code }, now)
    return true
  }
  if (task.state !== 'pending' || attempt <= task.attempt) return false
  task.attempt = attempt
  task.lastNodeId = node.id
  finish(c, task, endOf(event), now)
  return true
}

function endOf({ outcome, exit_code: exitCode, detail: reason }: FinishedEvent): TaskEnd {
  switch (outcome) {
    case 'completed':
    case 'failed':
      return ownEnd(outcome, exitCode, reason)
    case 'stopped':
      return { state: 'cancelled', code: 'cancelled', exitCode, reason }
    case 'lease_ended':
      return { state: 'lost', code: 'run_lease_ended', exitCode, reason }
    case 'lost':
      return { state: 'lost', code: 'process_lost', exitCode, reason }
  }
}

/**
 * If a later attempt of the task runs in quarantine, or one of the same number on another node, the task
 * continues with that one. Returns false if none exists.
 */
export function supersede(c: Cluster, placement: LivePlacement, now: Instant): boolean {
  const { task } = placement
  for (const node of c.nodes.values()) {
    const later = node.quarantine.find(
      ({ taskId, attempt, stoppedBy }) =>
        taskId === task.spec.id &&
        stoppedBy === null &&
        (attempt > task.attempt || (attempt === task.attempt && node !== placement.node)),
    )
    if (later === undefined) continue
    returnToPending(c, placement, 'superseded', now)
    if (takeReported(c, node, task, later, now)) release(c, node, later)
    return true
  }
  return false
}

/** Makes the task pending, unless a later attempt of it runs in quarantine. */
export function returnUnlessSuperseded(
  c: Cluster,
  placement: LivePlacement,
  reason: string,
  now: Instant,
): void {
  if (!supersede(c, placement, now)) returnToPending(c, placement, reason, now)
}

/** Removes an attempt that belongs to a task now, or is gone. */
export function release(c: Cluster, node: LiveNode, attempt: QuarantinedAttempt): void {
  countQuarantined(node, attempt, -1)
  node.quarantine = node.quarantine.filter((one) => one !== attempt)
  touch(c, node, attempt)
}

/** Orders the node to stop the attempt until it no longer has it. */
export function stopQuarantined(
  c: Cluster,
  node: LiveNode,
  attempt: QuarantinedAttempt,
  by: string,
  now: Instant,
): void {
  if (attempt.stoppedBy !== null) return
  node.quarantine = node.quarantine.map((one) => (one === attempt ? { ...one, stoppedBy: by } : one))
  c.eventLog.dirtyNode(node)
  emitSettled(
    c,
    node,
    { task_id: attempt.taskId, attempt: attempt.attempt },
    { how: 'stop_ordered', by },
    now,
  )
}

function quarantine(c: Cluster, node: LiveNode, report: TaskReport, now: Instant): void {
  const attempt: QuarantinedAttempt = {
    taskId: report.task_id,
    ...reportedOf(report),
    since: now,
    stoppedBy: null,
  }
  node.quarantine = [...node.quarantine, attempt]
  countQuarantined(node, attempt, 1)
  touch(c, node, attempt)
  const { task_id, gpus, vram_mib } = report
  c.eventLog.emit(now, 'attempt_quarantined', null, node.id, null, {
    task: task_id,
    attempt: report.attempt,
    gpus,
    vram_mib,
  })
}

function endQuarantined(
  c: Cluster,
  node: LiveNode,
  attempt: QuarantinedAttempt,
  end: { readonly outcome: string | null; readonly exit_code: number | null },
  now: Instant,
): void {
  release(c, node, attempt)
  emitSettled(c, node, { task_id: attempt.taskId, attempt: attempt.attempt }, { how: 'ended', ...end }, now)
}

export function emitSettled(
  c: Cluster,
  node: LiveNode,
  ref: { readonly task_id: string; readonly attempt: number },
  data: Readonly<Record<string, string | number | null>>,
  now: Instant,
): void {
  c.eventLog.emit(now, 'attempt_settled', null, node.id, null, {
    task: ref.task_id,
    attempt: ref.attempt,
    ...data,
  })
}

function touch(c: Cluster, node: LiveNode, { gpus }: QuarantinedAttempt): void {
  c.eventLog.dirtyNode(node)
  for (const index of gpus) {
    const gpu = node.gpus[index]
    if (gpu !== undefined) c.touchGpu(gpu)
  }
}

/** Since its start; 0 once it was moved: its last use may be before its return. */
function idleMsOf({ residency, generation, wants_gpu, idle_ms }: TaskReport): DurationMs {
  return residency === 'resident' && generation === 1 && !wants_gpu ? idle_ms : 0
}

function reportedOf({
  attempt,
  gpus,
  vram_mib,
  residency,
  generation,
  wants_gpu,
}: TaskReport): Omit<QuarantinedAttempt, 'taskId' | 'since' | 'stoppedBy'> {
  return { attempt, gpus, vramMib: vram_mib, residency, generation, wantsGpu: wants_gpu }
}
