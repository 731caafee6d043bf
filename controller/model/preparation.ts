/** Preparation of a task on a node before its start: its image and its files (docs/decisions/0122). */
import type { Instant } from '../../protocol/units.ts'

/** One node that prepares, or has prepared, the next attempt of a task. Known to this process only. */
export interface Preparation {
  readonly nodeId: string
  readonly nodeName: string
  /** The attempt that may start there. */
  readonly attempt: number
  /** `asked`: the node has not answered. */
  readonly state: 'asked' | 'preparing' | 'prepared'
  /** The node's message that confirmed it: only its absence from later snapshots counts. */
  readonly seq: number
  readonly since: Instant
  readonly bytesDone: number
  /** Null: not known. */
  readonly bytesTotal: number | null
}

export interface Prepared {
  readonly preparations: readonly Preparation[]
}

export const NO_PREPARATIONS: readonly Preparation[] = []

/** The task is out of its queue until then. */
export function isBeingPrepared({ preparations }: Prepared): boolean {
  return preparations.length > 0 && preparations.some(({ state }) => state !== 'prepared')
}

export function preparationOn({ preparations }: Prepared, nodeId: string): Preparation | null {
  return preparations.find((each) => each.nodeId === nodeId) ?? null
}
