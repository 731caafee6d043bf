/** What nodes answered that could not start a task, and how long it waits because of that (safety 3). */
import type { StartRefused } from '../../protocol/messages.ts'
import type { Instant } from '../../protocol/units.ts'

/**
 * A node that is no choice for the task: `host`: until an instant; `task`: as long as the task is as it is.
 */
export interface StartRefusal extends StartRefused {
  readonly nodeId: string
  readonly nodeName: string
  /** The node's own words. */
  readonly detail: string
  readonly at: Instant
  /** From then on the node is a choice again; null: not by time alone. */
  readonly until: Instant | null
  /** How many times in a row this node refused it. */
  readonly times: number
}

/** The task is in no queue until then: it is no head, reserves nothing, and its wait is no demand. */
export interface StartPause {
  readonly reason: 'START_REFUSED' | 'REQUEUE_DELAY'
  readonly since: Instant
  readonly until: Instant
}

/** What went wrong with a task's starts so far. */
export interface StartTrouble {
  /** The latest of each node that is no choice now. */
  readonly refusals: readonly StartRefusal[]
  /** Refusals because of the task since it was submitted, changed or tried again. */
  readonly refusedCount: number
  /** How many times it has waited with START_REFUSED: each wait is longer. */
  readonly waits: number
  /** Attempts that ended soon after their start and were followed by another one (`max_requeues`). */
  readonly earlyEnds: number
  readonly pause: StartPause | null
}

export const NO_TROUBLE: StartTrouble = { refusals: [], refusedCount: 0, waits: 0, earlyEnds: 0, pause: null }

/** The node refused the task, and is no choice for it now. */
export function hasRefusedStart({ refusals }: StartTrouble, nodeId: string): boolean {
  return refusals.length > 0 && refusals.some((refusal) => refusal.nodeId === nodeId)
}

/** It runs: what was refused before says nothing any more. Attempts that ended too soon still count. */
export function afterStart(trouble: StartTrouble): StartTrouble {
  return trouble.earlyEnds === 0 ? NO_TROUBLE : { ...NO_TROUBLE, earlyEnds: trouble.earlyEnds }
}
