/**
 * One term of the operator: the controller of `headroom serve` over the pods and nodes of a cluster. Its
 * facts are objects of Kubernetes: a new term begins with an empty store in recovery, and learns from every
 * node which pods it runs.
 */
import { createMemoryStore, EMPTY_STATE } from '../../controller/adapters/memory-store.ts'
import { createSystemClock, type SystemClock } from '../../controller/adapters/system-clock.ts'
import { createSystemRandom } from '../../controller/adapters/system-random.ts'
import { type Controller, createController } from '../../controller/controller.ts'
import { byCodeUnits } from '../../controller/structures/order.ts'
import type { NodeRecord } from '../../controller/ports/store.ts'
import { createMemoryStorage } from '../../gpu-server/core/storage.ts'
import { ServerCore } from '../../gpu-server/core/server-core.ts'
import type { Node, Pod } from '../../operator/contract/kubernetes.ts'
import { faultText } from '../../operator/contract/field-fault.ts'
import type { Claim, GPUNodeStatus } from '../../operator/contract/policies.ts'
import { declaredGpus, type DeclaredGpu } from '../../operator/placing/declared-gpus.ts'
import { NodeBook } from '../../operator/placing/node-book.ts'
import { NodeSets } from '../../operator/placing/node-sets.ts'
import { reportedStatus } from '../../operator/placing/node-status.ts'
import { keyOf, PodBindings } from '../../operator/placing/pod-bindings.ts'
import { PodDevice } from '../../operator/placing/pod-device.ts'
import { byCreation, claimOfPod, gpusOf, stageOf, taskOfPod } from '../../operator/placing/pod-task.ts'
import { withoutClaim } from '../../operator/placing/claims.ts'
import type { KubeApi } from '../../operator/ports/kube-api.ts'
import { errorText } from '../../protocol/error-text.ts'
import { nodeIdFromName } from '../../protocol/node-id.ts'
import type { DurationMs, Mib, Percent } from '../../protocol/units.ts'
import { deferredBus } from '../../simulator/network/deferred-bus.ts'
import { UNHINDERED } from '../../simulator/network/passage.ts'
import { SimBus } from '../../simulator/network/sim-bus.ts'
import { NodeSettings } from './node-settings.ts'
import type { ClusterObjects } from './cluster-objects.ts'

export interface PlacementOptions {
  readonly api: KubeApi
  readonly objects: ClusterObjects
  readonly helmPercent: Percent
  readonly leads: () => boolean
  readonly onNote: (line: string) => void
  /** What is stored contradicts what this term has decided: a new term has to begin. */
  readonly onContradiction: (why: string) => void
  readonly bindWithinMs?: DurationMs
}

interface Host {
  readonly name: string
  readonly id: string
  readonly device: PodDevice
  readonly core: ServerCore
  gpus: readonly DeclaredGpu[]
}

const BY = 'operator'

export class Placement {
  readonly #options: PlacementOptions
  readonly #clock: SystemClock = createSystemClock()
  readonly #bus: SimBus
  readonly #random = createSystemRandom()
  readonly #books = new Map<string, NodeBook>()
  readonly #hosts = new Map<string, Host>()
  readonly #sets = new NodeSets()
  readonly bindings: PodBindings
  readonly settings: NodeSettings
  readonly controller: Controller
  #isStopped = false
  /** A node has changed, or a pod has ended, since pods were tried again. */
  #hasChanged = false

