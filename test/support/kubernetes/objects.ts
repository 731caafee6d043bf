/** Objects of Kubernetes for tests: valid, with as few fields as possible. */
import type { Pod } from '../../../operator/contract/kubernetes.ts'
import { POD_ANNOTATIONS, RUNTIME_LABEL, RUNTIME_VALUE } from '../../../operator/contract/names.ts'
import type { OvercommitSources } from '../../../operator/contract/overcommit.ts'
import type { ClusterGPUPolicy, VendorNodePolicy } from '../../../operator/contract/policies.ts'

/** A pod of 8 GiB; an annotation that is undefined is left out. */
export function aPod(annotations: Readonly<Record<string, string | undefined>> = {}): Pod {
  const all = { [POD_ANNOTATIONS.podVram]: '8Gi', ...annotations }
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: 'train',
      namespace: 'default',
      labels: { [RUNTIME_LABEL]: RUNTIME_VALUE },
      annotations: Object.fromEntries(
        Object.entries(all).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
      ),
    },
    spec: { containers: [{ name: 'main', image: 'registry.example/train:1' }] },
  }
}

export function aClusterPolicy(percent: number | undefined, name = 'default'): ClusterGPUPolicy {
  return {
    metadata: { name },
    spec: percent === undefined ? {} : { defaultVramOvercommitPercent: percent },
  }
}

export function aNodePolicy(name: string, percent: number | undefined, nodeName?: string): VendorNodePolicy {
  return {
    metadata: { name },
    spec: {
      ...(nodeName === undefined ? {} : { nodeName }),
      ...(percent === undefined ? {} : { vramOvercommitPercent: percent }),
    },
  }
}

/** The sources of one node, gpu-1 unless named, without any of its own. */
export function sourcesOf({
  nodeName = 'gpu-1',
  labels = {},
  ...given
}: Partial<OvercommitSources> & {
  readonly nodeName?: string
  readonly labels?: Readonly<Record<string, string>>
}): OvercommitSources {
  return { node: { name: nodeName, labels }, nodePolicies: [], clusterPolicy: null, helmPercent: 0, ...given }
}
