/** What a GPU server must know after a restart. It is durable before anything that depends on it is answered (R1, R3). */
export interface NodeState {
  readonly bootCounter: number
  readonly highestEpoch: number
  /** Highest attempt seen per task, refused and stopped ones included: none of these starts again. */
  readonly attempts: ReadonlyMap<string, number>
}

export interface NodeStorage {
  load(): NodeState
  /** Throws when it cannot be made durable: the command is refused then. */
  save(state: NodeState): void
}

/** For simulated servers: durable as long as the object lives, which is longer than a server that crashes. */
export function createMemoryStorage(): NodeStorage {
  let kept: NodeState = { bootCounter: 0, highestEpoch: 0, attempts: new Map() }
  return {
    load: () => kept,
    save: (state) => {
      kept = state
    },
  }
}
