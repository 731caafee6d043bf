/** Nodes as objects, and the heartbeats that their kubelets would send. */
import { setTimeout as delay } from 'node:timers/promises'
import type { ObjectMeta } from '../../../operator/contract/kubernetes.ts'
import { NODE_LABELS } from '../../../operator/contract/names.ts'
import {
  CONFLICT,
  type KubeApi,
  KubeError,
  type KubeObject,
  LEASES,
  NODES,
} from '../../../operator/ports/kube-api.ts'
import type { ControlPlane } from './control-plane.ts'

export interface NodePlan {
  readonly name: string
  readonly cpus?: number
  readonly labels?: Readonly<Record<string, string>>
  readonly annotations?: Readonly<Record<string, string>>
  /** Whether its GPUs belong to Headroom. */
  readonly isGpuNode?: boolean
}

export async function addReadyNode(
  api: KubeApi,
  { name, cpus = 64, labels = {}, annotations = {}, isGpuNode = true }: NodePlan,
): Promise<void> {
  const marked = isGpuNode ? { ...labels, [NODE_LABELS.enabled]: 'true' } : labels
  await api.create(NODES, { metadata: { name, labels: marked, annotations } })
  const amounts = { cpu: String(cpus), memory: '512Gi', pods: '110' }
  const conditions = [{ type: 'Ready', status: 'True', reason: 'Test', message: '' }]
  const body = { status: { capacity: amounts, allocatable: amounts, conditions } }
  await api.patch(NODES, { name }, { type: 'merge', body }, { subresource: 'status' })
  // Without a controller manager nothing sees that the node is ready.
  await api.patch(NODES, { name }, { type: 'merge', body: { spec: { taints: null } } })
}

/** As a kubelet confirms that the processes of a deleted pod have ended. */
export async function removePod(
  plane: ControlPlane,
  { namespace = '', name = '', uid = '' }: ObjectMeta,
): Promise<void> {
  const options = { apiVersion: 'v1', kind: 'DeleteOptions', gracePeriodSeconds: 0, preconditions: { uid } }
  await plane.raw('DELETE', `/api/v1/namespaces/${namespace}/pods/${name}`, options)
}

const BEAT_EVERY_MS = 10_000
const AGAIN_AFTER_MS = 1_000

/** The controller manager taints a node whose Lease is not renewed. @param nodes may become more */
export async function sendHeartbeats(
  api: KubeApi,
  nodes: () => readonly string[],
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    const sent = await Promise.all(nodes().map((name) => beat(api, name))).then(
      () => true,
      () => false,
    )
    await delay(sent ? BEAT_EVERY_MS : AGAIN_AFTER_MS, undefined, { signal }).catch(() => {})
  }
}

async function beat(api: KubeApi, name: string): Promise<void> {
  const key = { namespace: 'kube-node-lease', name }
  const renewTime = new Date().toISOString().replace('Z', '000Z')
  const spec = { holderIdentity: name, leaseDurationSeconds: 40, renewTime }
  const lease: KubeObject = { metadata: key, spec }
  try {
    await api.create(LEASES, lease)
  } catch (error) {
    if (!(error instanceof KubeError) || error.code !== CONFLICT) throw error
    await api.patch(LEASES, key, { type: 'merge', body: { spec } })
  }
}
