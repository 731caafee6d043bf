/** A pod without what admission has added: the default scheduler places it, and Headroom does not see it. */
import type { Container, Pod, ResourceList, ResourceRequirements } from '../contract/kubernetes.ts'
import {
  DOMAIN,
  NODE_TAINT,
  POD_ANNOTATIONS,
  RUNTIME_LABEL,
  SCHEDULING_GATE,
  SWAP_VARIABLE,
  VRAM_RESOURCE,
} from '../contract/names.ts'
import { withMoreMemory, withoutVariable } from './container-fields.ts'

const GPU_FIELD = `metadata.annotations['${POD_ANNOTATIONS.gpuUuids}']`

/** Ready to be created: without node, status, and what the API server has written. */
export function plainPod({ metadata, spec }: Pod): Pod {
  const { name, namespace, labels = {}, annotations = {}, ownerReferences } = metadata
  const raised = raisedMib(annotations[POD_ANNOTATIONS.memoryRaised] ?? '')
  const { [RUNTIME_LABEL]: _label, ...otherLabels } = labels
  const { nodeName: _node, schedulerName: _scheduler, schedulingGates = [], ...rest } = spec
  const { initContainers, tolerations = [], resources } = rest
  const gates = schedulingGates.filter((gate) => gate.name !== SCHEDULING_GATE)
  const plain = (container: Container): Container =>
    plainContainer(container, raised.get(container.name) ?? 0)
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      ...(name === undefined ? {} : { name }),
      ...(namespace === undefined ? {} : { namespace }),
      ...(ownerReferences === undefined ? {} : { ownerReferences }),
      labels: otherLabels,
      annotations: Object.fromEntries(
        Object.entries(annotations).filter(([key]) => !key.startsWith(`${DOMAIN}/`)),
      ),
    },
    spec: {
      ...rest,
      containers: spec.containers.map(plain),
      ...(initContainers === undefined ? {} : { initContainers: initContainers.map(plain) }),
      ...(resources === undefined ? {} : { resources: lessMemory(resources, raised.get(WHOLE_POD) ?? 0) }),
      tolerations: tolerations.filter(({ key }) => key !== NODE_TAINT),
      ...(gates.length === 0 ? {} : { schedulingGates: gates }),
    },
  }
}

/** As admission writes it. */
const WHOLE_POD = '*'

function raisedMib(text: string): ReadonlyMap<string, number> {
  const entries = text.split(',').map((entry) => entry.split('=') as [string, string?])
  return new Map(entries.map(([name, mib = '0']) => [name, Number(mib)]))
}

function plainContainer(container: Container, raised: number): Container {
  const { env = [], resources } = SWAP_VARIABLE.reduce(withoutVariable, container)
  const kept = env.filter(({ name, value, valueFrom }) => {
    const hidesGpus = name === 'NVIDIA_VISIBLE_DEVICES' && value === 'void'
    return !hidesGpus && valueFrom?.fieldRef?.fieldPath !== GPU_FIELD
  })
  const { env: _env, resources: _resources, ...rest } = container
  return {
    ...rest,
    ...(kept.length === 0 ? {} : { env: kept }),
    ...(resources === undefined ? {} : { resources: lessMemory(withoutVram(resources), raised) }),
  }
}

function lessMemory(resources: ResourceRequirements, mib: number): ResourceRequirements {
  return mib === 0 ? resources : withMoreMemory(resources, -mib)
}

function withoutVram({ requests, limits, ...rest }: ResourceRequirements): ResourceRequirements {
  const without = (list: ResourceList): ResourceList =>
    Object.fromEntries(Object.entries(list).filter(([name]) => name !== VRAM_RESOURCE))
  return {
    ...rest,
    ...(requests === undefined ? {} : { requests: without(requests) }),
    ...(limits === undefined ? {} : { limits: without(limits) }),
  }
}
