/**
 * Operators, nodes with agents, and a stand-in for the scheduler over an API server in memory, in virtual
 * time: the same seed gives the same history.
 */
import { createHash } from 'node:crypto'
import { setImmediate as turn } from 'node:timers/promises'
import { DEFAULT_ADMISSION } from '../../../../operator/admission/admission-options.ts'
import { admitPod } from '../../../../operator/admission/admit-pod.ts'
import type { Pod } from '../../../../operator/contract/kubernetes.ts'
import {
  CLUSTER_GPU_POLICY,
  GPU_NODE,
  type GPUNodeStatus,
  VENDOR_NODE_POLICY,
} from '../../../../operator/contract/policies.ts'
import type { MemoryApi, StoredChange } from '../../../../operator/memory-api/memory-api.ts'
import type { Extender } from '../../../../operator/adapters/extender-server.ts'
import { type KubeObject, NAMESPACES, PODS, type ResourceKind } from '../../../../operator/ports/kube-api.ts'
import type { DurationMs } from '../../../../protocol/units.ts'
import { Operator } from '../../../../services/operator/operator.ts'
import { createSeededRandom } from '../../../../simulator/kernel/seeded-random.ts'
import { VirtualClock } from '../../../../simulator/kernel/virtual-clock.ts'
import { memoryApi } from '../memory-world.ts'
import { ClusterJudge, type Rules } from './cluster-judge.ts'
import { type Actor, LeaderJudge } from './leader-judge.ts'
import { ProcessApi } from './process-api.ts'
import type { SendReport } from './virtual-agent.ts'
import { KUBELET_FINALIZER, unlessGone } from './virtual-kubelet.ts'
import { type VirtualGpu, VirtualNode } from './virtual-node.ts'
import type { VirtualPod } from './virtual-pod.ts'
import { VirtualProcess } from './virtual-process.ts'
import { VirtualScheduler } from './virtual-scheduler.ts'

const START = Date.UTC(2026, 10, 28)
const LEASE = { namespace: 'headroom', name: 'headroom-operator' }
const LEASE_MS = 15_000
const PROBE_SECONDS = 30
/** The limit of the agent's client. */
const REPORT_WITHIN_MS = 15_000
const ASK_WITHIN_MS = 5_000

export interface Replica extends Actor {
  readonly process: VirtualProcess
  readonly api: ProcessApi
  /** Its pod has the label of the leader. */
  leads: boolean
}

export class VirtualCluster {
  readonly clock = new VirtualClock(START)
  readonly api: MemoryApi
  readonly pods = new Map<string, Pod>()
  readonly nodes = new Map<string, VirtualNode>()
  readonly scheduler: VirtualScheduler
  readonly judge: ClusterJudge
  readonly #leaderJudge: LeaderJudge
  readonly notes: string[] = []
  replicas: Replica[] = []
  readonly random
  readonly #objects = new Map<string, Map<string, KubeObject>>()
  readonly #digest = createHash('sha256')
  #replicas = 0

