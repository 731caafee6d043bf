/** A node in virtual time: its GPUs hold the bytes of pods and of processes of others. This is the truth. */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { RandomStream } from '../../../../controller/ports/random.ts'
import type { Pod } from '../../../../operator/contract/kubernetes.ts'
import { NODE_GPUS, NODE_LABELS } from '../../../../operator/contract/names.ts'
import type { MemoryApi } from '../../../../operator/memory-api/memory-api.ts'
import { NODES } from '../../../../operator/ports/kube-api.ts'
import type { DurationMs, Instant, Mib } from '../../../../protocol/units.ts'
import type { VirtualClock } from '../../../../simulator/kernel/virtual-clock.ts'
import { type SendReport, VirtualAgent } from './virtual-agent.ts'
import { unlessGone, VirtualKubelet } from './virtual-kubelet.ts'
import type { VirtualContainer, VirtualPod } from './virtual-pod.ts'

export interface VirtualGpu {
  readonly uuid: string
  readonly mib: Mib
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
  /** These containers are swapped out. */
  /** @param unseenMs how long no agent ran before this one, which relies on what the last one saw */
  readonly onSwapOut: (pod: VirtualPod, containers: readonly VirtualContainer[], unseenMs: DurationMs) => void
}

/** Memory of the host: no disk waits for the files of agents. */
const STATE_FOLDERS = '/dev/shm'
/** After that the operator knows that VRAM is missing, or that pods have started again. */
const UNKNOWN_MS = 120_000

export class VirtualNode {
  readonly pods = new Map<string, VirtualPod>()
  readonly kubelet: VirtualKubelet
  readonly #parts: NodeParts
  readonly #foreign = new Map<string, Mib>()
  readonly #folder = mkdtempSync(join(STATE_FOLDERS, 'headroom-node-'))
  #agent: VirtualAgent | null = null
  #isUp = false
  #startedAt: Instant = 0
  #disturbedAt: Instant = -Infinity
  #endedAt: Instant = -Infinity
  #unseenMs: DurationMs = 0

