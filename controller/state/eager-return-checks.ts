import type { LiveNode, LiveTask } from './facts.ts'

/** Nodes to check for eager returns: something has changed there since the last check. */
export class EagerReturnChecks {
  readonly #nodes = new Set<LiveNode>()
  /** Nodes where a pending task waits for VRAM, so that no task returns eagerly, by pending task. */
  readonly #keptFor = new Map<LiveTask, Set<LiveNode>>()

  get isEmpty(): boolean {
    return this.#nodes.size === 0
  }

  /** A node without memory swapped to the host has no task that could return. */
  add(node: LiveNode): void {
    if (node.hostUsedMib > 0) this.#nodes.add(node)
  }

  /**
   * Keeps the VRAM of the node for a pending task. The node is checked again when the task no longer waits.
   */
  keepFor(task: LiveTask, node: LiveNode): void {
    const nodes = this.#keptFor.get(task)
    if (nodes === undefined) this.#keptFor.set(task, new Set([node]))
    else nodes.add(node)
  }

  /** The task has left its pending queue. */
  left(task: LiveTask): void {
    const nodes = this.#keptFor.get(task)
    if (nodes === undefined) return
    this.#keptFor.delete(task)
    for (const node of nodes) this.add(node)
  }

  /** Any pending task may have ceased to wait, because of its owner's limit. */
  allLeft(): void {
    for (const task of [...this.#keptFor.keys()]) this.left(task)
  }

  /** For checkpoints: nodes to check, and nodes kept for each pending task. */
  get all(): {
    readonly nodes: readonly LiveNode[]
    readonly keptFor: readonly (readonly [LiveTask, readonly LiveNode[]])[]
  } {
    return {
      nodes: [...this.#nodes],
      keptFor: Array.from(this.#keptFor, ([task, nodes]) => [task, [...nodes]] as const),
    }
  }

  /** Restores captured state. The object must be empty. */
  restore({ nodes, keptFor }: EagerReturnChecks['all']): void {
    for (const node of nodes) this.#nodes.add(node)
    for (const [task, kept] of keptFor) this.#keptFor.set(task, new Set(kept))
  }

  /** The node was removed. */
  forget(node: LiveNode): void {
    this.#nodes.delete(node)
    for (const nodes of this.#keptFor.values()) nodes.delete(node)
  }

  /** Removes and returns all nodes, ordered by id. */
  take(): readonly LiveNode[] {
    if (this.#nodes.size === 0) return NO_NODES
    const nodes = [...this.#nodes].sort((a, b) => a.rank - b.rank)
    this.#nodes.clear()
    return nodes
  }
}

const NO_NODES: readonly LiveNode[] = []
