/**
 * A virtual cluster with load and faults that are drawn from one seed; then all faults end, and all pods that
 * fit run to their end.
 */
import type { Pod } from '../../../../operator/contract/kubernetes.ts'
import { ADMITTED_CONDITION, POD_ANNOTATIONS } from '../../../../operator/contract/names.ts'
import {
  CLUSTER_GPU_POLICY,
  GPU_NODE,
  type GPUNodeStatus,
  VENDOR_NODE_POLICY,
} from '../../../../operator/contract/policies.ts'
import { stageOf } from '../../../../operator/placing/pod-task.ts'
import { ownResource } from '../../../../operator/ports/kube-api.ts'
import type { DurationMs, Percent } from '../../../../protocol/units.ts'
import { aPod } from '../objects.ts'
import { requestOf } from './cluster-judge.ts'
import { type Replica, VirtualCluster } from './virtual-cluster.ts'
import type { VirtualNode } from './virtual-node.ts'

const GIB = 1024
const GPU_MIB = 24 * GIB
const IDLE_SECONDS = 20
const MIN_MS = 60_000
/** Load and faults. */
const TROUBLED_MS = 8 * MIN_MS
/** Every pod that fits has ended within this time after the faults, or never does. */
const HEALED_MS = 40 * MIN_MS
const SETTLED_MS = 2 * MIN_MS
const EVERY_MS = 4_000
const MAX_PODS = 30
const SIZES_GIB = [1, 2, 4, 8, 8, 12, 16, 20, 23, 30]
const PERCENTS = [0, 20, 50, 100, 100, 300, 1000]

export interface Outcome {
  readonly violations: readonly string[]
  /** Of all writes of the API server. */
  readonly digest: string
  readonly notes: readonly string[]
}

export async function drawnCluster(seed: number): Promise<Outcome> {
  const drawn = new DrawnCluster(seed)
  const unhandled = (error: unknown): void => drawn.cluster.judge.say(`unhandled: ${String(error)}`)
  process.on('unhandledRejection', unhandled)
  try {
    await drawn.run()
  } finally {
    process.off('unhandledRejection', unhandled)
    drawn.cluster.close()
  }
  const { judge, digest, notes } = drawn.cluster
  return { violations: judge.violations, digest, notes }
}

class DrawnCluster {
  readonly cluster: VirtualCluster
  readonly #reserveMib: number
  readonly #random: () => number
  #made = 0

