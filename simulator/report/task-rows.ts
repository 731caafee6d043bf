/**
 * tasks.csv: one row per task, first the ended tasks in the order of their end, then the others in the order
 * of submission.
 */
import type { DurationMs, Instant } from '../../protocol/units.ts'
import type { OpenOutcome, TaskOutcome } from '../results/collector.ts'
import { csvLine, seconds } from '../results/csv.ts'

export const TASK_COLUMNS = [
  'id',
  'state',
  'submitted_s',
  'started_s',
  'finished_s',
  'queue_wait_s',
  'jct_s',
  'slowdown',
]

/** @param startedAt start of the run: times are seconds since then */
export function finishedTaskLine(task: TaskOutcome, startedAt: Instant): string {
  const jctMs = task.finishedAt - task.submittedAt
  const slowdown =
    task.state === 'completed' && task.aloneMs !== null && task.aloneMs > 0
      ? (jctMs / task.aloneMs).toFixed(6)
      : ''
  return csvLine([
    task.id,
    task.state,
    seconds(task.submittedAt - startedAt),
    since(task.startedAt, startedAt),
    seconds(task.finishedAt - startedAt),
    since(task.startedAt, task.submittedAt),
    seconds(jctMs),
    slowdown,
  ])
}

export function openTaskLine(task: OpenOutcome, startedAt: Instant): string {
  const state = task.startedAt === null ? 'pending' : 'running'
  return csvLine([
    task.id,
    state,
    seconds(task.submittedAt - startedAt),
    since(task.startedAt, startedAt),
    '',
    since(task.startedAt, task.submittedAt),
    '',
    '',
  ])
}

function since(instant: Instant | null, from: Instant): string {
  const ms: DurationMs | null = instant === null ? null : instant - from
  return ms === null ? '' : seconds(ms)
}
