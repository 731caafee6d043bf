/** Texts for wait reasons. An unknown reason is shown by its code. */
import type { WaitBody } from '../../controller/api/tasks/schema.ts'

const WORDS: Readonly<Record<WaitBody['reason'], string>> = {
  HELD: 'on hold',
  STORE_BEHIND: 'the store went back to an earlier state',
  RECOVERY: 'the controller is in recovery',
  AWAITING_NODES: 'the controller has just started and waits for its nodes',
  GROUP_NOT_FOUND: 'a requested group does not exist',
  GROUP_EMPTY: 'the requested groups have no nodes',
  NEVER_FITS: 'requires more VRAM than any GPU can ever admit',
  EXCEEDS_NODE_GPU_COUNT: 'requires more GPUs than any node has',
  NO_NODES: 'no node has registered',
  NODES_OFFLINE: 'nodes do not respond',
  NODES_CORDONED: 'nodes are cordoned',
  EXEC_NOT_ALLOWED: 'nodes do not run commands',
  FEATURE_MISSING: 'nodes lack a feature that the task requires',
  MAX_TASKS_PER_GPU: 'GPUs already have the maximum number of tasks',
  OWNER_LIMIT: 'owner limit reached',
  SWAP_SPACE_EXHAUSTED: 'not enough host memory to swap out',
  RESIDENCY_IMPOSSIBLE: 'would be admitted, but could never be resident',
  START_REFUSED: 'no suitable node could start it',
  REQUEUE_DELAY: 'the next attempt is delayed, because the last one ended early',
  RESULT_AWAITED: 'a node has announced the result of an earlier attempt',
  NODE_TASK_LIMIT: 'GPU servers already have the maximum number of tasks',
  PREPARING: 'a GPU server is preparing the image or files of the task',
  WAITING_VRAM: 'all schedulable VRAM is allocated',
  WAITING_PHYSICAL_VRAM: 'not enough free physical VRAM',
  NEVER_RESIDENT: 'could never be resident next to noswap tasks',
  WOULD_STRAND: 'would prevent other tasks from returning to VRAM',
  FRAGMENTED: 'enough VRAM in total, but too little on each GPU',
  WAITING_EXCLUSIVE_GPU: 'no GPU is free for exclusive use',
  NO_ELIGIBLE_VICTIM: 'no task may be swapped out yet',
  SWAPPING_OUT_FOR_YOU: 'other tasks are being swapped out for it',
  AWAITING_NODE_ACK: 'its GPU server has not responded yet',
  RESERVED_FOR_ANOTHER: 'VRAM is reserved for an earlier task',
  QUEUED_BEHIND: 'behind other tasks in the queue',
}

/** All reasons, in the order in which they are checked. */
export const WAIT_REASONS = Object.keys(WORDS) as readonly WaitBody['reason'][]

export function reasonWords(reason: string): string {
  return (WORDS as Readonly<Record<string, string>>)[reason] ?? reason.toLowerCase().replaceAll('_', ' ')
}