  constructor(seed: number) {
    this.#reserveMib = seed % 3 === 0 ? 0 : GIB
    this.cluster = new VirtualCluster(seed, { reserveMib: this.#reserveMib, idleMs: IDLE_SECONDS * 1000 })
    this.#random = this.cluster.random.stream('schedule')
  }

  async run(): Promise<void> {
    const { cluster } = this
    const spec = {
      defaultVramOvercommitPercent: this.#oneOf(PERCENTS),
      ...{ safetyReserveMib: this.#reserveMib, idleSwapOutSeconds: IDLE_SECONDS },
    }
    await cluster.api.create(ownResource(CLUSTER_GPU_POLICY), { metadata: { name: 'default' }, spec })
    for (const [name, gpus] of [
      ['a', 1],
      ['b', 2],
      ['c', 1],
    ] as const)
      await cluster.addNode(name, ...gpusOf(name, gpus)).join()
    cluster.startOperator()
    cluster.startOperator()
    await cluster.run(2_000)
    const until = cluster.clock.now() + TROUBLED_MS
    while (cluster.clock.now() < until) {
      await this.#act()
      await cluster.run(200 + this.#below(EVERY_MS))
    }
    await this.#heal()
    await this.#drain()
    this.#judgeEnd()
    // The other one has watched for longer, and knows the same.
    const [leader] = cluster.replicas.filter(({ operator }) => operator.isLeading)
    if (leader === undefined) return
    cluster.killOperator(leader)
    if (cluster.replicas.length === 0) cluster.startOperator()
    await cluster.run(MIN_MS)
    this.#judgeEnd()
  }

  // ---- load and faults ----

  async #act(): Promise<void> {
    const what = this.#below(35)
    if (what < 9) await this.#addPod()
    else if (what < 15) this.#changeUse()
    else if (what < 17) this.#finishOne()
    else if (what < 19) await this.#deleteOne()
    else if (what === 19) await this.#setPercent(this.#oneOf(PERCENTS))
    else if (what === 20) await this.#setNodePercent()
    else if (what === 21) this.#toggleFit()
    else if (what < 25) this.#troubleOperator()
    else if (what === 25) this.#restartAgent()
    else if (what === 26) await this.#loseNode()
    else if (what === 27) this.#disturbApi()
    else if (what === 28) this.#disturbWatches()
    else if (what === 29) this.cluster.api.compact()
    else if (what === 30) this.#reboot()
    else if (what === 31) this.#useVramOfOthers()
    else if (what === 32) await this.#disableNode()
    else this.#crashOne()
  }

  async #addPod(): Promise<void> {
    const { pods } = this.cluster
    if (pods.size >= MAX_PODS) return this.#deleteOne()
    // Names are used again, as those of a StatefulSet.
    const taken = new Set([...pods.values()].map(({ metadata }) => metadata.name))
    const free = Array.from({ length: MAX_PODS + 1 }, (_, i) => `pod-${i}`).filter((name) => !taken.has(name))
    const name = this.#below(2) === 0 ? (free[0] ?? '') : `once-${(this.#made += 1)}`
    const plain = aPod({
      [POD_ANNOTATIONS.podVram]: `${this.#oneOf(SIZES_GIB)}Gi`,
      ...(this.#below(6) === 0 ? { [POD_ANNOTATIONS.gpuCount]: '2' } : {}),
      ...(this.#below(5) === 0 ? { [POD_ANNOTATIONS.swapFromVram]: 'false' } : {}),
      ...(this.#below(3) === 0 ? { [POD_ANNOTATIONS.wakeOnRequest]: 'true' } : {}),
    })
    const priorityClassName = `headroom-p${this.#below(5)}`
    const spec = { ...plain.spec, ...(this.#below(2) === 0 ? { priorityClassName } : {}) }
    const [more, isSidecar] = [this.#below(3) === 0, this.#below(2) === 0]
    const ports = this.#below(2) === 0 ? [{ containerPort: 8080 }] : []
    const names = more ? ['main', 'second'] : ['main']
    const annotations = {
      ...plain.metadata.annotations,
      ...(more && isSidecar ? { [POD_ANNOTATIONS.containers]: 'main' } : {}),
    }
    const containers = names.map((each) => ({ name: each, ports }))
    await this.cluster.addPod({
      metadata: { ...plain.metadata, name, annotations },
      spec: { ...spec, containers },
    })
  }

  #changeUse(): void {
    const { node, pod } = this.#oneOfAny(this.cluster.running) ?? {}
    if (pod !== undefined) node?.setBusy(pod, this.#below(3) === 0)
  }

  #finishOne(): void {
    const { node, pod } = this.#oneOfAny(this.cluster.running) ?? {}
    if (pod !== undefined) node?.kubelet.finish(pod)
  }

  /** One of its containers ends, and is started again. */
  #crashOne(): void {
    const { node, pod } = this.#oneOfAny(this.cluster.running) ?? {}
    if (pod !== undefined) node?.crash(pod, this.#oneOf(pod.containers))
  }

  async #deleteOne(): Promise<void> {
    const pod = this.#oneOfAny([...this.cluster.pods.values()])
    if (pod !== undefined) await this.cluster.deletePod(pod)
  }

  async #setPercent(defaultVramOvercommitPercent: Percent): Promise<void> {
    const body = { spec: { defaultVramOvercommitPercent } }
    await this.cluster.api.patch(
      ownResource(CLUSTER_GPU_POLICY),
      { name: 'default' },
      { type: 'merge', body },
    )
  }

  async #setNodePercent(): Promise<void> {
    const { api } = this.cluster
    const kind = ownResource(VENDOR_NODE_POLICY)
    const name = this.#oneOf([...this.cluster.nodes.keys()])
    if (this.cluster.objects(kind).has(name)) return api.delete(kind, { name })
    await api.create(kind, { metadata: { name }, spec: { vramOvercommitPercent: this.#oneOf(PERCENTS) } })
  }

  #toggleFit(): void {
    const { unfit } = this.cluster.scheduler
    const name = this.#oneOf([...this.cluster.nodes.keys()])
    if (!unfit.delete(name)) unfit.add(name)
  }

  #troubleOperator(): void {
    const { cluster } = this
    const replica = this.#oneOfAny(cluster.replicas.filter(({ process }) => process.isRunning))
    if (replica === undefined) return
    if (this.#below(2) === 0) {
      cluster.killOperator(replica)
      this.#after(1_000 + this.#below(10_000), () => void cluster.startOperator())
      return
    }
    replica.process.stop()
    // Shorter and longer than its Lease.
    this.#after(1_000 + this.#below(40_000), () => replica.process.continue())
  }

  #restartAgent(): void {
    const node = this.#oneOf([...this.cluster.nodes.values()])
    const start = (): void => this.#after(500 + this.#below(30_000), () => node.startAgent())
    if (this.#below(2) === 0) return void node.stopAgent().then(start)
    node.killAgent()
    start()
  }

  /** The object of the node stays, and so does its disk. */
  #reboot(): void {
    const node = this.#oneOf([...this.cluster.nodes.values()])
    if (!node.isUp) return
    node.turnOff()
    const agentMs = this.#below(20_000)
    this.#after(5_000 + this.#below(40_000), () => {
      node.turnOn()
      this.#after(agentMs, () => node.startAgent())
    })
  }

  async #disableNode(): Promise<void> {
    const node = this.#oneOf([...this.cluster.nodes.values()])
    await node.setEnabled(false)
    this.#after(200 + this.#below(10_000), () => void node.setEnabled(true))
  }

  #useVramOfOthers(): void {
    const node = this.#oneOf([...this.cluster.nodes.values()])
    const gpu = this.#oneOf(node.gpus)
    if (!node.isUp) return
    node.setForeign(gpu, this.#oneOf([1, 2, 4, 8, 16]) * GIB)
    this.#after(10_000 + this.#below(300_000), () => node.setForeign(gpu, 0))
  }

  async #loseNode(): Promise<void> {
    const node = this.#oneOf([...this.cluster.nodes.values()])
    if (!node.isUp) return
    await node.lose()
    this.#after(1_000 + this.#below(30_000), () => void this.#dropOrphans(node))
    this.#after(5_000 + this.#below(60_000), () => void this.#return(node))
  }

