import type { NodeEvent } from '../../protocol/messages.ts'

/** What a GPU server must know after a restart. It is durable before anything that depends on it is sent or answered (R1, R3). */
export interface NodeState {
  readonly bootCounter: number
  readonly highestEpoch: number
  /** Highest attempt seen per task, refused and stopped ones included: none of these starts again. */
  readonly attempts: ReadonlyMap<string, number>
  /** Of these tasks the highest attempt was refused or stopped before it started: `never_seen`, not `gone` (R7). */
  readonly burned: ReadonlyMap<string, number>
  /** What the controller has not acknowledged. After a restart only `finished` entries are of use; hello says the rest. */
  readonly outbox: readonly NodeEvent[]
}

export interface NodeStorage {
  load(): NodeState
  /**
   * Throws when it cannot be made durable: the command is refused then, the event not sent. After a failed fsync it throws for ever (R10).
   * The maps and the list are live: write them at once, or copy them.
   */
  save(state: NodeState): void
}

/** For simulated servers: durable as long as the object lives, which is longer than a server that crashes. */
export function createMemoryStorage(): NodeStorage {
  let kept: NodeState = { bootCounter: 0, highestEpoch: 0, attempts: new Map(), burned: new Map(), outbox: [] }
  return {
    load: () => kept,
    save: (state) => {
      kept = state
    },
  }
}
