/**
 * A GPU server's storage on a disk that may be full, or lost. It holds what was saved and nothing else: what
 * a server that dies had not saved is gone.
 */
import { ReplayedState } from '../../gpu-server/core/replayed-state.ts'
import type { NodeChange, NodeState, NodeStorage } from '../../gpu-server/core/storage.ts'

export class FaultyStorage implements NodeStorage {
  isFull = false
  #saved: ReplayedState
  /** Saves that failed. */
  failedSaves = 0
  /** A save has failed: the server's process ends (R10). */
  readonly #onFailure: () => void

  /** @param initial what an earlier server has left there */
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

  /** A new disk. */
  replace(): void {
    this.#saved = new ReplayedState()
  }
}
