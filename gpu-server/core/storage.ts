import type { FinishedEvent, NodeEvent } from '../../protocol/messages.ts'
import type { WireResidency } from '../../protocol/units.ts'
import type { AttemptStart } from './attempt-start.ts'

/**
 * An attempt that lives here, as a restarted server needs to know it; `vramMib` and `noswap` as they are by
 * now.
 */
export interface KeptAttempt extends AttemptStart {
  /** `none` until it was launched, then where its bytes were when they last came to rest. */
  readonly residency: WireResidency
  readonly generation: number
  readonly isStartAcknowledged: boolean
  /** As of when its bytes came to rest, and later while it is out: nobody says it twice. */
  readonly wantsGpu: boolean
}

/** What the start said of the task, for an administrator of a store that has lost it. */
export interface AttemptDescription {
  readonly taskId: string
  readonly attempt: number
  readonly name: string | null
  readonly owner: string | null
  readonly command: readonly string[] | null
}

/**
 * What a GPU server must know after a restart. It is durable before anything that depends on it is sent or
 * answered (R1, R3).
 */
export interface NodeState {
  readonly bootCounter: number
  readonly highestEpoch: number
  /** Process of the controller that had this epoch; null or absent: not known. */
  readonly controller?: string | null
  /** The last event that the controller of this epoch had made durable, as far as it said. Absent: 0. */
  readonly eventSeq?: number
  /** Highest attempt seen per task, refused and stopped ones included: none of these starts again. */
  readonly attempts: ReadonlyMap<string, number>
  /**
   * Of these tasks the highest attempt was refused or stopped before it started: `never_seen`, not `gone`
   * (R7).
   */
  readonly burned: ReadonlyMap<string, number>
  /** Attempts that live here, by task (R4). */
  readonly living: ReadonlyMap<string, KeptAttempt>
  /** Of those that live here, by task. Absent in states that are older than the field: none. */
  readonly described?: ReadonlyMap<string, AttemptDescription>
  /**
   * What the controller has not acknowledged. After a restart only `finished` entries are of use; hello says
   * the rest.
   */
  readonly outbox: readonly NodeEvent[]
}

/** One difference between two states that were saved, in the order in which they came about. */
export type NodeChange =
  | { readonly kind: 'boot'; readonly counter: number }
  | { readonly kind: 'epoch'; readonly epoch: number; readonly controller?: string | null }
  | { readonly kind: 'mark'; readonly eventSeq: number }
  | { readonly kind: 'seen' | 'burned'; readonly taskId: string; readonly attempt: number }
  | { readonly kind: 'living'; readonly attempt: KeptAttempt }
  | { readonly kind: 'described'; readonly of: AttemptDescription }
  /** It no longer lives here. */
  | { readonly kind: 'left'; readonly taskId: string }
  | { readonly kind: 'finished'; readonly event: FinishedEvent }
  | { readonly kind: 'acknowledged'; readonly taskId: string; readonly attempt: number }

export interface NodeStorage {
  load(): NodeState
  /**
   * Makes the state durable; `changes` is what has become of it since the last save that succeeded. Throws
   * when it cannot be made durable: the command is refused then, the event not sent. After a failed fsync it
   * throws for ever (R10). The state is one object for life, and its maps and lists are live: write them at
   * once, or copy them.
   */
  save(state: NodeState, changes: readonly NodeChange[]): void
}

/**
 * For simulated servers: durable as long as the object lives, which is longer than a server that crashes.
 * @param bootCounter that of the boot before the first one.
 * @param initial what else that one left behind.
 */
export function createMemoryStorage(bootCounter = 0, initial: NodeState = EMPTY_NODE_STATE): NodeStorage {
  let kept: NodeState = { ...initial, bootCounter }
  return {
    load: () => kept,
    save: (state) => {
      kept = state
    },
  }
}

export const EMPTY_NODE_STATE: NodeState = {
  bootCounter: 0,
  highestEpoch: 0,
  attempts: new Map(),
  burned: new Map(),
  living: new Map(),
  outbox: [],
}
