import type { LiveNode, LiveTask } from '../live.ts'

/**
 * Nodes where a swapped-out task may return eagerly from now on: something changed there since they were
 * looked at.
 */
export class EagerReturnChecks {
  readonly #nodes = new Set<LiveNode>()
  /** By a pending task that waits for VRAM: nodes where no task returns eagerly because of it. */
  readonly #keptFor = new Map<LiveTask, Set<LiveNode>>()

  get isEmpty(): boolean {
    return this.#nodes.size === 0
  }

  /** A node without bytes in host memory has no task that could return. */
  add(node: LiveNode): void {
    if (node.hostUsedMib > 0) this.#nodes.add(node)
  }

  /**
   * The VRAM of the node is kept for the pending task: the node is looked at again when the task no longer
   * waits.
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

  /** Any pending task may have ceased to wait: its owner's limit is in its way now. */
  allLeft(): void {
    for (const task of [...this.#keptFor.keys()]) this.left(task)
  }

  /** For `memory/`: the nodes to look at, and those kept for each pending task. */
  get all(): {
    readonly nodes: readonly LiveNode[]
    readonly keptFor: readonly (readonly [LiveTask, readonly LiveNode[]])[]
  } {
    return {
      nodes: [...this.#nodes],
      keptFor: Array.from(this.#keptFor, ([task, nodes]) => [task, [...nodes]] as const),
    }
  }

  /** The same, into one that is empty. */
  restore({ nodes, keptFor }: EagerReturnChecks['all']): void {
    for (const node of nodes) this.#nodes.add(node)
    for (const [task, kept] of keptFor) this.#keptFor.set(task, new Set(kept))
  }

  /** A node is forgotten. */
  forget(node: LiveNode): void {
    this.#nodes.delete(node)
    for (const nodes of this.#keptFor.values()) nodes.delete(node)
  }

  /** In the order of their ids; none is left. */
  take(): readonly LiveNode[] {
    if (this.#nodes.size === 0) return NO_NODES
    const nodes = [...this.#nodes].sort((a, b) => a.rank - b.rank)
    this.#nodes.clear()
    return nodes
  }
}

const NO_NODES: readonly LiveNode[] = []
