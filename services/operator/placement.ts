/**
 * One term of the operator: the controller of `headroom serve` over the pods and nodes of a cluster. Its
 * facts are objects of Kubernetes: a new term begins with an empty store in recovery, and learns from every
 * node which pods it runs.
 */
import type { Controller } from '../../controller/controller.ts'
import type { Task } from '../../controller/model/placement.ts'
import type { Clock } from '../../controller/ports/clock.ts'
import { createMemoryStorage } from '../../gpu-server/core/storage.ts'
import { ServerCore } from '../../gpu-server/core/server-core.ts'
import type { Pod } from '../../operator/contract/kubernetes.ts'
import type { GPUNodeStatus } from '../../operator/contract/policies.ts'
import { AgentLink } from '../../operator/placing/agent-link.ts'
import { type DeclaredGpu, isEnabled } from '../../operator/placing/declared-gpus.ts'
import type { NodeBook } from '../../operator/placing/node-book.ts'
import { type NodeGpus, nodeGpus } from '../../operator/placing/node-gpus.ts'
import { reportedStatus } from '../../operator/placing/node-status.ts'
import { ObservedBindings, observedStage } from '../../operator/placing/observed.ts'
import type { Bindings } from '../../operator/placing/pod-bindings.ts'
import { PodDevice } from '../../operator/placing/pod-device.ts'
import { marksOf } from '../../operator/placing/swap-marks.ts'
import { byCreation, gpusOf, podText, type PodStage, stageOf } from '../../operator/placing/pod-task.ts'
import { withoutClaim } from '../../operator/placing/claims.ts'
import { errorText } from '../../protocol/error-text.ts'
import { nodeIdFromName } from '../../protocol/node-id.ts'
import type { AgentAnswer, SwapMark } from '../../protocol/agent-messages.ts'
import type { DurationMs, Mib } from '../../protocol/units.ts'
import { deferredBus } from '../../simulator/network/deferred-bus.ts'
import { UNHINDERED } from '../../simulator/network/passage.ts'
import { SimBus } from '../../simulator/network/sim-bus.ts'
import { NodeSettings } from './node-settings.ts'
import { GpuNodes } from './gpu-nodes.ts'
import { agentsHeard } from './heard-agents.ts'
import { ObjectFaults } from './object-faults.ts'
import { LateAgents } from './late-agents.ts'
import { NODE_KIND } from './node-records.ts'
import { podBindings, type TermRecording, wholeSeconds } from './placement-parts.ts'
import type { Host, OwnClock, PlacementOptions } from './placement-parts.ts'
import { BY, deletedPod, PodQueue } from './pod-queue.ts'
import { termController } from './term-controller.ts'
import { whyPodWaits } from './why-pod-waits.ts'

const NODES_WITHIN_MS: DurationMs = 50

export class Placement {
  readonly #options: PlacementOptions
  readonly #clock: OwnClock
  readonly #bus: SimBus
  readonly #gpuNodes: GpuNodes
  readonly #lateAgents: LateAgents
  readonly #hosts = new Map<string, Host>()
  readonly #queue: PodQueue
  readonly bindings: Bindings
  readonly faults: ObjectFaults
  readonly settings: NodeSettings
  readonly controller: Controller
  readonly #recording: TermRecording | null
  #isStopped = false
  /** A node has changed, or a pod has ended, since pods were tried again. */
  #hasChanged = false
  #areNodesDue = false