  /** As the garbage collector of pods. */
  async #dropOrphans(node: VirtualNode): Promise<void> {
    if (node.isUp) return
    for (const pod of this.cluster.pods.values())
      if (pod.spec.nodeName === node.name) await this.cluster.deletePod(pod)
  }

  async #return(node: VirtualNode): Promise<void> {
    await this.#dropOrphans(node)
    if (!node.isUp) await node.join()
  }

  #disturbApi(): void {
    const api = this.#oneOfAny(this.cluster.replicas)?.api
    if (api === undefined) return
    api.trouble = this.#oneOf([0.05, 0.2, 0.5])
    this.#after(5_000 + this.#below(30_000), () => {
      api.trouble = 0
    })
  }

  #disturbWatches(): void {
    const api = this.#oneOfAny(this.cluster.replicas)?.api
    if (api === undefined) return
    if (this.#below(2) === 0) return api.breakWatches()
    api.watchLagMs = this.#oneOf([100, 1_000, 5_000])
    this.#after(5_000 + this.#below(20_000), () => {
      api.watchLagMs = 5
    })
  }

  // ---- the end ----

  async #heal(): Promise<void> {
    const { cluster } = this
    await cluster.run(70_000)
    cluster.scheduler.unfit.clear()
    await this.#setPercent(100)
    for (const name of cluster.objects(ownResource(VENDOR_NODE_POLICY)).keys())
      await cluster.api.delete(ownResource(VENDOR_NODE_POLICY), { name })
    for (const node of cluster.nodes.values()) {
      await this.#return(node)
      node.startAgent()
      for (const gpu of node.gpus) node.setForeign(gpu, 0)
    }
    for (const replica of cluster.replicas) {
      replica.process.continue()
      replica.api.trouble = 0
      replica.api.watchLagMs = 5
    }
  }

  /** Every container ends after a while in VRAM. */
  async #drain(): Promise<void> {
    const { cluster } = this
    const ending = new Set<string>()
    const until = cluster.clock.now() + HEALED_MS
    while (cluster.clock.now() < until && [...cluster.pods.values()].some((pod) => this.#mustEnd(pod))) {
      await cluster.run(5_000)
      for (const node of cluster.nodes.values())
        for (const pod of node.pods.values()) {
          // One that is out is wanted.
          node.setBusy(pod, pod.residency === 'out')
          if (ending.has(pod.uid) || pod.residency !== 'in' || pod.isWaiting) continue
          ending.add(pod.uid)
          this.#after(this.#below(MIN_MS), () => node.kubelet.finish(pod))
        }
    }
    for (const pod of cluster.pods.values()) if (this.#mustEnd(pod)) cluster.judge.say(this.#stuck(pod))
    await cluster.run(SETTLED_MS)
  }

  /** It has not ended, and some node of an empty cluster has room for it. */
  #mustEnd(pod: Pod): boolean {
    const { vramMib, gpus } = requestOf(pod)
    const sizes = [...this.cluster.nodes.values()].map((node) => node.gpus.length)
    return (
      stageOf(pod) !== 'over' && vramMib <= GPU_MIB - this.#reserveMib && sizes.some((each) => each >= gpus)
    )
  }

  #stuck({ metadata, spec, status }: Pod): string {
    const { uid = '', name } = metadata
    const { pod } = this.cluster.running.find((each) => each.pod.uid === uid) ?? {}
    const where = spec.nodeName === undefined ? 'has no node' : `is on ${spec.nodeName}`
    const said = (status?.conditions ?? []).map(({ type, reason, message }) => `${type} ${reason} ${message}`)
    const runs = pod === undefined ? 'does not run' : pod.isWaiting ? 'waits to start' : pod.residency
    return `healed, and pod ${name} ${where}, ${runs}: ${said.join('; ')}`
  }

  #judgeEnd(): void {
    const { cluster } = this
    const { judge } = cluster
    const leaders = cluster.replicas.filter(({ operator }) => operator.isLeading)
    if (leaders.length !== 1) judge.say(`${leaders.length} operators lead`)
    for (const [name, { status = {} }] of cluster.objects(ownResource(GPU_NODE)))
      for (const { podUid, podName } of (status as GPUNodeStatus).claims ?? []) {
        const pod = cluster.pods.get(podUid)
        if (pod === undefined || stageOf(pod) !== 'bound')
          judge.say(`${name} keeps a claim of pod ${podName}`)
      }
    for (const pod of cluster.pods.values()) this.#judgeCondition(pod)
    for (const replica of leaders) this.#judgeMemory(replica)
  }

  #judgeCondition(pod: Pod): void {
    const found = pod.status?.conditions?.find(({ type }) => type === ADMITTED_CONDITION)
    if (stageOf(pod) === 'waiting' && found?.reason !== 'WaitingForVRAM')
      this.cluster.judge.say(`pod ${pod.metadata.name} waits, and its condition is ${found?.reason}`)
  }

  /** What a leader knows of pods is about pods that are there and have not ended. */
  #judgeMemory({ operator }: Replica): void {
    for (const { spec } of operator.placement?.controller.views.openTasks() ?? []) {
      const pod = this.cluster.pods.get(spec.id)
      if (pod === undefined || stageOf(pod) === 'over')
        this.cluster.judge.say(`the leader still has pod ${spec.name}`)
    }
  }

  #after(ms: DurationMs, act: () => void): void {
    const { clock } = this.cluster
    clock.at(clock.now() + ms, act)
  }

  #below(n: number): number {
    return Math.floor(this.#random() * n)
  }

  #oneOf<T>(all: readonly T[]): T {
    return all[this.#below(all.length)] as T
  }

  #oneOfAny<T>(all: readonly T[]): T | undefined {
    return all.length === 0 ? undefined : this.#oneOf(all)
  }
}

function gpusOf(name: string, count: number) {
  return Array.from({ length: count }, (_, i) => ({ uuid: `${name}-GPU-${i}`, mib: GPU_MIB }))
}
