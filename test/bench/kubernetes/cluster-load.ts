/** Nodes and pods of a benchmark: objects that no kubelet looks after. */
import { DEFAULT_ADMISSION } from '../../../operator/admission/admission-options.ts'
import { admitPod } from '../../../operator/admission/admit-pod.ts'
import { NODE_GPUS, NODE_LABELS, POD_ANNOTATIONS } from '../../../operator/contract/names.ts'
import { type KubeApi, type KubeObject, NODES, PODS } from '../../../operator/ports/kube-api.ts'
import { aPod } from '../../support/kubernetes/objects.ts'

/** Requests at a time; a client of its own has as many connections. */
const AT_A_TIME = 32
const GPUS = 4
const GPU_MIB = 24 * 1024
/** Of another controller: it holds a pod that exists already. */
const HELD: Gate = { name: 'example.com/held' }

interface Gate {
  readonly name: string
}

export async function addNodes(api: KubeApi, count: number): Promise<void> {
  const amounts = { cpu: '64', memory: '256Gi', pods: '110' }
  const conditions = [{ type: 'Ready', status: 'True', reason: 'Bench', message: '' }]
  const status = { capacity: amounts, allocatable: amounts, conditions }
  await inParallel(count, async (index) => {
    const name = `node-${index}`
    const gpus = Array.from({ length: GPUS }, (_, gpu) => ({ uuid: `${name}-GPU-${gpu}`, vram_mib: GPU_MIB }))
    const labels = { [NODE_LABELS.enabled]: 'true' }
    const annotations = { [NODE_GPUS]: JSON.stringify(gpus) }
    await api.create(NODES, { metadata: { name, labels, annotations } })
    await api.patch(NODES, { name }, { type: 'merge', body: { status } }, { subresource: 'status' })
    // No controller sees that the node is ready.
    await api.patch(NODES, { name }, { type: 'merge', body: { spec: { taints: null } } })
  })
}

/** A pod of the stock scheduler: two of them fit into the VRAM of a GPU. */
export function stockPod(name: string): KubeObject {
  const resources = { requests: { cpu: '100m', memory: '1Gi' } }
  return {
    ...aPod(),
    metadata: { name, namespace: 'default' },
    spec: { containers: [{ name: 'main', image: 'registry.example/train:1', resources }] },
  }
}

/** The same pod as admission changes it. */
export function headroomPod(name: string, vram = '8Gi'): KubeObject {
  const { metadata } = aPod({ [POD_ANNOTATIONS.podVram]: vram })
  const plain = stockPod(name)
  const given = { ...plain, metadata: { ...metadata, ...plain.metadata } }
  const admitted = admitPod(given as unknown as Parameters<typeof admitPod>[0], DEFAULT_ADMISSION)
  if (!admitted.ok) throw new Error(JSON.stringify(admitted.faults))
  return admitted.pod as unknown as KubeObject
}

/** Creates pods that another controller holds. */
export function addHeld(api: KubeApi, count: number, podNamed: (name: string) => KubeObject): Promise<void> {
  return inParallel(count, async (index) => {
    const pod = podNamed(nameOf(index))
    const spec = pod['spec'] as { readonly schedulingGates?: readonly Gate[] }
    const schedulingGates = [HELD, ...(spec.schedulingGates ?? [])]
    await api.create(PODS, { ...pod, spec: { ...spec, schedulingGates } })
  })
}

/** The other controller lets them all go. */
export function release(api: KubeApi, count: number): Promise<void> {
  return inParallel(count, async (index) => {
    const body = [
      { op: 'test', path: '/spec/schedulingGates/0/name', value: HELD.name },
      { op: 'remove', path: '/spec/schedulingGates/0' },
    ] as const
    await api.patch(PODS, { namespace: 'default', name: nameOf(index) }, { type: 'json', body })
  })
}

export function addPods(api: KubeApi, count: number, podNamed: (name: string) => KubeObject): Promise<void> {
  return inParallel(count, async (index) => void (await api.create(PODS, podNamed(`more-${index}`))))
}

const nameOf = (index: number): string => `pod-${index}`

async function inParallel(count: number, act: (index: number) => Promise<void>): Promise<void> {
  let next = 0
  const worker = async (): Promise<void> => {
    while (next < count) await act(next++)
  }
  await Promise.all(Array.from({ length: AT_A_TIME }, worker))
}
