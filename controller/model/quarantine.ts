/**
 * Attempts that run on a node and that the store does not know: they keep running until an administrator
 * settles them.
 */
import type { Instant, Mib, Residency } from '../../protocol/units.ts'

/** JSON values only: it is part of the node's record. */
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
  /** Who ordered the stop; null: it keeps running. */
  readonly stoppedBy: string | null
}

export function isAttempt(
  one: Pick<QuarantinedAttempt, 'taskId' | 'attempt'>,
  taskId: string,
  attempt: number,
): boolean {
  return one.taskId === taskId && one.attempt === attempt
}
