/** Reasons for waiting, for people. A reason that is new is shown by its name. */
import type { WaitBody } from '../../controller/api/schema/task.ts'

const WORDS: Readonly<Record<WaitBody['reason'], string>> = {
  HELD: 'held back by somebody',
  STORE_BEHIND: 'the store went back in time',
  RECOVERY: 'the controller is in recovery',
  AWAITING_NODES: 'the controller has just started and waits for its nodes',
  GROUP_NOT_FOUND: 'a group that it names does not exist',
  GROUP_EMPTY: 'its groups have no node',
  NEVER_FITS: 'larger than any GPU may ever take',
  EXCEEDS_NODE_GPU_COUNT: 'more GPUs than any node has',
  NO_NODES: 'no node has registered',
  NODES_OFFLINE: 'nodes do not answer',
  NODES_CORDONED: 'nodes are cordoned',
  EXEC_NOT_ALLOWED: 'nodes run no commands',
  MAX_TASKS_PER_GPU: 'GPUs have as many tasks as they may',
  OWNER_LIMIT: 'its owner has all he may have',
  SWAP_SPACE_EXHAUSTED: 'host memory for swapped bytes is short',
  RESIDENCY_IMPOSSIBLE: 'could be promised memory, but never be in it',
  START_REFUSED: 'no suitable node could start it',
  REQUEUE_DELAY: 'ended soon after its start, waits for the next attempt',
  NODE_TASK_LIMIT: 'servers hold as many tasks as they can',
  WAITING_VRAM: 'all schedulable VRAM is promised',
  WAITING_PHYSICAL_VRAM: 'physical VRAM is taken',
  NEVER_RESIDENT: 'beside tasks that may not be swapped it would never be in VRAM',
  WOULD_STRAND: 'others could never return to VRAM',
  FRAGMENTED: 'enough VRAM in total, but too little on each GPU',
  WAITING_EXCLUSIVE_GPU: 'a GPU of its own is not free',
  NO_ELIGIBLE_VICTIM: 'nobody may be swapped out yet',
  SWAPPING_OUT_FOR_YOU: 'others are being swapped out for it',
  AWAITING_NODE_ACK: 'its server has not answered yet',
  RESERVED_FOR_ANOTHER: 'the room is kept for a task before it',
  QUEUED_BEHIND: 'behind others in the queue',
}

/** All of them, in the order in which they are looked for. */
export const WAIT_REASONS = Object.keys(WORDS) as readonly WaitBody['reason'][]

export function reasonWords(reason: string): string {
  return (WORDS as Readonly<Record<string, string>>)[reason] ?? reason.toLowerCase().replaceAll('_', ' ')
}
