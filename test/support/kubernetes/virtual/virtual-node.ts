/** A node in virtual time: its kubelet runs bound pods, and its GPUs hold their bytes. This is the truth. */
import type { Pod } from '../../../../operator/contract/kubernetes.ts'
import { NODE_GPUS, NODE_LABELS } from '../../../../operator/contract/names.ts'
import { podRequestOf } from '../../../../operator/contract/pod-request.ts'
import type { MemoryApi } from '../../../../operator/memory-api/memory-api.ts'
import { gpusOf, stageOf } from '../../../../operator/placing/pod-task.ts'
import { KubeError, NODES, PODS } from '../../../../operator/ports/kube-api.ts'
import type { RandomStream } from '../../../../controller/ports/random.ts'
import type { DurationMs, Instant, Mib } from '../../../../protocol/units.ts'
import type { VirtualClock } from '../../../../simulator/kernel/virtual-clock.ts'
import { type KeptByAgent, type SendReport, VirtualAgent } from './virtual-agent.ts'

export interface VirtualGpu {
  readonly uuid: string
  readonly mib: Mib
}

/** A pod that runs. */
export interface Container {
  readonly uid: string
  readonly name: string
  readonly gpus: readonly string[]
  readonly mib: Mib
  readonly isSwappable: boolean
  /** Requests reach it while it is out. */
  readonly isWakeable: boolean
  residency: 'in' | 'out' | 'moving'
  isBusy: boolean
  /** End of its last use. */
  usedAt: Instant
  /** Times without use, each up to the next use. */
  readonly idles: { readonly until: Instant; readonly ms: DurationMs }[]
}

export interface NodeParts {
  readonly name: string
  readonly gpus: readonly VirtualGpu[]
  readonly api: MemoryApi
  readonly clock: VirtualClock
  readonly random: RandomStream
  readonly send: SendReport
  readonly pods: () => Iterable<Pod>
  /** Bytes on its GPUs have changed. */
  readonly onBytes: (node: VirtualNode) => void
  readonly onSwapOut: (container: Container) => void
}

const FINALIZER = 'test.example/kubelet'
const LOOK_EVERY_MS = 500
const GRACE_MS = 30_000

export class VirtualNode {
  readonly containers = new Map<string, Container>()
  readonly #parts: NodeParts
  readonly #kept: KeptByAgent = { out: new Set(), marks: new Map(), rounds: [] }
  readonly #known = new Set<string>()
  #agent: VirtualAgent | null = null
  /** Grows when the machine is lost: what an earlier one began does not end. */
  #boot = 0
  #isUp = false

  constructor(parts: NodeParts) {
    this.#parts = parts
  }

  get name(): string {
    return this.#parts.name
  }

  get gpus(): readonly VirtualGpu[] {
    return this.#parts.gpus
  }

  get isUp(): boolean {
    return this.#isUp
  }

  usedMib(uuid: string): Mib {
    return [...this.containers.values()]
      .filter(({ gpus, residency }) => residency !== 'out' && gpus.includes(uuid))
      .reduce((sum, { mib }) => sum + mib, 0)
  }

  hasRoomFor({ gpus, mib }: Container): boolean {
    return this.gpus.every(({ uuid, mib: size }) => !gpus.includes(uuid) || this.usedMib(uuid) + mib <= size)
  }

  // ---- the machine ----

  async join(): Promise<void> {
    const { name, gpus, api, pods } = this.#parts
    this.#isUp = true
    const list = gpus.map(({ uuid, mib }) => ({ uuid, model: 'X', vram_mib: mib }))
    const labels = { [NODE_LABELS.enabled]: 'true' }
    const metadata = { name, labels, annotations: { [NODE_GPUS]: JSON.stringify(list) } }
    await api.create(NODES, { metadata, spec: {} })
    this.startAgent()
    for (const pod of pods()) this.podChanged(pod, false)
  }

  /** The machine is gone, with its processes and its disk; its object is deleted. */
  async lose(): Promise<void> {
    this.#isUp = false
    this.#boot += 1
    this.killAgent()
    this.containers.clear()
    this.#known.clear()
    this.#kept.out.clear()
    this.#kept.marks.clear()
    this.#kept.rounds = []
    await this.#parts.api.delete(NODES, { name: this.name })
  }