  private constructor(options: PlacementOptions) {
    const { api, objects, leads, helmPercent } = options
    this.#options = options
    const links = { passage: () => UNHINDERED, isCut: () => false }
    this.#bus = new SimBus({ clock: this.#clock, mode: 'wire', links })
    this.settings = new NodeSettings(objects, helmPercent)
    this.bindings = new PodBindings({
      ...{ api, clock: this.#clock, pod: objects.pod, leads },
      book: (nodeName) => this.book(nodeName),
      limits: (nodeName) => this.settings.limitsOf(nodeName),
      whyWaiting: (uid) => this.whyWaiting(uid),
      onFault: (error) => options.onNote(errorText(error)),
      ...(options.bindWithinMs === undefined ? {} : { bindWithinMs: options.bindWithinMs }),
    })
    const nodes = this.#declared()
    this.controller = createController(
      {
        clock: this.#clock,
        random: this.#random,
        bus: deferredBus(this.#bus.endpoint(null), this.#clock),
        store: createMemoryStore({
          initial: { ...EMPTY_STATE, ...this.#inRecovery(nodes) },
          retainFinished: false,
        }),
      },
      {
        initialConfig: { default_vram_overcommit_percent: 0, ...this.settings.config() },
        onFault: (fault) => options.onContradiction(errorText(fault)),
      },
    )
  }

  /** Rejects when the API server does not answer. */
  static async start(options: PlacementOptions): Promise<Placement> {
    const placement = new Placement(options)
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
    this.#clock.stop()
  }

  get clock(): SystemClock {
    return this.#clock
  }

  get hostNames(): Iterable<string> {
    return this.#hosts.keys()
  }

  book(nodeName: string): NodeBook {
    const known = this.#books.get(nodeName)
    if (known !== undefined) return known
    const book = new NodeBook(this.#options.api, nodeName, this.#options.objects.gpuNode(nodeName))
    this.#books.set(nodeName, book)
    return book
  }

  whyWaiting(uid: string): string {
    const task = this.controller.views.openTask(uid)
    if (task === undefined) return 'Headroom does not know the pod yet.'
    return this.controller.views.explain(task)?.sentence ?? 'Its VRAM is reserved.'
  }

  // ---- changes ----

  podChanged(pod: Pod, isDeleted: boolean): void {
    if (this.#isStopped) return
    const { uid = '' } = pod.metadata
    const stage = isDeleted ? 'over' : stageOf(pod)
    if (stage === 'over') {
      this.#hasChanged = true
      this.bindings.forget(uid)
    }
    this.bindings.podChanged(uid)
    if (stage === 'waiting') this.#submit(pod)
    else if (stage === 'over') this.#end(pod, isDeleted)
    else if (stage === 'bound' && ![...this.#hosts.values()].some(({ device }) => device.has(uid)))
      if (this.#hosts.has(pod.spec.nodeName ?? '') && this.controller.views.openTask(uid) !== undefined)
        this.#options.onContradiction(`pod ${keyText(pod)} was bound by another operator`)
  }

  nodesChanged(): void {
    if (this.#isStopped) return
    this.#hasChanged = true
    for (const [name, gpus] of this.#declared()) {
      const host = this.#hosts.get(name)
      if (JSON.stringify(host?.gpus) === JSON.stringify(gpus)) continue
      // A claim needs the GPUs in the status.
      void this.report(name, wholeSeconds(new Date())).then(
        () => this.#declare(name, gpus),
        (error: unknown) => this.#options.onNote(errorText(error)),
      )
    }
    for (const set of this.#sets.update(this.#options.objects.nodes())) this.#putGroup(set)
  }

  /** Brings percentages and reserves to the controller; a node takes them once it has joined. */
  settle(): void {
    const { views, commands } = this.controller
    for (const { id, name } of this.#hosts.values()) {
      const { percent: overcommitPercent, reserveMib } = this.settings.limitsOf(name)
      const node = views.node(id)
      if (node === undefined) continue
      if (node.overcommitOverride !== overcommitPercent || node.reserveOverrideMib !== reserveMib)
        commands.putNodeConfig(id, { overcommitPercent, reserveMib }, BY, () => {})
    }
    const config = this.settings.config()
    if (config.idle_swap_out_seconds !== views.config().fields.idle_swap_out_seconds)
      commands.putConfig(config, BY, () => {})
  }

  /** Pods that no node could start for other reasons than VRAM are tried again after a change. */
  tryRefusedAgain(): void {
    const { views, commands } = this.controller
    if (!this.#hasChanged) return
    this.#hasChanged = false
    for (const task of views.openTasks())
      if (task.placement === null && task.trouble.refusals.length > 0)
        commands.releaseTask(task.spec.id, BY, () => {})
  }

  /** Pods whose end was not seen, for example because they were deleted while the term began. */
  dropGonePods(): void {
    for (const task of [...this.controller.views.openTasks()]) {
      const { id, name } = task.spec
      const pod = this.#options.objects.pod(id)
      const [namespace = '', podName = ''] = name.split('/')
      const gone: Pod = { metadata: { uid: id, namespace, name: podName }, spec: { containers: [] } }
      if (pod === undefined) this.#end(gone, true)
      else if (stageOf(pod) === 'over' || stageOf(pod) === 'foreign') this.#end(pod, false)
    }
  }

  /** Every bound pod has its claim, even if its GPUNode was deleted or written by hand. */
  async restoreClaims(): Promise<void> {
    for (const pod of this.#options.objects.pods()) {
      const claim = stageOf(pod) === 'bound' ? claimOfPod(pod) : null
      const { nodeName = '' } = pod.spec
      if (claim === null || !this.#hosts.has(nodeName)) continue
      const { claims = [] } = this.book(nodeName).status
      if (claims.some(({ podUid }) => podUid === claim.podUid)) continue
      await this.book(nodeName).change((status) => withAddedClaim(status, claim))
    }
  }

  /** Gives up claims of pods that ended, or that an earlier operator did not bind. */
  async dropStaleClaims(): Promise<void> {
    for (const nodeName of new Set([...this.#books.keys(), ...this.#options.objects.gpuNodeNames()])) {
      const book = this.book(nodeName)
      for (const claim of book.status.claims ?? []) {
        const pod = this.#options.objects.pod(claim.podUid)
        if (pod === undefined || stageOf(pod) === 'over')
          await book.change((status) => withoutClaim(status, claim.podUid))
        else if (pod.spec.nodeName === undefined && !this.bindings.isOnItsWay(claim.podUid)) {
          const released = await this.bindings.release(claim.podUid, keyOf(claim), book)
          // An earlier operator has bound it meanwhile.
          if (released?.spec.nodeName === nodeName)
            await book.change((status) => withAddedClaim(status, claim))
        }
      }
    }
  }

  report(nodeName: string, now: string): Promise<string | null> {
    const { gpus, fault } = this.#gpusOf(this.#options.objects.node(nodeName))
    const overcommit = this.settings.overcommitOf(nodeName)
    return this.book(nodeName).change((status: GPUNodeStatus) =>
      reportedStatus(status, { gpus, fault, overcommit, now }),
    )
  }

  // ---- inside ----

  async #start(): Promise<void> {
    const { objects } = this.#options
    await this.dropStaleClaims()
    for (const [name] of this.#declared()) await this.report(name, wholeSeconds(new Date()))
    await this.controller.start()
    const pods = [...objects.pods()].toSorted(byCreation)
    const bound = pods.filter((pod) => stageOf(pod) === 'bound')
    // Their nodes report them, and the controller takes them up, before anything is placed.
    for (const pod of pods) if (stageOf(pod) === 'waiting' || this.#isKnown(pod)) this.#submit(pod)
    for (const [name, gpus] of this.#declared())
      this.#addHost(
        name,
        gpus,
        bound.filter(({ spec }) => spec.nodeName === name),
      )
  }

  /** A bound pod of a node whose GPUs are declared. */
  #isKnown(pod: Pod): boolean {
    if (stageOf(pod) !== 'bound') return false
    const { gpus } = this.#gpusOf(this.#options.objects.node(pod.spec.nodeName ?? ''))
    return gpusOf(pod).every((uuid) => gpus.some((gpu) => gpu.uuid === uuid))
  }

  #submit(pod: Pod): void {
    const { uid = '' } = pod.metadata
    const { commands, views } = this.controller
    if (views.openTask(uid) !== undefined) return
    const { set, isNew } = this.#sets.join(pod, this.#options.objects.nodes())
    if (isNew) this.#putGroup(set)
    const task = taskOfPod(pod, set.id)
    if (!task.ok)
      return this.#options.onNote(`pod ${keyText(pod)} is ignored: ${task.faults.map(faultText).join('; ')}`)
    commands.submitTask(task.value, (answer) => {
      if (!answer.ok)
        this.#options.onNote(`pod ${keyText(pod)} is ignored: ${JSON.stringify(answer.refusal)}`)
    })
  }

  #end(pod: Pod, isDeleted: boolean): void {
    const { uid = '', deletionTimestamp } = pod.metadata
    const { commands, views } = this.controller
    const group = this.#sets.leave(uid)
    const task = views.openTask(uid)
    const host = [...this.#hosts.values()].find(({ device }) => device.has(uid))
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

  #putGroup({ id, nodeNames }: { readonly id: string; readonly nodeNames: readonly string[] }): void {
    const nodeIds = nodeNames.map(nodeIdFromName).toSorted(byCodeUnits)
    this.controller.commands.putGroup({ id, description: '', nodeIds }, false, BY, () => {})
  }

  #declare(name: string, gpus: readonly DeclaredGpu[]): void {
    if (this.#isStopped) return
    const host = this.#hosts.get(name)
    if (host === undefined) return this.#addHost(name, gpus, [])
    host.gpus = gpus
    host.device.declare(gpus)
    host.core.heartbeatNow()
  }

  #addHost(name: string, gpus: readonly DeclaredGpu[], bound: readonly Pod[]): void {
    const { objects, onNote } = this.#options
    const device = new PodDevice({
      ...{ nodeName: name, gpus, bindings: this.bindings, pod: objects.pod, bound },
      onUnknownGpus: (pod) => onNote(`pod ${keyText(pod)} has GPUs that node ${name} does not declare`),
    })
    const id = nodeIdFromName(name)
    const core = new ServerCore({
      ...{ nodeId: id, name, address: name, hostSwapMib: 0, signalsWanted: true, deviceKind: 'nvidia' },
      ...{ allowExec: true, clock: this.#clock, random: this.#random.stream(`server/${name}`) },
      bus: deferredBus(this.#bus.endpoint(name), this.#clock),
      ...{ device, storage: createMemoryStorage(), areHeartbeatsElided: false },
      onRefused: (reason) => onNote(`node ${name} was refused: ${reason}`),
    })
    this.#hosts.set(name, { name, id, device, core, gpus })
    core.start()
  }

  #declared(): ReadonlyMap<string, readonly DeclaredGpu[]> {
    const found = [...this.#options.objects.nodes()].map((node) => {
      return [node.metadata.name ?? '', this.#gpusOf(node).gpus] as const
    })
    return new Map(found.filter(([, gpus]) => gpus.length > 0))
  }

  #gpusOf(node: Node | null): { readonly gpus: readonly DeclaredGpu[]; readonly fault: string | null } {
    if (node === null) return { gpus: [], fault: null }
    const declared = declaredGpus(node.metadata)
    return declared.ok
      ? { gpus: declared.value, fault: null }
      : { gpus: [], fault: declared.faults.map(faultText).join('; ') }
  }

  #inRecovery(nodes: ReadonlyMap<string, readonly DeclaredGpu[]>) {
    const now = this.#clock.now()
    const records = [...nodes].map(([name, gpus], ordinal): NodeRecord => {
      const { percent, reserveMib } = this.settings.limitsOf(name)
      return {
        ...{ id: nodeIdFromName(name), name, address: name, ordinal, isCordoned: false, drain: null },
        ...{ overcommitOverride: percent, reserveOverrideMib: reserveMib, device: 'nvidia' },
        ...{ signalsWanted: true, allowExec: true, hostSwapMib: 0, registeredAt: now, lastSeenAt: now },
        ...{ bootCounter: 0, bootRandom: '', leaseMs: 0, wasReset: false },
        gpus: gpus.map(({ model, vramMib: physicalMib }, index) => {
          return { index, model, physicalMib, foreignMib: 0 as Mib, roundNonP0: 0, roundP0: 0 }
        }),
      }
    })
    return { nodes: records, recovery: { reason: 'restored' as const, sinceWallMs: now } }
  }
}

function withAddedClaim(status: GPUNodeStatus, claim: Claim): GPUNodeStatus {
  const { claims } = withoutClaim(status, claim.podUid)
  return { ...status, claims: [...(claims ?? []), claim] }
}

/** ISO 8601, as the times of Kubernetes. */
export function wholeSeconds(date: Date): string {
  return date.toISOString().replace(/\.\d+Z$/, 'Z')
}

function keyText({ metadata: { namespace = '', name = '' } }: Pod): string {
  return `${namespace}/${name}`
}
