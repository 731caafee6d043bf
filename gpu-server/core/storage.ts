import type { FinishedEvent, NodeEvent } from '../../protocol/messages.ts'
import type { LimitsRecord } from '../../protocol/resource-limits.ts'
import type { Mib, Residency } from '../../protocol/units.ts'
import type { AttemptStart } from './attempt-start.ts'

/** A living attempt, as a restarted server needs it; `vramMib` and `noswap` are current values. */
export interface KeptAttempt extends AttemptStart {
  /** `none` until launched, then where its bytes were after the last completed move. */
  readonly residency: Residency
  readonly generation: number
  readonly isStartAcknowledged: boolean
  /** The value when its bytes came to rest, and updated while it is out. */
  readonly wantsGpu: boolean
  /** It is out, and requests that arrive for it are reported. Absent: false. */
  readonly isWakeable?: boolean
  /** Its own hooks moved its bytes out, and it runs. Absent: false. */
  readonly isOutByHooks?: boolean
  /** What it keeps in VRAM on each GPU while it is out. Absent: nothing. */
  readonly residualMib?: Mib
}

/** What the start said about the task, for an administrator whose store has lost it. */
export interface AttemptDescription extends Surroundings {
  readonly taskId: string
  readonly attempt: number
  readonly name: string | null
  readonly owner: string | null
  readonly command: readonly string[] | null
}

/** As in the start; absent fields are not used. */
export interface Surroundings {
  readonly image?: string
  readonly workdir?: string
  readonly cwd?: string
  readonly mounts?: readonly string[]
  /** Absent: none. */
  readonly limits?: LimitsRecord
}

/**
 * What a GPU server must know after a restart. It is durable before anything that depends on it is sent or
 * answered (R1, R3).
 */
export interface NodeState {
  readonly bootCounter: number
  readonly highestEpoch: number
  /** The controller process of this epoch; null or absent: not known. */
  readonly controller?: string | null
  /** The last event that the controller of this epoch had made durable, as far as stated. Absent: 0. */
  readonly eventSeq?: number
  /** The highest attempt seen per task, including refused and stopped ones: none of these starts again. */
  readonly attempts: ReadonlyMap<string, number>
  /** Tasks whose highest attempt was refused or stopped before it started: `never_seen`, not `gone` (R7). */
  readonly burned: ReadonlyMap<string, number>
  /** Living attempts by task (R4). */
  readonly living: ReadonlyMap<string, KeptAttempt>
  /** Descriptions of living attempts, by task. Absent in states older than the field. */
  readonly described?: ReadonlyMap<string, AttemptDescription>
  /**
   * Entries that the controller has not acknowledged. After a restart only `finished` entries are needed;
   * hello reports the rest.
   */
  readonly outbox: readonly NodeEvent[]
}

/** One difference between two saved states, in order. */
export type NodeChange =
  | { readonly kind: 'boot'; readonly counter: number }
  | { readonly kind: 'epoch'; readonly epoch: number; readonly controller?: string | null }
  | { readonly kind: 'mark'; readonly eventSeq: number }
  | { readonly kind: 'seen' | 'burned'; readonly taskId: string; readonly attempt: number }
  | { readonly kind: 'living'; readonly attempt: KeptAttempt }
  | { readonly kind: 'described'; readonly of: AttemptDescription }
  /** The attempt no longer lives here. */
  | { readonly kind: 'left'; readonly taskId: string }
  | { readonly kind: 'finished'; readonly event: FinishedEvent }
  | { readonly kind: 'acknowledged'; readonly taskId: string; readonly attempt: number }

export interface NodeStorage {
  load(): NodeState
  /**
   * Makes the state durable; `changes` lists the differences since the last successful save. Throws when it
   * cannot: the command is then refused, the event not sent. After a failed fsync every call throws (R10).
   * The state is always the same object with live maps and lists: write them at once, or copy them.
   */
  save(state: NodeState, changes: readonly NodeChange[]): void
}

/**
 * For simulated servers: durable as long as the object exists, which is longer than a server that crashes.
 * @param bootCounter the counter before the first boot
 * @param initial other state of an earlier server
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
