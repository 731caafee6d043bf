/** A pod on a node in virtual time: its containers with their processes, and where their bytes are. */
import type { Pod } from '../../../../operator/contract/kubernetes.ts'
import { podRequestOf } from '../../../../operator/contract/pod-request.ts'
import { wakePortsOf } from '../../../../operator/contract/wake-ports.ts'
import { gpusOf } from '../../../../operator/placing/pod-task.ts'
import type { DurationMs, Instant, Mib } from '../../../../protocol/units.ts'

export type Residency = 'in' | 'out' | 'moving'

export interface VirtualContainer {
  readonly name: string
  /** On each GPU of the pod; 0: a sidecar, which gets no GPU. */
  readonly mib: Mib
  /** Others after each start. */
  id: string
  pid: number
  upSince: Instant
  starts: number
  /** False: it has no process, and no bytes. */
  isUp: boolean
  /** It has ended, or found no VRAM, and has not started again. */
  isWaiting: boolean
  /** The one before it ended while it was out. The agent swaps it out again. */
  endedOut: boolean
  residency: Residency
}

export class VirtualPod {
  readonly uid: string
  readonly name: string
  readonly gpus: readonly string[]
  readonly isSwappable: boolean
  /** Requests reach it while it is out. */
  readonly isListening: boolean
  readonly containers: readonly VirtualContainer[]
  /** Times without use, each up to the next use. */
  readonly idles: { readonly until: Instant; readonly ms: DurationMs }[] = []
  #isBusy = true
  /** End of its last use. */
  #usedAt: Instant

  constructor(pod: Pod, now: Instant) {
    const request = podRequestOf(pod)
    if (!request.ok) throw new Error(`pod ${pod.metadata.name} was bound with faults`)
    const { vramMib, isSwappable, containers } = request.value
    this.uid = pod.metadata.uid ?? ''
    this.name = pod.metadata.name ?? ''
    this.gpus = gpusOf(pod)
    this.isSwappable = isSwappable
    this.isListening = wakePortsOf(pod, request.value).length > 0
    this.#usedAt = now
    const share = Math.floor(vramMib / containers.length)
    const first = vramMib - share * (containers.length - 1)
    this.containers = pod.spec.containers.map(({ name }) => {
      const mib = !containers.includes(name) ? 0 : name === containers[0] ? first : share
      const down = { id: '', pid: 0, upSince: 0, starts: 0, isUp: false, isWaiting: false, endedOut: false }
      return { name, mib, ...down, residency: 'in' }
    })
  }

  get isBusy(): boolean {
    return this.#isBusy
  }

  get usedAt(): Instant {
    return this.#usedAt
  }

  get isUp(): boolean {
    return this.containers.every(({ isUp }) => isUp)
  }

  get isWaiting(): boolean {
    return this.containers.some(({ isWaiting }) => isWaiting)
  }

  /** Containers whose processes may hold VRAM. */
  get onGpu(): readonly VirtualContainer[] {
    return this.containers.filter(({ isUp, mib }) => isUp && mib > 0)
  }

  /** As long as some of its bytes are out, it is not in use. */
  get residency(): Residency {
    const all = this.onGpu.map(({ residency }) => residency)
    return all.includes('moving') ? 'moving' : all.includes('out') ? 'out' : 'in'
  }

  /** On each of its GPUs. */
  get usedMib(): Mib {
    return this.onGpu.reduce((sum, { mib, residency }) => (residency === 'out' ? sum : sum + mib), 0)
  }

  setResidency(containers: readonly VirtualContainer[], residency: Residency, now: Instant): void {
    const before = this.residency
    for (const container of containers) {
      container.residency = residency
      if (residency === 'in') container.endedOut = false
    }
    if (!this.#isBusy || before === this.residency) return
    // It goes on where it was stopped.
    if (this.residency === 'in') this.#use(now)
    else if (before === 'in') this.#usedAt = now
  }

  setBusy(isBusy: boolean, now: Instant): void {
    if (this.#isBusy === isBusy) return
    this.#isBusy = isBusy
    // A stopped process uses nothing.
    if (this.residency !== 'in') return
    if (isBusy) this.#use(now)
    else this.#usedAt = now
  }

  start(container: VirtualContainer, id: string, pid: number, now: Instant): void {
    Object.assign(container, { id, pid, isUp: true, isWaiting: false, residency: 'in', upSince: now })
    container.starts += 1
    // It loads what it needs.
    this.#use(now)
  }

  end(container: VirtualContainer): void {
    container.isUp = false
    container.isWaiting = true
    if (container.residency === 'out') container.endedOut = true
    container.residency = 'in'
  }

  #use(now: Instant): void {
    this.idles.push({ until: now, ms: Math.max(0, now - this.#usedAt) })
    this.#usedAt = now
  }
}
