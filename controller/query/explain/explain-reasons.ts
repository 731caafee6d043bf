import type { Instant, Mib } from '../../../protocol/units.ts'

/** Why a task waits, in order of precedence: the first that applies is the primary reason (semantics 4). */
export const WAIT_REASONS = [
  'HELD',
  'STORE_BEHIND',
  'RECOVERY',
  'AWAITING_NODES',
  'GROUP_NOT_FOUND',
  'GROUP_EMPTY',
  'NEVER_FITS',
  'EXCEEDS_NODE_GPU_COUNT',
  'NO_NODES',
  'NODES_OFFLINE',
  'NODES_CORDONED',
  'EXEC_NOT_ALLOWED',
  'FEATURE_MISSING',
  'MAX_TASKS_PER_GPU',
  'OWNER_LIMIT',
  'SWAP_SPACE_EXHAUSTED',
  'RESIDENCY_IMPOSSIBLE',
  'START_REFUSED',
  'REQUEUE_DELAY',
  'RESULT_AWAITED',
  'NODE_TASK_LIMIT',
  'PREPARING',
  'WAITING_VRAM',
  'WAITING_PHYSICAL_VRAM',
  'NEVER_RESIDENT',
  'WOULD_STRAND',
  'FRAGMENTED',
  'WAITING_EXCLUSIVE_GPU',
  'NO_ELIGIBLE_VICTIM',
  'SWAPPING_OUT_FOR_YOU',
  'AWAITING_NODE_ACK',
  'RESERVED_FOR_ANOTHER',
  'QUEUED_BEHIND',
] as const
export type WaitReason = (typeof WAIT_REASONS)[number]

export interface ReasonDetail {
  readonly reason: WaitReason
  /** Ids of the nodes concerned; at most 20. */
  readonly nodeIds: readonly string[]
  readonly nodeCount: number
  /** On the best of these nodes: what the task could have, and what it needs. */
  readonly haveMib: Mib | null
  readonly needMib: Mib | null
}

export interface WaitExplanation {
  readonly primary: ReasonDetail
  readonly secondary: readonly ReasonDetail[]
  /** One sentence with the numbers. */
  readonly sentence: string
  /**
   * NO_ELIGIBLE_VICTIM: the earliest instant at which a victim becomes eligible; null if none will.
   * START_REFUSED, REQUEUE_DELAY, RESULT_AWAITED: when it is tried again, null if not by time alone. Null for
   * other reasons.
   */
  readonly retryAt: Instant | null
  /** Position in the pending queue, from 1; null for a placed task. */
  readonly queuePosition: number | null
  /**
   * Entries of the node's queue that are served before it: for a pending task that waits for a victim, on the
   * closest node. Null: it waits for VRAM of no node.
   */
  readonly servedBefore: number | null
}
