/** A pod as its claim names it, and the binding that gives it its node and GPUs. */
import type { Pod } from '../contract/kubernetes.ts'
import { POD_ANNOTATIONS, SCHEDULING_GATE } from '../contract/names.ts'
import type { Claim } from '../contract/policies.ts'
import type { KubeObject, KubePatch } from '../ports/kube-api.ts'
import { gpusOf } from './pod-task.ts'

export interface Bindable {
  readonly claim: Claim
  readonly nodeName: string
}

export interface PodKey {
  readonly namespace: string
  readonly name: string
}

export function keyOf({ podNamespace: namespace, podName: name }: Claim): PodKey {
  return { namespace, name }
}

export function isBoundTo(pod: Pod, { claim, nodeName }: Bindable): boolean {
  return pod.spec.nodeName === nodeName && gpusOf(pod).join() === claim.gpuUuids.join()
}

/** Why the scheduler of Kubernetes last found no node; null: it has not tried. */
export function whyUnschedulable({ status }: Pod): string | null {
  const said = status?.conditions?.find(({ type }) => type === 'PodScheduled')
  return said?.status === 'False' && said.reason === 'Unschedulable' ? (said.message ?? '') : null
}

/** @param place of the gate */
export function withoutGate({ metadata }: Pod, place: number): KubePatch {
  const path = `/spec/schedulingGates/${place}`
  return {
    type: 'json',
    body: [
      { op: 'test', path: '/metadata/uid', value: metadata.uid },
      { op: 'test', path: `${path}/name`, value: SCHEDULING_GATE },
      { op: 'remove', path },
    ],
  }
}

export function bindingOf({ claim, nodeName }: Bindable, { metadata }: Pod): KubeObject {
  const { uid, resourceVersion } = metadata
  return {
    metadata: {
      ...keyOf(claim),
      ...(uid === undefined ? {} : { uid }),
      ...(resourceVersion === undefined ? {} : { resourceVersion }),
      annotations: { [POD_ANNOTATIONS.gpuUuids]: claim.gpuUuids.join(',') },
    },
    target: { apiVersion: 'v1', kind: 'Node', name: nodeName },
  }
}
