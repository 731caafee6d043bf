/** What the leading operator writes for people: conditions of pods, status of nodes and policies. */
import type { Pod } from '../../operator/contract/kubernetes.ts'
import { nodeOfPolicy, policyOfNode } from '../../operator/contract/overcommit.ts'
import { CLUSTER_GPU_POLICY, VENDOR_NODE_POLICY } from '../../operator/contract/policies.ts'
import { type Admission, PodConditions } from '../../operator/placing/pod-conditions.ts'
import { stageOf } from '../../operator/placing/pod-task.ts'
import { reportPolicy } from '../../operator/placing/policy-status.ts'
import { type KubeApi, type KubeObject, ownResource } from '../../operator/ports/kube-api.ts'
import { errorText } from '../../protocol/error-text.ts'
import type { DurationMs } from '../../protocol/units.ts'
import type { ClusterObjects } from './cluster-objects.ts'
import { type Placement, wholeSeconds } from './placement.ts'

const PODS_EVERY_MS: DurationMs = 1_000
/** Nodes, policies and claims of every nth round. */
const NODES_EVERY_ROUNDS = 10
const REFUSED_EVERY_ROUNDS = 30
/** Conditions of one round. */
const MAX_WRITES = 100

export class Reports {
  readonly #api: KubeApi
  readonly #objects: ClusterObjects
  readonly #placement: Placement
  readonly #onNote: (line: string) => void
  readonly #conditions: PodConditions
  #round = 0
  #areNodesDue = true
  #running: Promise<void> = Promise.resolve()
  #isStopped = false

  constructor(api: KubeApi, objects: ClusterObjects, placement: Placement, onNote: (line: string) => void) {
    this.#api = api
    this.#objects = objects
    this.#placement = placement
    this.#onNote = onNote
    this.#conditions = new PodConditions(api, () => placement.clock.now())
  }

  start(): void {
    const { clock } = this.#placement
    clock.at(clock.now() + PODS_EVERY_MS, () => {
      if (this.#isStopped) return
      this.#running = this.#write()
        .catch((error: unknown) => this.#onNote(`a report was not written: ${errorText(error)}`))
        .then(() => this.start())
    })
  }

  /** Nodes or policies have changed. */
  nodesChanged(): void {
    this.#areNodesDue = true
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    await this.#running
  }

  async #write(): Promise<void> {
    this.#round += 1
    this.#placement.settle()
    await this.#writePods()
    if (this.#round % REFUSED_EVERY_ROUNDS === 0) this.#placement.tryRefusedAgain()
    if (!this.#areNodesDue && this.#round % NODES_EVERY_ROUNDS !== 0) return
    this.#areNodesDue = false
    const now = wholeSeconds(new Date(this.#placement.clock.now()))
    this.#placement.dropGonePods()
    await this.#placement.repairClaims()
    for (const { metadata } of this.#objects.nodes()) {
      if (this.#isStopped) return
      await this.#placement.report(metadata.name ?? '', now)
    }
    await this.#writePolicies(now)
  }

  async #writePods(): Promise<void> {
    let writes = 0
    for (const pod of this.#objects.pods()) {
      if (this.#isStopped || writes >= MAX_WRITES) return
      const admission = this.#admissionOf(pod)
      if (admission !== null && (await this.#conditions.write(pod, admission))) writes += 1
    }
  }

  #admissionOf(pod: Pod): Admission | null {
    const { uid = '' } = pod.metadata
    const stage = stageOf(pod)
    if (stage === 'over') this.#conditions.forget(uid)
    if (stage === 'bound')
      return { status: 'True', reason: 'Bound', message: `Its VRAM is on ${pod.spec.nodeName ?? ''}.` }
    if (stage !== 'waiting') return null
    const { views } = this.#placement.controller
    const task = views.openTask(uid)
    if (task === undefined) return null
    if (task.placement !== null)
      return {
        status: 'True',
        reason: 'Reserved',
        message: `VRAM is reserved on ${task.placement.node.name}.`,
      }
    const why = this.#placement.whyWaiting(uid)
    return { status: 'False', reason: 'WaitingForVRAM', message: why }
  }

  async #writePolicies(now: string): Promise<void> {
    const cluster = this.#objects.clusterPolicy()
    if (cluster !== null) {
      const names = this.#objects.nodes().map(({ metadata }) => metadata.name ?? '')
      const { settings } = this.#placement
      const nodes = names.filter((name) => settings.overcommitOf(name).source === 'ClusterGPUPolicy').length
      const facts = { fault: null, nodes, now }
      await reportPolicy(this.#api, ownResource(CLUSTER_GPU_POLICY), cluster as unknown as KubeObject, facts)
    }
    const policies = this.#objects.nodePolicies()
    for (const policy of policies) {
      const node = nodeOfPolicy(policy)
      const applies = policyOfNode(node, policies) === policy
      const fault = applies ? null : `Node ${node} has an older VendorNodePolicy.`
      const object = policy as unknown as KubeObject
      await reportPolicy(this.#api, ownResource(VENDOR_NODE_POLICY), object, { fault, now })
    }
  }
}
