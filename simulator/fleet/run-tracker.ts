/**
 * Tracks which tasks run where, according to the devices: no task may run on two of them at any time (single
 * run).
 */
import type { RunWatcher } from './device-troubles.ts'

export interface DoubleRun {
  readonly taskId: string
  readonly nodes: readonly string[]
}

export class RunTracker {
  readonly #nodesOf = new Map<string, Set<string>>()
  #doubles: DoubleRun[] = []

  watcherOf(node: string): RunWatcher {
    return {
      runs: (taskId) => this.#runs(taskId, node),
      rests: (taskId) => this.#rests(taskId, node),
    }
  }

  /** Names of the nodes on which it runs. */
  nodesOf(taskId: string): readonly string[] {
    return [...(this.#nodesOf.get(taskId) ?? [])]
  }

  /** Returns the attempts that ran twice since the last call. */
  takeDoubles(): readonly DoubleRun[] {
    const doubles = this.#doubles
    if (doubles.length > 0) this.#doubles = []
    return doubles
  }

  #runs(taskId: string, node: string): void {
    const nodes = this.#nodesOf.get(taskId)
    if (nodes === undefined) {
      this.#nodesOf.set(taskId, new Set([node]))
      return
    }
    nodes.add(node)
    if (nodes.size > 1) this.#doubles.push({ taskId, nodes: [...nodes] })
  }

  #rests(taskId: string, node: string): void {
    const nodes = this.#nodesOf.get(taskId)
    nodes?.delete(node)
    if (nodes?.size === 0) this.#nodesOf.delete(taskId)
  }
}
