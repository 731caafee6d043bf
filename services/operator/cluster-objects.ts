/** The objects of a cluster with their types, from the copies that the operator keeps. */
import type { Node, Pod } from '../../operator/contract/kubernetes.ts'
import { CLUSTER_POLICY_NAME } from '../../operator/contract/names.ts'
import type { ClusterGPUPolicy, VendorNodePolicy } from '../../operator/contract/policies.ts'
import { PodDirectory } from '../../operator/placing/pod-directory.ts'
import type { KubeObject } from '../../operator/ports/kube-api.ts'
import type { ClusterCopy } from '../../operator/reflector/cluster-copy.ts'

export class ClusterObjects {
  readonly directory = new PodDirectory()
  readonly pod = this.directory.find
  readonly #copy: () => ClusterCopy

  constructor(copy: () => ClusterCopy) {
    this.#copy = copy
  }

  pods(): Iterable<Pod> {
    return this.directory.all()
  }

  nodes(): readonly Node[] {
    return this.#copy().all('nodes') as unknown as readonly Node[]
  }

  node(name: string): Node | null {
    return this.#copy().named('nodes', name) as unknown as Node | null
  }

  namespace(name: string): KubeObject | null {
    return this.#copy().named('namespaces', name)
  }

  priorityClass(name: string): KubeObject | null {
    return this.#copy().named('priorityClasses', name)
  }

  priorityClasses(): readonly KubeObject[] {
    return this.#copy().all('priorityClasses')
  }

  gpuNode(name: string): KubeObject | null {
    return this.#copy().named('gpuNodes', name)
  }

  gpuNodeNames(): readonly string[] {
    return this.#copy()
      .all('gpuNodes')
      .map(({ metadata }) => metadata.name ?? '')
  }

  clusterPolicy(): ClusterGPUPolicy | null {
    return this.#copy().named('clusterPolicies', CLUSTER_POLICY_NAME) as unknown as ClusterGPUPolicy | null
  }

  nodePolicies(): readonly VendorNodePolicy[] {
    return this.#copy().all('nodePolicies') as unknown as readonly VendorNodePolicy[]
  }
}
