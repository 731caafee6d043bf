/**
 * Why a task ended, as a closed list of codes. Every ended task has exactly one. Its reason text may add
 * details; without one the code's own sentence is used. The list is in docs/events.md; a test compares both.
 */
import { MEMORY_LIMIT_REACHED, VRAM_LIMIT_EXCEEDED } from '../../protocol/resource-limits.ts'
import type { TaskState } from '../../protocol/units.ts'

export const END_SENTENCES = {
  completed: 'exit code 0',
  exit_code: 'an exit code other than 0',
  signal: 'ended by a signal that Headroom did not send',
  memory_limit: 'it reached its limit of memory (memory_mib), and the kernel killed a process of it',
  vram_limit: 'it used more VRAM than its limit (vram_limit_mib), and the GPU server ended it',
  start_failed: 'the GPU server could not start the command',
  image_not_available: 'no GPU server could get its image',
  cancelled: 'cancelled',
  lease_expired: 'the client of the lease stopped renewing it',
  requeue_limit: 'its attempts ended soon after their start more often than max_requeues allows',
  max_runtime: 'the attempt reached max_runtime_seconds',
  stopped_by_node: 'the GPU server was told to end its tasks',
  run_lease_ended: 'the run lease of the GPU server was over, and its guard ended the task',
  process_lost: 'the guard of the task died; the result is unknown',
  result_unknown: 'the GPU server no longer has the task; the result is unknown',
  node_unreachable: 'the GPU server was unreachable until its run lease was over',
  node_state_lost: 'the GPU server lost its state; the result is unknown',
  gpu_replaced: 'the GPU server came back with other GPUs',
  unknown_before_upgrade: 'it ended before an upgrade; the reason was not recorded',
} as const satisfies Readonly<Record<string, string>>

export type EndCode = keyof typeof END_SENTENCES

export const END_CODES = Object.keys(END_SENTENCES) as readonly EndCode[]

/** How a task ends: its final state, why, and the exit code of its command. */
export interface TaskEnd {
  readonly state: Exclude<TaskState, 'pending' | 'assigned' | 'running' | 'unreachable'>
  readonly code: EndCode
  readonly exitCode: number | null
  /** As text, if there are details beyond the code. */
  readonly reason: string | null
  /** The attempt that ended; omitted: the current one. */
  readonly attempt?: number
}

/** An end that the process reached by itself. */
export function ownEnd(
  state: 'completed' | 'failed',
  exitCode: number | null,
  reason: string | null,
): TaskEnd {
  return { state, code: state === 'completed' ? 'completed' : ownEndCode(exitCode, reason), exitCode, reason }
}

function ownEndCode(exitCode: number | null, detail: string | null): EndCode {
  if (exitCode === null) return 'start_failed'
  if (exitCode === 0) return 'completed'
  if (detail === MEMORY_LIMIT_REACHED) return 'memory_limit'
  if (detail?.startsWith(VRAM_LIMIT_EXCEEDED) === true) return 'vram_limit'
  return detail !== null && /^signal SIG/.test(detail) ? 'signal' : 'exit_code'
}

/** State and exit code say it already, so the event of the end omits it. */
export function isPlainEnd(code: EndCode): boolean {
  return code === 'completed' || code === 'exit_code'
}

interface Ended {
  readonly state: TaskState
  readonly exitCode: number | null
  readonly endReason: string | null
  /** Absent in older records. */
  readonly endCode?: EndCode | null
}

/** Spellings in earlier records. */
const RENAMED: ReadonlyMap<string, EndCode> = new Map([['REQUEUE_LIMIT', 'requeue_limit']])

/** Null: the task has not ended. For records without a code it is derived from their other fields. */
export function endCodeOf({ state, exitCode, endReason, endCode }: Ended): EndCode | null {
  if (state === 'pending' || state === 'assigned' || state === 'running' || state === 'unreachable')
    return null
  if (endCode !== undefined && endCode !== null) return RENAMED.get(endCode) ?? endCode
  if (state === 'completed') return 'completed'
  if (endReason === 'lease_expired') return 'lease_expired'
  if (state === 'cancelled') return 'cancelled'
  if (state === 'failed' && endReason?.startsWith('max_runtime_seconds') === true) return 'max_runtime'
  return state === 'failed' && exitCode !== null ? ownEndCode(exitCode, endReason) : 'unknown_before_upgrade'
}

/** Why the task ended, as text; null only while it has not ended. */
export function endSentenceOf(ended: Ended): string | null {
  const code = endCodeOf(ended)
  if (code === null) return null
  if (ended.endReason !== null) return ended.endReason
  if (code === 'exit_code') return `exit code ${ended.exitCode ?? 'unknown'}`
  return END_SENTENCES[code]
}