  private constructor(options: PlacementOptions, clock: OwnClock) {
    const { objects, helmPercent, probeSeconds, random } = options
    this.#options = options
    this.#clock = clock
    const links = { passage: () => UNHINDERED, isCut: () => false }
    this.#bus = new SimBus({ clock, mode: 'wire', links })
    this.settings = new NodeSettings(objects, helmPercent, probeSeconds)
    this.#lateAgents = new LateAgents(clock, options.onContradiction)
    this.faults = new ObjectFaults(options.onNote)
    this.#gpuNodes = new GpuNodes({
      ...{ ...options, clock, faults: this.faults, bindings: () => this.bindings },
      report: (name) => this.report(name),
      isBoundHere: (podUid, nodeName) => this.#hosts.get(nodeName)?.device.isBound(podUid) ?? false,
    })
    // Another term of this operator may follow, and bindings of this one may still be in progress.
    const own = { ...options, leads: () => !this.#isStopped && options.leads() }
    this.bindings = options.observes ? new ObservedBindings() : podBindings(own, clock, this)
    const nodes = [...this.#declared()].map(([name, gpus]) => {
      const agent = this.#link(name)
      const limits = this.settings.limitsOf(name)
      return { name, gpus, limits, hostSwapMib: agent.hostSwapMib ?? 0, marks: agent.marks() }
    })
    this.#recording = options.record?.() ?? null
    this.controller = termController({
      inputTap: this.#recording?.tap ?? null,
      ...{ clock, random, nodes, config: this.settings.config() },
      bus: deferredBus(this.#bus.endpoint(null), clock),
      onFault: (fault) => options.onContradiction(errorText(fault)),
    })
    this.#queue = new PodQueue({ objects, controller: this.controller, onNote: options.onNote })
  }

  get observes(): boolean {
    return this.#options.observes
  }

  /** Rejects when the API server does not answer. */
  static async start(options: PlacementOptions): Promise<Placement> {
    const clock = options.newClock()
    await agentsHeard(options, clock)
    const placement = new Placement(options, clock)
    try {
      await placement.#start()
      return placement
    } catch (error) {
      await placement.stop()
      throw error
    }
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    this.bindings.close()
    for (const { core } of this.#hosts.values()) core.stop()
    await this.controller.stop()
    await this.#recording?.close()
    this.#clock.stop()
  }

  get clock(): Clock {
    return this.#clock
  }

  stageOf(pod: Pod): PodStage {
    return this.#options.observes ? observedStage(pod) : stageOf(pod)
  }

  book(nodeName: string): NodeBook {
    return this.#gpuNodes.book(nodeName)
  }

  whyWaiting(uid: string): string {
    const task = this.controller.views.openTask(uid)
    if (task === undefined) return 'Headroom does not know the pod yet.'
    const explanation = this.controller.views.explain(task)
    if (explanation === null) return 'Its VRAM is reserved.'
    const nodes = this.#options.objects.nodes().filter(({ metadata }) => isEnabled(metadata)).length
    const hasAgents = [...this.#hosts.values()].some(({ hostSwapMib }) => hostSwapMib > 0)
    const areSwapped = this.#options.observes || hasAgents
    return whyPodWaits(explanation, { spec: task.spec, nodes, areSwapped })
  }

  isOut(nodeName: string, podUid: string): boolean {
    return this.#hosts.get(nodeName)?.device.isOut(podUid) ?? false
  }

  /** Null: the agent does not report, so that it is not known. */
  residencyOf(nodeName: string, podUid: string): 'in' | 'out' | null {
    if (!this.#options.agents.of(nodeName).isHeard) return null
    return this.isOut(nodeName, podUid) ? 'out' : 'in'
  }

  /** Null: nothing is known about the node yet. */
  agentAnswer(nodeName: string): AgentAnswer | null {
    return this.#hosts.get(nodeName)?.device.answer() ?? null
  }

  // ---- changes ----

  podChanged(pod: Pod, isDeleted: boolean): void {
    if (this.#isStopped) return
    const { uid = '' } = pod.metadata
    const stage = isDeleted ? 'over' : this.stageOf(pod)
    if (stage === 'over') {
      this.#hasChanged = true
      this.bindings.forget(uid)
    }
    this.bindings.podChanged(uid)
    if (stage === 'waiting') this.#queue.take(pod)
    else if (stage === 'over') this.#end(pod, isDeleted)
    else if (stage === 'bound') this.#boundChanged(pod, this.controller.views.openTask(uid))
  }

  #boundChanged(pod: Pod, task: Task | undefined): void {
    if (task === undefined) return
    const isHere = this.#hostOf(pod) !== undefined
    if (!isHere && this.#hosts.has(pod.spec.nodeName ?? ''))
      this.#options.onContradiction(`pod ${podText(pod)} was bound by another operator`)
    // With a grace: a pod that is swapped out returns, so that it gets its SIGTERM. Before its node has
    // reported the pod, its task would end at once.
    else if (isHere && pod.metadata.deletionTimestamp !== undefined && task.placement !== null)
      this.controller.commands.cancelTask(task.spec.id, BY, () => {})
  }

  /** Labels have changed that these pods get their class or group from. */
  labelsChanged(isConcerned: (pod: Pod) => boolean): void {
    if (this.#isStopped) return
    for (const pod of this.#options.objects.pods()) {
      const stage = isConcerned(pod) ? this.stageOf(pod) : 'over'
      const isKnown = this.controller.views.openTask(pod.metadata.uid ?? '') !== undefined
      if (stage === 'waiting' || (stage === 'bound' && isKnown)) this.#queue.take(pod)
    }
  }

  /** Many nodes change at once when a cluster starts or grows. */
  nodesChanged(): void {
    if (this.#isStopped || this.#areNodesDue) return
    this.#areNodesDue = true
    this.#clock.at(this.#clock.now() + NODES_WITHIN_MS, () => {
      this.#areNodesDue = false
      if (!this.#isStopped) this.#takeNodes()
    })
  }

  #takeNodes(): void {
    this.#hasChanged = true
    this.settle()
    for (const [name, gpus] of this.#declared()) {
      const host = this.#hosts.get(name)
      // The node was away for a moment: what its agent reports reaches a new term only.
      if (host !== undefined && !this.observes && this.#link(name).device !== host.device)
        return this.#options.onContradiction(`node ${name} is back`)
      if (JSON.stringify(host?.gpus) === JSON.stringify(gpus)) continue
      if (host === undefined && !this.#gpuNodes.isSettled(name)) continue
      // A claim needs the GPUs in the status.
      void this.report(name).then(
        () => this.#declare(name, gpus),
        (error: unknown) => {
          this.#options.onNote(errorText(error))
          this.#gpuNodes.unsettle(name)
        },
      )
    }
    this.#queue.nodesChanged()
  }

  /** Brings percentages and reserves to the controller. */
  settle(): void {
    const hosts = [...this.#hosts.values()]
    this.settings.bringTo(this.controller, hosts)
    this.#lateAgents.take(hosts.filter((host) => this.#isLate(host)).map(({ name }) => name))
  }

  /** Pods that no node could start for other reasons than VRAM are tried again after a change, or anyway. */
  tryRefusedAgain(isAnyway: boolean): void {
    const { views, commands } = this.controller
    if (!this.#hasChanged && !isAnyway) return
    this.#hasChanged = false
    this.bindings.tryAgain()
    for (const task of views.openTasks())
      if (task.placement === null && task.trouble.refusals.length > 0)
        commands.releaseTask(task.spec.id, BY, () => {})
  }

  /** Pods whose end was not seen, for example because they were deleted while the term began. */
  dropGonePods(): void {
    for (const task of [...this.controller.views.openTasks()]) {
      const pod = this.#options.objects.pod(task.spec.id)
      const stage = pod === undefined ? 'over' : this.stageOf(pod)
      if (stage === 'over' || stage === 'foreign') this.#end(pod ?? deletedPod(task), pod === undefined)
      else if (pod?.metadata.deletionTimestamp !== undefined) this.podChanged(pod, false)
    }
  }

  async repairClaims(): Promise<void> {
    const settled = await this.#gpuNodes.repair((name) => this.#hosts.has(name))
    if (this.#isStopped || settled.length === 0) return
    for (const name of settled) this.controller.commands.setCordon(nodeIdFromName(name), false, BY, () => {})
    this.nodesChanged()
  }

  async report(nodeName: string): Promise<void> {
    const isNode = this.#options.objects.node(nodeName) !== null
    if (!isNode && (this.book(nodeName).status.claims ?? []).length === 0)
      return this.#gpuNodes.remove(nodeName)
    const found = this.#gpusOf(nodeName)
    const overcommit = this.settings.overcommitOf(nodeName)
    const agent = this.#options.agents.of(nodeName)
    const isOut = (uid: string): boolean => this.isOut(nodeName, uid)
    const now = wholeSeconds(this.#clock.now())
    await this.book(nodeName).change((status: GPUNodeStatus) =>
      reportedStatus(status, {
        ...{ ...found, isNode, overcommit, hasAgent: agent.isHeard, isOut, now },
        generation: this.book(nodeName).generation,
      }),
    )
  }

  // ---- inside ----

  async #start(): Promise<void> {
    const { objects } = this.#options
    await this.#gpuNodes.begin(new Set(this.#declared().keys()))
    await this.controller.start()
    const pods = [...objects.pods()].toSorted(byCreation)
    const bound = pods.filter((pod) => this.stageOf(pod) === 'bound')
    const boundTo = (name: string): readonly Pod[] => bound.filter(({ spec }) => spec.nodeName === name)
    // Their nodes report them, and the controller takes them up, before anything is placed.
    for (const pod of pods) if (this.stageOf(pod) === 'waiting' || this.#isKnown(pod)) this.#queue.take(pod)
    const { views, commands } = this.controller
    for (const [name, gpus] of this.#declared()) {
      const id = nodeIdFromName(name)
      const isSettled = this.#gpuNodes.isSettled(name)
      // One that has appeared meanwhile is taken once it is settled.
      if (!isSettled && views.node(id) === undefined) continue
      if (!isSettled) commands.setCordon(id, true, BY, () => {})
      this.#addHost(name, gpus, boundTo(name))
    }
  }

  /** A bound pod of a node whose GPUs are declared. */
  #isKnown(pod: Pod): boolean {
    if (this.stageOf(pod) !== 'bound') return false
    const { gpus } = this.#gpusOf(pod.spec.nodeName ?? '')
    return gpusOf(pod).every((uuid) => gpus.some((gpu) => gpu.uuid === uuid))
  }

  #end(pod: Pod, isDeleted: boolean): void {
    const { uid = '', deletionTimestamp } = pod.metadata
    const { commands, views } = this.controller
    const group = this.#queue.leave(uid)
    const task = views.openTask(uid)
    const host = this.#hostOf(pod)
    if (host !== undefined && !this.bindings.isOnItsWay(uid)) {
      const exitCode = pod.status?.phase === 'Succeeded' ? 0 : pod.status?.phase === 'Failed' ? 1 : null
      host.device.ended(uid, exitCode, isDeleted ? 'the pod was deleted' : null)
      void this.book(host.name)
        .change((status) => withoutClaim(status, uid))
        .catch((error: unknown) => this.#options.onNote(errorText(error)))
    } else if (task !== undefined) {
      this.bindings.abandon(uid, deletionTimestamp === undefined ? 'the pod has ended' : 'the pod is deleted')
      commands.cancelTask(uid, BY, () => {})
    }
    if (group !== null) commands.deleteGroup(group, true, BY, () => {})
  }

  /** Its node; else the one where it is launched now. */
  #hostOf({ metadata: { uid = '' }, spec: { nodeName = '' } }: Pod): Host | undefined {
    const own = this.#hosts.get(nodeName)
    if (own?.device.has(uid) === true) return own
    return [...this.#hosts.values()].find(({ device }) => device.has(uid))
  }

  #declare(name: string, gpus: readonly DeclaredGpu[]): void {
    if (this.#isStopped) return
    const host = this.#hosts.get(name)
    // A node that is back, or has a GPU again: only a new term takes up what runs there.
    for (const pod of this.#options.objects.pods())
      if (pod.spec.nodeName === name && this.#isKnown(pod) && !host?.device.has(pod.metadata.uid ?? ''))
        return this.#options.onContradiction(`node ${name} is back with pod ${podText(pod)}`)
    if (host === undefined) return this.#addHost(name, gpus, [])
    if (host.gpus.some(({ uuid }, place) => gpus[place]?.uuid !== uuid))
      return this.#options.onContradiction(`the GPUs of node ${name} have changed`)
    host.gpus = gpus
    host.device.declare(gpus)
    host.core.heartbeatNow()
  }

  #addHost(name: string, gpus: readonly DeclaredGpu[], bound: readonly Pod[]): void {
    const { objects, onNote, onContradiction } = this.#options
    const hostSwapMib = this.#swapMib(name)
    const id = nodeIdFromName(name)
    const marks = (podUid: string): readonly SwapMark[] =>
      marksOf(podUid, gpus, this.controller.cluster.nodes.get(id)?.gpus ?? [])
    const device = new PodDevice({
      ...{ nodeName: name, gpus, bindings: this.bindings, pod: objects.pod, bound },
      ...{ agent: this.#link(name), onContradiction, marks, foreignMib: this.#gpusOf(name).foreignMib },
      isLate: () => hostSwapMib === 0 && this.#isLate({ name, hostSwapMib }),
      onUnknownGpus: (pod) => onNote(`pod ${podText(pod)} has GPUs that node ${name} does not declare`),
    })
    const core = new ServerCore({
      ...{ nodeId: id, name, address: name, hostSwapMib, ...NODE_KIND, deviceKind: NODE_KIND.device },
      ...{ clock: this.#clock, random: this.#options.random.stream(`server/${name}`) },
      bus: deferredBus(this.#bus.endpoint(name), this.#clock),
      ...{ device, storage: createMemoryStorage(), areHeartbeatsElided: false },
      onRefused: (reason) => onNote(`node ${name} was refused: ${reason}`),
    })
    this.#hosts.set(name, { name, id, device, core, hostSwapMib, gpus })
    core.start()
  }

  #declared(): ReadonlyMap<string, readonly DeclaredGpu[]> {
    const found = [...this.#options.objects.nodes()].map((node) => {
      const { name = '' } = node.metadata
      return [name, this.#gpusOf(name).gpus] as const
    })
    return new Map(found.filter(([, gpus]) => gpus.length > 0))
  }

  #gpusOf(name: string): NodeGpus {
    const { objects, agents } = this.#options
    return nodeGpus(objects.node(name), agents.of(name), objects.gpuNode(name))
  }

  /** While it observes, what the agent reports does not count, and no order reaches it. */
  #link(nodeName: string): AgentLink {
    const { observes, agents } = this.#options
    return observes ? new AgentLink(this.#clock) : agents.of(nodeName)
  }

  #swapMib(nodeName: string): Mib {
    return this.#link(nodeName).hostSwapMib ?? 0
  }

  #isLate({ name, hostSwapMib }: Pick<Host, 'name' | 'hostSwapMib'>): boolean {
    return this.#swapMib(name) !== hostSwapMib
  }
}
