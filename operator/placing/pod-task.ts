/** A pod as a task of the controller, and where it is in its life. */
import { MAX_STOP_GRACE_SECONDS } from '../../protocol/limits.ts'
import { DEFAULT_RUN_POLICY, type TaskRequest } from '../../protocol/task.ts'
import type { Priority } from '../../protocol/units.ts'
import { type Parsed, valid } from '../contract/field-fault.ts'
import type { Pod } from '../contract/kubernetes.ts'
import { POD_ANNOTATIONS, SCHEDULER_NAME, SCHEDULING_GATE } from '../contract/names.ts'
import { noswapOf, podRequestOf } from '../contract/pod-request.ts'
import type { Claim } from '../contract/policies.ts'

/**
 * `held`: another controller keeps it, and it reserves nothing. `foreign`: another scheduler places it.
 * `over`: its containers have ended.
 */
export type PodStage = 'held' | 'waiting' | 'bound' | 'over' | 'foreign'

export function stageOf({ metadata, spec, status }: Pod): PodStage {
  if (status?.phase === 'Succeeded' || status?.phase === 'Failed') return 'over'
  if (spec.nodeName !== undefined && spec.nodeName !== '')
    return gpusOf({ metadata }).length > 0 ? 'bound' : 'foreign'
  if (spec.schedulerName !== SCHEDULER_NAME) return 'foreign'
  if (metadata.deletionTimestamp !== undefined) return 'over'
  const isHeld = (spec.schedulingGates ?? []).some(({ name }) => name !== SCHEDULING_GATE)
  return isHeld ? 'held' : 'waiting'
}

/** UUIDs of the GPUs that the binding gave it. */
export function gpusOf({ metadata }: Pick<Pod, 'metadata'>): readonly string[] {
  const text = metadata.annotations?.[POD_ANNOTATIONS.gpuUuids] ?? ''
  return text === '' ? [] : text.split(',')
}

/** Ids of its containers that run and got the GPUs, without the name of the runtime before them. */
export function containersOf({ metadata, status }: Pod): readonly string[] {
  const named = (metadata.annotations?.[POD_ANNOTATIONS.containers] ?? '')
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '')
  const { containerStatuses = [], initContainerStatuses = [] } = status ?? {}
  return [...initContainerStatuses, ...containerStatuses]
    .filter(({ name, state }) => state?.running !== undefined && (named.length === 0 || named.includes(name)))
    .map(({ containerID = '' }) => containerID.replace(/^[a-z0-9.-]+:\/\//, ''))
    .filter((id) => id !== '')
}

/** Returns the VRAM and GPUs of a bound pod; null if its annotations cannot be read. */
export function claimOfPod(pod: Pod): Claim | null {
  const request = podRequestOf(pod)
  if (!request.ok) return null
  const { uid: podUid = '', namespace: podNamespace = '', name: podName = '' } = pod.metadata
  const { vramMib } = request.value
  const swappable = noswapOf(pod, request.value) === 0
  return { podUid, podNamespace, podName, gpuUuids: [...gpusOf(pod)], vramMib, swappable }
}

/** @param group of the nodes that admit it */
export function taskOfPod(pod: Pod, group: string, priority: Priority): Parsed<TaskRequest> {
  const request = podRequestOf(pod)
  if (!request.ok) return request
  const { vramMib, gpus } = request.value
  const { uid = '', namespace = 'default', name = '' } = pod.metadata
  return valid({
    id: uid,
    name: `${namespace}/${name}`.slice(0, MAX_NAME),
    owner: namespace,
    // The kubelet runs it; a task without a command would be a lease.
    command: ['pod'],
    vramMib,
    gpuCount: gpus,
    gpuMode: 'shared',
    noswap: noswapOf(pod, request.value),
    priority,
    groups: [group],
    labels: {},
    ...DEFAULT_RUN_POLICY,
    onNodeLoss: 'wait',
    maxRequeues: null,
    stopGraceSeconds: graceSecondsOf(pod),
  })
}

/** The kubelet kills it after that. */
function graceSecondsOf({ spec: { terminationGracePeriodSeconds = 30 } }: Pod): number {
  return Math.min(MAX_STOP_GRACE_SECONDS, Math.max(0, terminationGracePeriodSeconds))
}

const MAX_NAME = 200

/**
 * Order in which pods that exist at a start are submitted.
 * 1. Creation.
 * 2. UID.
 */
export function byCreation({ metadata: a }: Pod, { metadata: b }: Pod): number {
  const [first, second] = [
    `${a.creationTimestamp ?? ''} ${a.uid ?? ''}`,
    `${b.creationTimestamp ?? ''} ${b.uid ?? ''}`,
  ]
  return first < second ? -1 : first > second ? 1 : 0
}

export function podText({ metadata: { namespace = '', name = '' } }: Pod): string {
  return `${namespace}/${name}`
}
