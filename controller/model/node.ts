/** Properties of a node that its record keeps as they are. */
import type { Instant, Mib, Residency } from '../../protocol/units.ts'

/** `up`: heard lately. `suspect`: silent, no placement. `unreachable`: its lease is over. */
export type NodeStatus = 'up' | 'suspect' | 'unreachable'

/** The controller closed the node: starts were refused there for reasons that do not depend on the task. */
export interface AutoCordon {
  readonly since: Instant
  /** Code of the last refusal, and the node's message. */
  readonly code: string
  readonly reason: string
  /** From then on one task may be placed there as a trial. */
  readonly nextTrialAt: Instant
  readonly failedTrials: number
  /** The next task that fits is the trial. */
  readonly isTrialOpen: boolean
  /** The attempt that is the trial, or null. */
  readonly trial: { readonly taskId: string; readonly attempt: number } | null
}

/**
 * Tasks end in their own time; from `movesAt` on those that may be requeued are stopped and wait for another
 * node.
 */
export interface NodeDrain {
  readonly since: Instant
  /** Null: no task is moved. */
  readonly movesAt: Instant | null
  readonly by: string
  /** The event of the order: the cause of what follows. */
  readonly event: number
}

/**
 * An attempt that runs on the node and that the store does not know: it keeps running until an administrator
 * settles it. JSON values only: it is part of the node's record.
 */
export interface QuarantinedAttempt {
  readonly taskId: string
  readonly attempt: number
  readonly gpus: readonly number[]
  /** Per GPU, counted as noswap there. */
  readonly vramMib: Mib
  readonly residency: Residency
  /** Number of its residency changes, as the node counts them. */
  readonly generation: number
  readonly wantsGpu: boolean
  readonly since: Instant
  /** The caller that ordered the stop; null: the attempt keeps running. */
  readonly stoppedBy: string | null
}

export function isAttempt(
  one: Pick<QuarantinedAttempt, 'taskId' | 'attempt'>,
  taskId: string,
  attempt: number,
): boolean {
  return one.taskId === taskId && one.attempt === attempt
}