  constructor(seed: number, rules: Rules) {
    this.random = createSeededRandom(seed)
    this.api = memoryApi(500, {
      now: () => `${new Date(this.clock.now()).toISOString().slice(0, 19)}Z`,
      onChange: (kind, change) => this.#changed(kind, change),
    })
    const of = (kind: string): Map<string, KubeObject> => this.#of(kind)
    const facts = {
      ...{ pods: this.pods, nodes: of('Node'), gpuNodes: of(GPU_NODE.kind) },
      ...{ clusterPolicies: of(CLUSTER_GPU_POLICY.kind), nodePolicies: of(VENDOR_NODE_POLICY.kind) },
    }
    this.judge = new ClusterJudge(facts, () => this.clock.now(), rules)
    this.#leaderJudge = new LeaderJudge({ ...facts, leases: of('Lease') }, (text) => this.judge.say(text))
    this.scheduler = new VirtualScheduler({
      ...{ api: this.api, clock: this.clock, random: this.random.stream('scheduler') },
      ...{ pods: () => this.pods.values(), nodes: () => [...of('Node').keys()], ask: this.#askLeader },
    })
    void this.api.create(NAMESPACES, { metadata: { name: 'default' } })
  }

  get digest(): string {
    return this.#digest.copy().digest('hex')
  }

  objects(kind: { readonly kind: string }): ReadonlyMap<string, KubeObject> {
    return this.#of(kind.kind)
  }

  // ---- the driver ----

  /** Nothing here waits for anything but virtual time: a turn of Node runs all that is ready. */
  async run(ms: DurationMs): Promise<void> {
    const until = this.clock.now() + ms
    await turn()
    while (this.clock.step(until)) await turn()
    this.clock.advanceTo(until)
  }

  // ---- processes ----

  startOperator(): Replica {
    this.#replicas += 1
    const name = `operator-${this.#replicas}`
    const process = new VirtualProcess(this.clock)
    const api = new ProcessApi({
      ...{ api: this.api, clock: this.clock, process, random: this.random.stream(`api/${name}`) },
      onSend: (...sent) => this.#leaderJudge.sends(replica, ...sent),
    })
    const operator = new Operator({
      ...{ api, name, lease: LEASE, leaseMs: LEASE_MS, helmPercent: 0, probeSeconds: PROBE_SECONDS },
      ...{ newClock: process.newClock, random: { stream: (of) => this.random.stream(`${name}/${of}`) } },
      onNote: (line) => {
        this.notes.push(`${this.clock.now()} ${name}: ${line}`)
        this.#leaderJudge.notes(replica, line)
      },
      onLeading: (isLeading) => {
        replica.leads = isLeading
      },
    })
    const replica: Replica = { name, operator, process, api, leads: false }
    this.replicas.push(replica)
    operator.start()
    return replica
  }

  /** Its pod is gone, and with it the label. */
  killOperator(replica: Replica): void {
    replica.process.kill()
    this.replicas = this.replicas.filter((each) => each !== replica)
  }

  addNode(name: string, ...gpus: readonly VirtualGpu[]): VirtualNode {
    const node = new VirtualNode({
      ...{ name, gpus, api: this.api, clock: this.clock, random: this.random.stream(`node/${name}`) },
      ...{ send: this.#sendReport, pods: () => this.pods.values() },
      onBytes: (changed) => this.judge.bytesChanged(changed),
      onSwapOut: (...swapped) => this.judge.swapsOut(...swapped),
    })
    this.nodes.set(name, node)
    return node
  }

  get running(): readonly { readonly node: VirtualNode; readonly pod: VirtualPod }[] {
    return [...this.nodes.values()].flatMap((node) => [...node.pods.values()].map((pod) => ({ node, pod })))
  }

  /** Removes the files of its nodes. */
  close(): void {
    for (const node of this.nodes.values()) node.close()
  }

  // ---- pods ----

  async addPod(pod: Pod): Promise<void> {
    const admitted = admitPod(pod, DEFAULT_ADMISSION)
    if (!admitted.ok) throw new Error(JSON.stringify(admitted.faults))
    const { metadata } = admitted.pod
    const made = { ...admitted.pod, metadata: { ...metadata, finalizers: [KUBELET_FINALIZER] } }
    await this.api.create(PODS, made as unknown as KubeObject)
  }

  /** One without a node goes at once; otherwise its kubelet ends it first. */
  async deletePod({ metadata: { uid = '', name = '', namespace = 'default' } }: Pod): Promise<void> {
    const key = { namespace, name }
    await unlessGone(this.api.delete(PODS, key, { uid }))
    const pod = this.pods.get(uid)
    if (pod === undefined || this.#of('Node').has(pod.spec.nodeName ?? '')) return
    const body = { metadata: { uid, finalizers: null } }
    await unlessGone(this.api.patch(PODS, key, { type: 'merge', body }))
  }

  // ---- inside ----

  #of(kind: string): Map<string, KubeObject> {
    const known = this.#objects.get(kind) ?? new Map<string, KubeObject>()
    this.#objects.set(kind, known)
    return known
  }

  #changed({ kind }: ResourceKind, { type, object, before }: StoredChange): void {
    this.#digest.update(`${this.clock.now()} ${kind} ${type} ${JSON.stringify(object)}\n`)
    const { name = '', uid = '' } = object.metadata
    if (type === 'DELETED') this.#of(kind).delete(name)
    else this.#of(kind).set(name, object)
    const statusOf = (of: KubeObject | null): GPUNodeStatus => (of?.['status'] ?? {}) as GPUNodeStatus
    if (kind === GPU_NODE.kind) this.judge.claimsChanged(statusOf(before), statusOf(object))
    if (kind === 'Pod') {
      const pod = object as unknown as Pod
      if (type === 'DELETED') this.pods.delete(uid)
      else this.pods.set(uid, pod)
      this.judge.podChanged(before as unknown as Pod | null, pod)
      const wasBound = (before as unknown as Pod | null)?.spec.nodeName !== undefined
      if (!wasBound && pod.spec.nodeName !== undefined) this.#leaderJudge.bound(pod, this.replicas)
      for (const { kubelet } of this.nodes.values()) kubelet.podChanged(pod, type === 'DELETED')
    } else if (kind !== 'Event' && kind !== 'Lease') this.judge.limitsChanged()
  }

  /** The Service has the replicas with the label; connections to a stopped one wait. */
  #leader(): Replica | undefined {
    const labelled = this.replicas.filter(({ leads }) => leads)
    return labelled[Math.floor(this.random.stream('service')() * labelled.length)]
  }

  readonly #askLeader = (act: (extender: Extender) => void): void => {
    const replica = this.#leader()
    const asked = this.clock.now()
    replica?.process.run(() => {
      const extender = replica.operator.extender()
      // The scheduler has given up meanwhile.
      if (extender === null || this.clock.now() - asked >= ASK_WITHIN_MS) return
      this.#leaderJudge.acts(replica, 'answers the scheduler')
      act(extender)
    })
  }

  readonly #sendReport: SendReport = (report, from) =>
    new Promise((resolve) => {
      const random = this.random.stream('agents')
      const after = (ms: DurationMs, act: () => void): void => void this.clock.at(this.clock.now() + ms, act)
      let isOver = false
      const end: typeof resolve = (answer) => {
        if (!isOver) from.run(() => resolve(answer))
        isOver = true
      }
      const replica = this.#leader()
      if (replica === undefined) return after(10, () => end(null))
      after(REPORT_WITHIN_MS, () => end(null))
      after(1 + Math.floor(random() * 20), () =>
        replica.process.run(() => {
          void replica.operator.agentReported(report).then((answer) => {
            if (answer !== null) this.#leaderJudge.acts(replica, `answers the agent of ${report.node}`)
            after(1 + Math.floor(random() * 20), () => end(answer))
          })
        }),
      )
    })
}
