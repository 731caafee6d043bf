/** Which GPUs tasks and pods got, as text that can be compared: `NODE 0,1`. */
import type { Event } from '../../../controller/model/event.ts'
import type { Checkpoint, RecordedEntry } from '../../../controller/ports/recording-log.ts'
import type { Pod } from '../../../operator/contract/kubernetes.ts'
import { gpusOf } from '../../../operator/placing/pod-task.ts'
import { nodeIdFromName } from '../../../protocol/node-id.ts'

/** By task, as long as it holds them. @param nodes their names */
export class PlacementsOfEvents {
  readonly byTask = new Map<string, string>()
  readonly #names: ReadonlyMap<string, string>

  constructor(nodes: readonly string[]) {
    this.#names = new Map(nodes.map((name) => [nodeIdFromName(name), name]))
  }

  take({ kind, taskId, nodeId, data }: Event): void {
    if (taskId === null) return
    if (kind === 'task_placed')
      this.byTask.set(taskId, `${this.#names.get(nodeId ?? '')} ${String(data['gpus'])}`)
    if (kind === 'task_finished') this.byTask.delete(taskId)
  }
}

/** Every GPU that a pod was ever given, in a recording of the operator: the last of each pod. */
export function recordedPlacements(
  entries: Iterable<RecordedEntry | Checkpoint>,
  nodes: readonly string[],
): ReadonlyMap<string, string> {
  const placements = new PlacementsOfEvents(nodes)
  for (const entry of entries)
    if (entry.k === 'commit')
      for (const event of entry.events) if (event.kind !== 'task_finished') placements.take(event)
  return placements.byTask
}

/** Null: it is not bound. UUIDs end in the index of the GPU. */
export function placementOf(pod: Pod): string | null {
  const { nodeName } = pod.spec
  if (nodeName === undefined) return null
  return `${nodeName} ${gpusOf(pod)
    .map((uuid) => uuid.split('-').at(-1))
    .join()}`
}
