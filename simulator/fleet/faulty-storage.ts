/**
 * A GPU server's storage on a disk that may be full or lost. It holds what was saved: a server that dies
 * loses the rest.
 */
import { ReplayedState } from '../../gpu-server/core/replayed-state.ts'
import type { NodeChange, NodeState, NodeStorage } from '../../gpu-server/core/storage.ts'

export class FaultyStorage implements NodeStorage {
  isFull = false
  #saved: ReplayedState
  /** Failed saves. */
  failedSaves = 0
  /** Called when a save fails: the server's process ends (R10). */
  readonly #onFailure: () => void

  /** @param initial state of an earlier server */
  constructor(onFailure: () => void, initial?: NodeState) {
    this.#saved = new ReplayedState(initial)
    this.#onFailure = onFailure
  }

  load(): NodeState {
    return this.#saved.state()
  }

  save(_state: NodeState, changes: readonly NodeChange[]): void {
    if (this.isFull) {
      this.failedSaves += 1
      this.#onFailure()
      throw new Error('the disk is full')
    }
    for (const change of changes) this.#saved.apply(change)
  }

  /** Replaces the disk with an empty one. */
  replace(): void {
    this.#saved = new ReplayedState()
  }
}
