/** The kubelet of a virtual node: it runs the containers of bound pods, and starts them again. */
import type { ContainerStatus, Pod } from '../../../../operator/contract/kubernetes.ts'
import { stageOf } from '../../../../operator/placing/pod-task.ts'
import { KubeError, PODS } from '../../../../operator/ports/kube-api.ts'
import type { DurationMs, Instant } from '../../../../protocol/units.ts'
import type { NodeParts, VirtualNode } from './virtual-node.ts'
import { type VirtualContainer, VirtualPod } from './virtual-pod.ts'

export const KUBELET_FINALIZER = 'test.example/kubelet'
const LOOK_EVERY_MS = 500
const GRACE_MS = 30_000
/** A container that finds no VRAM ends, and is started again after a pause. */
const BACK_OFF_MS = 10_000
/** Greater than every pid of a host: no signal reaches a process of this machine. */
const FIRST_PID = 100_000_000

export class VirtualKubelet {
  readonly #node: VirtualNode
  readonly #parts: NodeParts
  readonly #known = new Set<string>()
  /** What an earlier start of the machine began does not end. */
  #boot = 0
  #started = 0

  constructor(node: VirtualNode, parts: NodeParts) {
    this.#node = node
    this.#parts = parts
  }

  start(): void {
    const there = new Map([...this.#parts.pods()].map((pod) => [pod.metadata.uid, pod]))
    for (const uid of this.#node.pods.keys()) {
      const pod = there.get(uid)
      if (pod === undefined || stageOf(pod) === 'over') this.#node.pods.delete(uid)
    }
    for (const pod of there.values()) this.podChanged(pod, false)
  }

  stop(): void {
    this.#boot += 1
    this.#known.clear()
  }

  podChanged(pod: Pod, isDeleted: boolean): void {
    const { uid = '', deletionTimestamp } = pod.metadata
    if (!this.#node.isUp || pod.spec.nodeName !== this.#node.name) return
    if (isDeleted) {
      this.#known.delete(uid)
      this.#drop(uid)
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
  finish(pod: VirtualPod): void {
    if (this.#node.pods.get(pod.uid) !== pod) return
    if (!pod.isUp || pod.residency !== 'in') return this.#after(LOOK_EVERY_MS, () => this.finish(pod))
    this.#drop(pod.uid)
    const phase = this.#below(4) === 0 ? 'Failed' : 'Succeeded'
    this.#after(this.#below(1_000), () => void this.#setStatus(pod, { phase }))
  }

  restart(pod: VirtualPod, container: VirtualContainer): void {
    void this.#report(pod)
    this.#after(300 + this.#below(3_000), () => this.#run(pod, container))
  }

  #start(uid: string): void {
    const pod = [...this.#parts.pods()].find(({ metadata }) => metadata.uid === uid)
    if (pod === undefined || pod.metadata.deletionTimestamp !== undefined || stageOf(pod) === 'over') return
    const started = this.#node.pods.get(uid) ?? new VirtualPod(pod, this.#parts.clock.now())
    this.#node.pods.set(uid, started)
    for (const container of started.containers) this.#run(started, container)
  }

  #run(pod: VirtualPod, container: VirtualContainer): void {
    if (this.#node.pods.get(pod.uid) !== pod || container.isUp) return
    if (this.#node.isDisturbed && !this.#node.hasRoomFor(pod, container.mib)) {
      container.isWaiting = true
      return this.#after(BACK_OFF_MS + this.#below(2 * BACK_OFF_MS), () => this.#run(pod, container))
    }
    // Its pod may be out: the agent swaps it out again, once it has seen it.
    if (container.isWaiting) this.#node.disturb()
    this.#started += 1
    const id = `${this.#node.name}-${this.#started}`
    pod.start(container, id, FIRST_PID + this.#started, this.#parts.clock.now())
    this.#node.bytesChanged()
    void this.#report(pod)
  }

  #terminate(pod: Pod, until: Instant): void {
    const { uid = '' } = pod.metadata
    const running = this.#node.pods.get(uid)
    // A stopped process does not get its SIGTERM.
    const isOver = running === undefined || running.residency === 'in' || this.#parts.clock.now() >= until
    if (!isOver) return this.#after(LOOK_EVERY_MS, () => this.#terminate(pod, until))
    this.#after(200 + this.#below(2_000), () => {
      this.#drop(uid)
      void this.#release(pod)
    })
  }

  #drop(uid: string): void {
    if (this.#node.pods.delete(uid)) this.#node.bytesChanged()
  }

  async #release({ metadata: { name = '', namespace = '', uid } }: Pod): Promise<void> {
    const body = { metadata: { uid, finalizers: null } }
    await unlessGone(this.#parts.api.patch(PODS, { name, namespace }, { type: 'merge', body }))
  }

  #report(pod: VirtualPod): Promise<void> {
    const containerStatuses = pod.containers.map(({ name, id, isUp, starts }): ContainerStatus => {
      const state = isUp ? { running: {} } : { waiting: { reason: 'CrashLoopBackOff' } }
      const restartCount = Math.max(0, starts - 1)
      return { name, ...(id === '' ? {} : { containerID: `containerd://${id}` }), state, ...{ restartCount } }
    })
    return this.#setStatus(pod, { phase: 'Running', containerStatuses })
  }

  async #setStatus({ name, uid }: VirtualPod, status: object): Promise<void> {
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

/** The pod may have been deleted meanwhile. */
export async function unlessGone(asked: Promise<unknown>): Promise<void> {
  try {
    await asked
  } catch (error) {
    if (!(error instanceof KubeError)) throw error
  }
}