  constructor(parts: NodeParts) {
    this.#parts = parts
    this.kubelet = new VirtualKubelet(this, parts)
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

  /** By its own clock, which begins with each start of the machine. */
  now(): DurationMs {
    return this.#parts.clock.now() - this.#startedAt
  }

  // ---- VRAM ----

  foreignMib(uuid: string): Mib {
    return this.#foreign.get(uuid) ?? 0
  }

  usedMib(uuid: string): Mib {
    return this.podsOn(uuid).reduce((sum, pod) => sum + pod.usedMib, this.foreignMib(uuid))
  }

  podsOn(uuid: string): readonly VirtualPod[] {
    return [...this.pods.values()].filter(({ gpus }) => gpus.includes(uuid))
  }

  hasRoomFor({ gpus }: VirtualPod, mib: Mib): boolean {
    return this.gpus.every(({ uuid, mib: size }) => !gpus.includes(uuid) || this.usedMib(uuid) + mib <= size)
  }

  /** VRAM of processes that are no pods: what others want, as far as it is free. */
  setForeign({ uuid, mib }: VirtualGpu, wantedMib: Mib): void {
    const before = this.foreignMib(uuid)
    const after = Math.min(wantedMib, before + Math.max(0, mib - this.usedMib(uuid)))
    this.#foreign.set(uuid, after)
    if (after > before) this.disturb()
  }

  /** More pods may want VRAM than the operator can know. */
  get isDisturbed(): boolean {
    const isRecent = this.#parts.clock.now() - this.#disturbedAt < UNKNOWN_MS
    return isRecent || [...this.pods.values()].some(({ isWaiting }) => isWaiting)
  }

  disturb(): void {
    this.#disturbedAt = this.#parts.clock.now()
  }

  bytesChanged(): void {
    this.#parts.onBytes(this)
  }

  // ---- processes ----

  setResidency(pod: VirtualPod, containers: readonly VirtualContainer[], to: 'in' | 'out' | 'moving'): void {
    pod.setResidency(containers, to, this.#parts.clock.now())
    this.bytesChanged()
  }

  setBusy(pod: VirtualPod, isBusy: boolean): void {
    pod.setBusy(isBusy, this.#parts.clock.now())
    if (isBusy) this.#agent?.requests.requested(pod.uid)
  }

  willSwapOut(pod: VirtualPod, containers: readonly VirtualContainer[]): void {
    this.#parts.onSwapOut(pod, containers, this.#unseenMs)
  }

  /** One process ends; the kubelet starts it again. */
  crash(pod: VirtualPod, container: VirtualContainer): void {
    if (!container.isUp) return
    this.disturb()
    pod.end(container)
    this.bytesChanged()
    this.kubelet.restart(pod, container)
  }

  // ---- the machine ----

  async join(): Promise<void> {
    const { name, gpus, api } = this.#parts
    const list = gpus.map(({ uuid, mib }) => ({ uuid, model: 'X', vram_mib: mib }))
    const labels = { [NODE_LABELS.enabled]: 'true' }
    const metadata = { name, labels, annotations: { [NODE_GPUS]: JSON.stringify(list) } }
    await api.create(NODES, { metadata, spec: {} })
    this.turnOn()
    this.startAgent()
  }

  /** The machine is gone, with its processes and its disk; its object is deleted. */
  async lose(): Promise<void> {
    this.turnOff()
    this.pods.clear()
    rmSync(this.#folder, { recursive: true, force: true })
    await this.#parts.api.delete(NODES, { name: this.name })
  }

  /** Its processes are gone; its disk stays, and so does its object. */
  turnOff(): void {
    this.#isUp = false
    this.killAgent()
    this.kubelet.stop()
    this.#foreign.clear()
    for (const pod of this.pods.values()) for (const container of pod.containers) pod.end(container)
  }

  turnOn(): void {
    if (this.#isUp) return
    this.#isUp = true
    this.#startedAt = this.#disturbedAt = this.#parts.clock.now()
    mkdirSync(this.#folder, { recursive: true })
    this.kubelet.start()
  }

  /** Its label is missing for a while: it is no node of Headroom. */
  async setEnabled(isEnabled: boolean): Promise<void> {
    const body = { metadata: { labels: { [NODE_LABELS.enabled]: isEnabled ? 'true' : null } } }
    await unlessGone(this.#parts.api.patch(NODES, { name: this.name }, { type: 'merge', body }))
  }

  startAgent(): void {
    if (!this.#isUp || this.#agent !== null) return
    const { clock, random, send } = this.#parts
    // An agent knows what is foreign once it has watched for some seconds.
    if (this.gpus.some(({ uuid }) => this.foreignMib(uuid) > 0)) this.#disturbedAt = clock.now()
    this.#unseenMs = clock.now() - this.#endedAt
    this.#agent = new VirtualAgent({ node: this, clock, random, send, stateFolder: this.#folder })
  }

  /** A copy in progress has ended, or is undone. */
  killAgent(): void {
    this.#agent?.process.kill()
    this.#agent = null
    this.#endedAt = this.#parts.clock.now()
    for (const pod of this.pods.values()) {
      const moving = pod.onGpu.filter(({ residency }) => residency === 'moving')
      if (moving.length > 0) this.setResidency(pod, moving, this.#parts.random() < 0.5 ? 'in' : 'out')
    }
  }

  /** It ends by itself, and keeps for how long pods were idle. */
  async stopAgent(): Promise<void> {
    const agent = this.#agent
    await agent?.stop()
    if (this.#agent === agent) this.killAgent()
  }

  /** Removes its files. */
  close(): void {
    this.killAgent()
    rmSync(this.#folder, { recursive: true, force: true })
  }
}
