/**
 * Pending tasks that wait for another start after refused or short attempts, or for the result of an earlier
 * attempt, and what triggers it: time, or a change (safety 3).
 */
import type { Instant } from '../../../../protocol/units.ts'
import { mayQueue } from '../../../model/placement.ts'
import { NO_TROUBLE } from '../../../model/start-refusal.ts'
import type { StartPause } from '../../../model/start-refusal.ts'
import type { Cluster } from '../../../state/cluster.ts'
import type { LiveTask } from '../../../state/facts.ts'
import { dropEntry } from './entries.ts'

const RESULT_AWAITED = 'RESULT_AWAITED' satisfies StartPause['reason']

/** Emits the pause, once the task is pending again. */
export function emitPause(c: Cluster, task: LiveTask, now: Instant): void {
  const { pause, refusals } = task.trouble
  if (pause === null) return
  const said = refusals.map(({ nodeId, cause, code, detail }) => ({ node: nodeId, cause, code, detail }))
  c.eventLog.taskEvent(now, 'task_paused', task, null, {
    reason: pause.reason,
    until: pause.until,
    ...(pause.reason === 'START_REFUSED' ? { refusals: said } : {}),
  })
}

/** Keeps the task out of its queue until then; a longer pause stays. */
export function awaitResult(c: Cluster, task: LiveTask, until: Instant, now: Instant): void {
  const { pause } = task.trouble
  if (pause !== null && pause.until >= until) return
  if (mayQueue(task)) {
    if (task.placementEntry !== null) dropEntry(c, task.placementEntry)
    c.dequeue(task)
    c.waiting.end(task, now)
    task.isFeasible = false
  }
  const isAwaited = pause?.reason === RESULT_AWAITED
  const next: StartPause = isAwaited
    ? { ...pause, until }
    : { reason: RESULT_AWAITED, since: now, until, prolonged: pause }
  task.trouble = { ...task.trouble, pause: next }
  if (isAwaited) c.eventLog.dirtyTask(task)
  else emitPause(c, task, now)
  planNextTry(c, task)
}

/** The result has arrived and does not end the task. */
export function endWaitForResult(c: Cluster, task: LiveTask, now: Instant): void {
  const { pause } = task.trouble
  if (pause?.reason !== RESULT_AWAITED) return
  const { prolonged = null } = pause
  const left = prolonged !== null && prolonged.until > now ? prolonged : null
  task.trouble = { ...task.trouble, pause: left }
  planNextTry(c, task)
  if (left === null) resume(c, task, 'result', now)
  else c.eventLog.dirtyTask(task)
}

/**
 * A start depends on something that has changed: nodes that refused the task are eligible again, and its
 * pause ends.
 */
export function tryAgain(
  c: Cluster,
  task: LiveTask,
  because: string,
  isForgiven: boolean,
  now: Instant,
): void {
  const { trouble } = task
  if (trouble === NO_TROUBLE) return
  const { pause } = trouble
  const isEnding = pause !== null && (pause.reason === 'START_REFUSED' || isForgiven)
  task.trouble = {
    ...trouble,
    refusals: [],
    refusedCount: 0,
    waits: isForgiven ? 0 : trouble.waits,
    pause: isEnding ? null : pause,
  }
  planNextTry(c, task)
  if (isEnding) resume(c, task, because, now)
  else refreshQueuePlace(c, task)
}

/** A node joined or was opened: tasks that every node refused may start there. */
export function tryRefusedAgain(c: Cluster, because: string, now: Instant): void {
  for (const task of [...c.startTimers.keys()])
    if (task.trouble.pause?.reason === 'START_REFUSED') tryAgain(c, task, because, false, now)
}

/** Plans the instant of the next try by time alone; also after a restart of the controller. */
export function planNextTry(c: Cluster, task: LiveTask): void {
  c.startTimers.get(task)?.()
  c.startTimers.delete(task)
  if (task.state !== 'pending') return
  const { pause, refusals } = task.trouble
  const at = Math.min(pause?.until ?? Infinity, ...refusals.map(({ until }) => until ?? Infinity))
  if (at === Infinity) return
  c.startTimers.set(
    task,
    c.wake(at, (now) => nextTry(c, task, now)),
  )
}

/** Runs when the timer of `planNextTry` is due. */
export function nextTry(c: Cluster, task: LiveTask, now: Instant): void {
  c.startTimers.delete(task)
  const { trouble } = task
  if (task.state !== 'pending') return
  if (trouble.pause !== null && trouble.pause.until <= now) {
    const { reason, prolonged } = trouble.pause
    const isRefused = (prolonged?.reason ?? reason) === 'START_REFUSED'
    task.trouble = { ...trouble, pause: null, ...(isRefused ? { refusals: [], refusedCount: 0 } : {}) }
    resume(c, task, 'time', now)
  } else {
    task.trouble = {
      ...trouble,
      refusals: trouble.refusals.filter(({ until }) => until === null || until > now),
    }
    refreshQueuePlace(c, task)
  }
  planNextTry(c, task)
}

/** The task is placed, or has ended. */
export function forgetTries(c: Cluster, task: LiveTask): void {
  c.startTimers.get(task)?.()
  c.startTimers.delete(task)
}

/** The wait starts now, as after a submission; the position in its class stays. */
function resume(c: Cluster, task: LiveTask, because: string, now: Instant): void {
  task.pendingSince = now
  if (!task.isHeld) {
    if (mayQueue(task)) c.enqueue(task, now)
    c.waiting.begin(task, now)
  }
  c.eventLog.taskEvent(now, 'task_resumed', task, null, { because })
}

/** More nodes are eligible: its queue must be searched again. */
function refreshQueuePlace(c: Cluster, task: LiveTask): void {
  c.eventLog.dirtyTask(task)
  if (task.queue === null) return
  task.queue.add(task)
  c.queueChanges += 1
}
