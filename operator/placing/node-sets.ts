/**
 * Pods that may run on the same nodes form a group of the controller, whose members are those nodes. A node
 * is in every group that admits it.
 */
import { byCodeUnits } from '../../controller/structures/order.ts'
import type { Node, Pod } from '../contract/kubernetes.ts'
import { admitsNode, constraintsOf } from './admitted-nodes.ts'

export interface NodeSet {
  /** Name of the group. */
  readonly id: string
  /** Names of nodes, in code-unit order. */
  readonly nodeNames: readonly string[]
}

interface Kept {
  readonly id: string
  /** Any pod with these constraints. */
  readonly sample: Pod
  readonly uids: Set<string>
  nodeNames: readonly string[]
}

export class NodeSets {
  readonly #byConstraints = new Map<string, Kept>()
  #numbered = 0

  /** Returns the group of the pod; `isNew`: it has to be made first. */
  join(pod: Pod, nodes: Iterable<Node>): { readonly set: NodeSet; readonly isNew: boolean } {
    const key = constraintsOf(pod)
    const known = this.#byConstraints.get(key)
    if (known !== undefined) {
      known.uids.add(pod.metadata.uid ?? '')
      return { set: known, isNew: false }
    }
    this.#numbered += 1
    const set: Kept = {
      id: `nodes-${this.#numbered}`,
      sample: pod,
      uids: new Set([pod.metadata.uid ?? '']),
      nodeNames: namesOf(pod, nodes),
    }
    this.#byConstraints.set(key, set)
    return { set, isNew: true }
  }

  /** Returns true if the pod is in the group of its constraints as they are now. */
  has(pod: Pod): boolean {
    return this.#byConstraints.get(constraintsOf(pod))?.uids.has(pod.metadata.uid ?? '') ?? false
  }

  /** Returns the group if it was the last of its pods. */
  leave(uid: string): string | null {
    for (const [key, { id, uids }] of this.#byConstraints)
      if (uids.delete(uid) && uids.size === 0) {
        this.#byConstraints.delete(key)
        return id
      }
    return null
  }

  /** Returns the groups whose members have changed. */
  update(nodes: readonly Node[]): readonly NodeSet[] {
    const changed: NodeSet[] = []
    for (const set of this.#byConstraints.values()) {
      const names = namesOf(set.sample, nodes)
      if (names.join() === set.nodeNames.join()) continue
      set.nodeNames = names
      changed.push(set)
    }
    return changed
  }
}

function namesOf(pod: Pod, nodes: Iterable<Node>): readonly string[] {
  return [...nodes]
    .flatMap((node) => (admitsNode(pod, node) ? [node.metadata.name ?? ''] : []))
    .toSorted(byCodeUnits)
}
