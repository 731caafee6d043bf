/** Refusals of starts by nodes, and how long a task waits because of them (safety 3). */
import type { StartRefused } from '../../protocol/message-fields.ts'
import type { Instant } from '../../protocol/units.ts'

/**
 * A node that is excluded for the task: `host`: until an instant; `task`: as long as the task is unchanged.
 */
export interface StartRefusal extends StartRefused {
  readonly nodeId: string
  readonly nodeName: string
  /** The node's message. */
  readonly detail: string
  readonly at: Instant
  /** From then on the node is eligible again; null: not by time alone. */
  readonly until: Instant | null
  /** Number of consecutive refusals by this node. */
  readonly times: number
}

/**
 * `RESULT_AWAITED`: a node has announced the result of an earlier attempt, which may make a start needless.
 */
export const PAUSE_REASONS = ['START_REFUSED', 'REQUEUE_DELAY', 'RESULT_AWAITED'] as const

/** The task is in no queue until then. It is not a head, reserves nothing, and its wait is not demand. */
export interface StartPause {
  readonly reason: (typeof PAUSE_REASONS)[number]
  readonly since: Instant
  readonly until: Instant
  /** RESULT_AWAITED: the pause that it prolongs, which remains when the result is of no use. */
  readonly prolonged?: StartPause | null
}

/** Failed starts of a task so far. */
export interface StartTrouble {
  /** The latest refusal of each node that is excluded now. */
  readonly refusals: readonly StartRefusal[]
  /** Refusals because of the task since it was submitted, changed or tried again. */
  readonly refusedCount: number
  /** Number of waits with START_REFUSED: each wait is longer. */
  readonly waits: number
  /** Attempts that ended soon after their start and were followed by another one (`max_requeues`). */
  readonly earlyEnds: number
  readonly pause: StartPause | null
}

/** The registry has answered, and does not have the image for this node. */
export const IMAGE_NOT_FOUND = 'image_not_found'
/** Concerns one registry only: tasks with other images still start, so one task cannot block a node. */
const REGISTRY_UNREACHABLE = 'registry_unreachable'

/** Returns true if any task would have been refused: it counts towards a cordon of the node. */
export function isOfTheNode({ cause, code }: StartRefused): boolean {
  return cause === 'host' && code !== REGISTRY_UNREACHABLE
}

export const NO_TROUBLE: StartTrouble = { refusals: [], refusedCount: 0, waits: 0, earlyEnds: 0, pause: null }

/** The node refused the task, and is excluded now. */
export function hasRefusedStart({ refusals }: StartTrouble, nodeId: string): boolean {
  return refusals.length > 0 && refusals.some((refusal) => refusal.nodeId === nodeId)
}

/** The task runs: earlier refusals are cleared. Attempts that ended too soon still count. */
export function afterStart(trouble: StartTrouble): StartTrouble {
  return trouble.earlyEnds === 0 ? NO_TROUBLE : { ...NO_TROUBLE, earlyEnds: trouble.earlyEnds }
}
