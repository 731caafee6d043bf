/** A pod as its claim names it, and the binding that gives it its node and GPUs. */
import type { Pod } from '../contract/kubernetes.ts'
import { POD_ANNOTATIONS } from '../contract/names.ts'
import type { Claim } from '../contract/policies.ts'
import type { KubeObject } from '../ports/kube-api.ts'
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
