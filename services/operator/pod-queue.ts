/** Pods as tasks of the controller, with the class and the group that their labels give them now. */
import type { Controller } from '../../controller/controller.ts'
import type { Task } from '../../controller/model/placement.ts'
import { byCodeUnits } from '../../controller/structures/order.ts'
import type { Pod } from '../../operator/contract/kubernetes.ts'
import { faultText } from '../../operator/contract/field-fault.ts'
import { withGroup } from '../../operator/contract/group.ts'
import { classOfPod } from '../../operator/contract/pod-class.ts'
import { type NodeSet, NodeSets } from '../../operator/placing/node-sets.ts'
import { podText, taskOfPod } from '../../operator/placing/pod-task.ts'
import { nodeIdFromName } from '../../protocol/node-id.ts'
import type { Priority } from '../../protocol/units.ts'
import type { ClusterObjects } from './cluster-objects.ts'

/** Author of the commands of the operator. */
export const BY = 'operator'

export interface PodQueueOptions {
  readonly objects: ClusterObjects
  readonly controller: Controller
  readonly onNote: (line: string) => void
}

export class PodQueue {
  readonly #objects: ClusterObjects
  readonly #controller: Controller
  readonly #onNote: (line: string) => void
  readonly #sets = new NodeSets()

  constructor({ objects, controller, onNote }: PodQueueOptions) {
    this.#objects = objects
    this.#controller = controller
    this.#onNote = onNote
  }

  /** Submits the pod, or updates its task if the labels have changed. */
  take(pod: Pod): void {
    const { uid = '', namespace = '' } = pod.metadata
    const owner = this.#objects.namespace(namespace)
    // The watch of namespaces is behind: its label decides where the pod may run, and it will arrive.
    if (owner === null && pod.spec.nodeName === undefined) return
    const grouped = withGroup(pod, owner?.metadata ?? null)
    const task = this.#controller.views.openTask(uid)
    if (task === undefined) this.#submit(grouped)
    else this.#update(grouped, task)
  }

  /** The pod has ended. Returns the group to delete, once its task has ended. */
  leave(uid: string): string | null {
    return this.#sets.leave(uid)
  }

  nodesChanged(): void {
    for (const set of this.#sets.update(this.#objects.nodes())) this.#putGroup(set)
  }

  #submit(pod: Pod): void {
    const task = taskOfPod(pod, this.#joined(pod).id, this.#classOf(pod))
    if (!task.ok)
      return this.#onNote(`pod ${podText(pod)} is ignored: ${task.faults.map(faultText).join('; ')}`)
    this.#controller.commands.submitTask(task.value, (answer) => {
      if (!answer.ok) this.#onNote(`pod ${podText(pod)} is ignored: ${JSON.stringify(answer.refusal)}`)
    })
  }

  #update(pod: Pod, { placement, spec }: Task): void {
    const { commands } = this.#controller
    const priority = this.#classOf(pod)
    if (spec.priority !== priority) commands.updateTask(spec.id, { priority }, BY, () => {})
    // Its node has been chosen.
    if (placement !== null || pod.spec.nodeName !== undefined || this.#sets.has(pod)) return
    const left = this.#sets.leave(spec.id)
    commands.updateTask(spec.id, { groups: [this.#joined(pod).id] }, BY, () => {})
    if (left !== null) commands.deleteGroup(left, true, BY, () => {})
  }

  #joined(pod: Pod): NodeSet {
    const { set, isNew } = this.#sets.join(pod, this.#objects.nodes())
    if (isNew) this.#putGroup(set)
    return set
  }

  #putGroup({ id, nodeNames }: NodeSet): void {
    const nodeIds = nodeNames.map(nodeIdFromName).toSorted(byCodeUnits)
    this.#controller.commands.putGroup({ id, description: '', nodeIds }, false, BY, () => {})
  }

  #classOf(pod: Pod): Priority {
    const { priorityClassName = '' } = pod.spec
    return classOfPod(pod, this.#objects.priorityClass(priorityClassName)?.metadata ?? null)
  }
}

/** Returns what a task says about its pod, which was deleted. */
export function deletedPod({ spec: { id: uid, name: text } }: Task): Pod {
  const [namespace = '', name = ''] = text.split('/')
  return { metadata: { uid, namespace, name }, spec: { containers: [] } }
}
