/**
 * Operators over an API server in memory, with a stand-in for the scheduler of Kubernetes: it asks the
 * extender of the leading operator about every pod without gates, and offers the nodes that a test names.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { DEFAULT_ADMISSION } from '../../../operator/admission/admission-options.ts'
import { admitPod } from '../../../operator/admission/admit-pod.ts'
import type { Pod } from '../../../operator/contract/kubernetes.ts'
import { NODE_GPUS, NODE_LABELS } from '../../../operator/contract/names.ts'
import { GPU_NODE, type GPUNodeStatus } from '../../../operator/contract/policies.ts'
import type { MemoryApi } from '../../../operator/memory-api/memory-api.ts'
import {
  type KubeApi,
  type KubeObject,
  NAMESPACES,
  NODES,
  ownResource,
  PODS,
} from '../../../operator/ports/kube-api.ts'
import { Operator, type OperatorOptions } from '../../../services/operator/operator.ts'
import { memoryApi } from './memory-world.ts'
import { aPod } from './objects.ts'

const LEASE = { namespace: 'headroom', name: 'headroom-operator' }
const LEASE_MS = 600

export class OperatorWorld {
  readonly api: MemoryApi = memoryApi(100_000)
  readonly operators: Operator[] = []
  readonly notes: string[] = []
  /** Nodes that do not fit for other reasons than VRAM. */
  readonly unfit = new Set<string>()
  #isStopped = false
  #scheduling: Promise<void> | null = null

  constructor() {
    void this.api.create(NAMESPACES, { metadata: { name: 'default' } })
  }

  start(options: Partial<OperatorOptions> = {}): Operator {
    const operator = new Operator({
      ...{ api: this.api, lease: LEASE, leaseMs: LEASE_MS, helmPercent: 0, probeSeconds: 1 },
      name: `operator-${this.operators.length + 1}`,
      onNote: (line) => this.notes.push(line),
      ...options,
    })
    this.operators.push(operator)
    operator.start()
    this.#scheduling ??= this.#schedule()
    return operator
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    await this.#scheduling
    for (const operator of this.operators) await operator.stop()
  }

  /** @param vramMib of each GPU */
  async addNode(name: string, ...vramMib: readonly number[]): Promise<void> {
    const gpus = vramMib.map((mib, index) => ({ uuid: `${name}-GPU-${index}`, model: 'X', vram_mib: mib }))
    const metadata = {
      name,
      labels: { [NODE_LABELS.enabled]: 'true' },
      annotations: { [NODE_GPUS]: JSON.stringify(gpus) },
    }
    await this.api.create(NODES, { metadata, spec: {} })
  }

  /** As admission changes it. */
  async addPod(name: string, vram: string, change: (pod: Pod) => Pod = (pod) => pod): Promise<Pod> {
    const plain = aPod({ 'headroom.dev/pod-vram': vram })
    const admitted = admitPod(change({ ...plain, metadata: { ...plain.metadata, name } }), DEFAULT_ADMISSION)
    if (!admitted.ok) throw new Error(JSON.stringify(admitted.faults))
    return (await this.api.create(PODS, admitted.pod as unknown as KubeObject)) as unknown as Pod
  }

  async pod(name: string): Promise<Pod> {
    return (await this.api.get(PODS, { namespace: 'default', name })) as unknown as Pod
  }

  async finish(name: string): Promise<void> {
    const key = { namespace: 'default', name }
    const body = { status: { phase: 'Succeeded' } }
    await this.api.patch(PODS, key, { type: 'merge', body }, { subresource: 'status' })
  }

  async status(node: string): Promise<GPUNodeStatus> {
    const { status = {} } = await this.api.get(ownResource(GPU_NODE), { name: node })
    return status as GPUNodeStatus
  }

  /** One try for each pod, in order of names, every few milliseconds. */
  async #schedule(): Promise<void> {
    while (!this.#isStopped) {
      await delay(10)
      const extender = this.operators.map((each) => each.extender()).find((each) => each !== null)
      if (extender === undefined || extender === null) continue
      const nodes = (await this.api.list(NODES)).items.map(({ metadata }) => metadata.name ?? '')
      const candidates = nodes.filter((name) => !this.unfit.has(name))
      for (const pod of await waiting(this.api)) {
        if (candidates.length === 0) continue
        const { uid = '' } = pod.metadata
        const [node] = extender.filter(uid, candidates).nodeNames
        if (node !== undefined) void extender.bind(uid, node)
      }
    }
  }
}

/** Its methods, to replace some of them. */
export const delegating = (api: KubeApi): KubeApi => ({
  get: (...args) => api.get(...args),
  list: (...args) => api.list(...args),
  watch: (...args) => api.watch(...args),
  create: (...args) => api.create(...args),
  replace: (...args) => api.replace(...args),
  patch: (...args) => api.patch(...args),
  delete: (...args) => api.delete(...args),
})

async function waiting(api: KubeApi): Promise<readonly Pod[]> {
  const { items } = await api.list(PODS)
  return (items as unknown as readonly Pod[]).filter(
    ({ spec }) => spec.nodeName === undefined && (spec.schedulingGates ?? []).length === 0,
  )
}