  startAgent(): void {
    if (!this.#isUp || this.#agent !== null) return
    const { clock, random, send } = this.#parts
    this.#agent = new VirtualAgent(this, this.#kept, clock, random, send)
  }

  /** A copy in progress has ended, or is undone. */
  killAgent(): void {
    this.#agent?.process.kill()
    this.#agent = null
    for (const container of this.containers.values())
      if (container.residency === 'moving')
        this.setResidency(container, this.#parts.random() < 0.5 ? 'in' : 'out')
  }

  // ---- for the agent ----

  willSwapOut(container: Container): void {
    this.#parts.onSwapOut(container)
  }

  setResidency(container: Container, residency: Container['residency']): void {
    const wasIn = container.residency === 'in'
    const now = this.#parts.clock.now()
    container.residency = residency
    // It goes on where it was stopped.
    if (residency === 'in' && container.isBusy) {
      container.idles.push({ until: now, ms: now - container.usedAt })
      container.usedAt = now
    } else if (wasIn && container.isBusy) container.usedAt = now
    this.#parts.onBytes(this)
  }

  setBusy(container: Container, isBusy: boolean): void {
    const now = this.#parts.clock.now()
    if (container.isBusy === isBusy) return
    container.isBusy = isBusy
    // A stopped process uses nothing.
    if (container.residency !== 'in') return
    if (isBusy) container.idles.push({ until: now, ms: now - container.usedAt })
    container.usedAt = now
  }

  // ---- the kubelet ----

  podChanged(pod: Pod, isDeleted: boolean): void {
    const { uid = '', deletionTimestamp } = pod.metadata
    if (!this.#isUp || pod.spec.nodeName !== this.name) return
    if (isDeleted) {
      this.#known.delete(uid)
      if (this.containers.delete(uid)) this.#parts.onBytes(this)
    } else if (stageOf(pod) !== 'over') {
      if (!this.#known.has(uid)) {
        this.#known.add(uid)
        this.#after(300 + this.#below(3_000), () => this.#start(uid))
      }
      if (deletionTimestamp !== undefined && !this.#known.has(`${uid}/ends`)) {
        this.#known.add(`${uid}/ends`)
        this.#terminate(pod, this.#parts.clock.now() + GRACE_MS)
      }
    } else if (deletionTimestamp !== undefined) void this.#release(pod)
  }

  /** A pod that is out ends once it is in VRAM. */
  finish(container: Container): void {
    if (this.containers.get(container.uid) !== container) return
    if (container.residency !== 'in') return this.#after(LOOK_EVERY_MS, () => this.finish(container))
    this.#drop(container.uid)
    const phase = this.#below(4) === 0 ? 'Failed' : 'Succeeded'
    this.#after(this.#below(1_000), () => void this.#setStatus(container.name, container.uid, { phase }))
  }

  #start(uid: string): void {
    const { clock, pods } = this.#parts
    const pod = [...pods()].find(({ metadata }) => metadata.uid === uid)
    if (pod === undefined || pod.metadata.deletionTimestamp !== undefined || stageOf(pod) === 'over') return
    const request = podRequestOf(pod)
    if (!request.ok) throw new Error(`pod ${uid} was bound with faults`)
    const now = clock.now()
    this.containers.set(uid, {
      ...{ uid, name: pod.metadata.name ?? '', gpus: gpusOf(pod), mib: request.value.vramMib },
      ...{ isSwappable: request.value.isSwappable, isWakeable: request.value.wakesOnRequest === true },
      ...{ residency: 'in', isBusy: true, usedAt: now, idles: [] },
    })
    this.#parts.onBytes(this)
    void this.#setStatus(pod.metadata.name ?? '', uid, { phase: 'Running' })
  }

  #terminate(pod: Pod, until: Instant): void {
    const { uid = '' } = pod.metadata
    const container = this.containers.get(uid)
    // A stopped process does not get its SIGTERM.
    const isOver = container === undefined || container.residency === 'in' || this.#parts.clock.now() >= until
    if (!isOver) return this.#after(LOOK_EVERY_MS, () => this.#terminate(pod, until))
    this.#after(200 + this.#below(2_000), () => {
      this.#drop(uid)
      void this.#release(pod)
    })
  }

  #drop(uid: string): void {
    if (this.containers.delete(uid)) this.#parts.onBytes(this)
  }

  async #release({ metadata: { name = '', namespace = '', uid } }: Pod): Promise<void> {
    const body = { metadata: { uid, finalizers: null } }
    await unlessGone(this.#parts.api.patch(PODS, { name, namespace }, { type: 'merge', body }))
  }

  async #setStatus(name: string, uid: string, status: object): Promise<void> {
    const body = { metadata: { uid }, status }
    const key = { namespace: 'default', name }
    await unlessGone(this.#parts.api.patch(PODS, key, { type: 'merge', body }, { subresource: 'status' }))
  }

  #after(ms: DurationMs, act: () => void): void {
    const boot = this.#boot
    const { clock } = this.#parts
    clock.at(clock.now() + ms, () => void (this.#boot === boot && act()))
  }

  #below(n: number): number {
    return Math.floor(this.#parts.random() * n)
  }
}

export const KUBELET_FINALIZER = FINALIZER

/** The pod may have been deleted meanwhile. */
export async function unlessGone(asked: Promise<unknown>): Promise<void> {
  try {
    await asked
  } catch (error) {
    if (!(error instanceof KubeError)) throw error
  }
}
