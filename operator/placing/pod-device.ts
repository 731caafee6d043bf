/**
 * The GPUs of a node of Kubernetes behind the port for devices: a launch binds a pod, which the kubelet then
 * runs, and the pod's end is the end of the attempt. Nothing here stops a pod. The agent of the node moves
 * bytes; without one none is swapped.
 */
import type { Pod } from '../contract/kubernetes.ts'
import type {
  AttemptEnd,
  Device,
  DeviceListener,
  Launched,
  LaunchRequest,
  LeftAs,
  OutputPart,
  Suspended,
  Survivor,
  SwapOutcome,
} from '../../gpu-server/core/device.ts'
import type { AgentAnswer, AgentReport, PodReport, SwapMark } from '../../protocol/agent-messages.ts'
import type { Mib } from '../../protocol/units.ts'
import type { GpuReport, LogStream } from '../../protocol/messages.ts'
import type { Claim } from '../contract/policies.ts'
import { POD_ANNOTATIONS } from '../contract/names.ts'
import { noswapOf, podRequestOf } from '../contract/pod-request.ts'
import { wakePortsOf } from '../contract/wake-ports.ts'
import type { AgentLink, LinkedDevice } from './agent-link.ts'
import type { DeclaredGpu } from './declared-gpus.ts'
import type { PodBindings } from './pod-bindings.ts'
import { containersOf, gpusOf } from './pod-task.ts'

export interface PodDeviceOptions {
  readonly nodeName: string
  readonly gpus: readonly DeclaredGpu[]
  readonly bindings: Pick<PodBindings, 'begin' | 'abandon'>
  /** Returns the pod as last seen; undefined: it was deleted. */
  readonly pod: (uid: string) => Pod | undefined
  /** Pods that are bound to the node already. */
  readonly bound: readonly Pod[]
  /** Bound to GPUs that are not declared: they hold VRAM that nothing counts. */
  readonly onUnknownGpus: (pod: Pod) => void
  readonly agent: AgentLink
  /** VRAM of processes that are no pods of Headroom, by UUID of a GPU. */
  readonly foreignMib: (uuid: string) => Mib
  /** Returns how the rounds count a pod, once a swap-out of it is decided. */
  readonly marks: (podUid: string) => readonly SwapMark[]
  /** The agent reports what this term has not ordered. */
  readonly onContradiction: (why: string) => void
  /** The agent was silent when the term began. A new term will take up which pods are out. */
  readonly isLate: () => boolean
}

/** An attempt whose pod is bound. */
interface BoundPod {
  readonly attempt: number
  isOut: boolean
  wantsGpu: boolean
  /** The order in progress. */
  move: { readonly order: number; readonly done: (outcome: SwapOutcome, left: LeftAs) => void } | null
}

/** Every attempt that the device finds is the first that this controller knows of its pod. */
const FOUND_ATTEMPT = 1

export class PodDevice implements Device, LinkedDevice {
  readonly #options: PodDeviceOptions
  #gpus: readonly DeclaredGpu[]
  #listener: DeviceListener | null = null
  /** Attempts by pod, from their launch to their end. */
  readonly #attempts = new Map<string, number>()
  readonly #bound = new Map<string, BoundPod>()

  constructor(options: PodDeviceOptions) {
    this.#options = options
    this.#gpus = options.gpus
    options.agent.device = this
  }

  declare(gpus: readonly DeclaredGpu[]): void {
    this.#gpus = gpus
  }

  /** Whether the pod was launched here and has not ended. */
  has(podUid: string): boolean {
    return this.#attempts.has(podUid)
  }

  /** Whether the pod is bound to the node, and has not ended. */
  isBound(podUid: string): boolean {
    return this.#bound.has(podUid)
  }

  /** Whether its bytes are in host memory. */
  isOut(podUid: string): boolean {
    return this.#bound.get(podUid)?.isOut === true
  }

  ended(podUid: string, exitCode: number | null, detail: string | null): void {
    const attempt = this.#attempts.get(podUid)
    if (attempt === undefined) return
    this.#attempts.delete(podUid)
    this.#bound.delete(podUid)
    this.#options.agent.forget(podUid)
    const end: AttemptEnd = { exitCode, detail, didEndItself: exitCode !== null, didLeaseEnd: false }
    this.#listener?.exited(podUid, attempt, end)
  }

  gpus(): readonly GpuReport[] {
    return this.#gpus.map(({ uuid, model, vramMib }, index) => ({
      index,
      model,
      physical_mib: vramMib,
      foreign_mib: this.#options.foreignMib(uuid),
    }))
  }

  observe(listener: DeviceListener): void {
    this.#listener = listener
  }

  survivors(): readonly Survivor[] {
    return this.#options.bound.flatMap((pod): Survivor[] => {
      const request = podRequestOf(pod)
      const gpus = gpusOf(pod).map((uuid) => this.#gpus.findIndex((gpu) => gpu.uuid === uuid))
      if (!request.ok || gpus.includes(-1)) {
        this.#options.onUnknownGpus(pod)
        return []
      }
      const { uid: taskId = '' } = pod.metadata
      const { vramMib } = request.value
      const found = this.#found(taskId)
      this.#attempts.set(taskId, FOUND_ATTEMPT)
      this.#bound.set(taskId, found)
      return [
        {
          start: {
            ...{ taskId, attempt: FOUND_ATTEMPT, gpus, vramMib, gpuMode: 'shared' },
            ...{ noswap: noswapOf(pod, request.value), priority: 2, onNodeLoss: 'wait', isLease: false },
          },
          ...{ end: null, residency: found.isOut ? 'swapped_out' : 'resident', isFrozen: false },
          ...{ isStopping: false, wantsGpu: found.wantsGpu, vramMib, heldMib: null },
          idleMs: this.#options.agent.report(taskId)?.idle_ms ?? 0,
          isWakeable: this.#options.agent.report(taskId)?.wakeable === true,
        },
      ]
    })
  }

  launch({ start }: LaunchRequest, done: (launched: Launched) => void): void {
    const { taskId, attempt, gpus, vramMib, noswap } = start
    const { metadata } = this.#options.pod(taskId) ?? {}
    const claim: Claim = {
      podUid: taskId,
      podNamespace: metadata?.namespace ?? '',
      podName: metadata?.name ?? '',
      gpuUuids: gpus.map((index) => this.#gpus[index]?.uuid ?? ''),
      ...{ vramMib, swappable: noswap === 0 },
    }
    this.#attempts.set(taskId, attempt)
    this.#options.bindings.begin(claim, this.#options.nodeName, (bound) => {
      if (bound.error === null) {
        this.#bound.set(taskId, { attempt, isOut: false, wantsGpu: true, move: null })
        return done({ error: null, wantsGpu: true })
      }
      if (this.#attempts.get(taskId) === attempt) this.#attempts.delete(taskId)
      done(bound)
      // A binding that failed may have been stored all the same.
      const { nodeName = '' } = this.#options.pod(taskId)?.spec ?? {}
      if (nodeName !== '') this.#options.onContradiction(`pod ${taskId} is bound to ${nodeName}`)
    })
  }

  /** Ends a launch in progress; a pod that is bound ends by its own or by its owner. */
  stop(taskId: string): void {
    this.#options.bindings.abandon(taskId, 'the start was cancelled')
  }

  suspend(taskId: string, _attempt: number, done: Suspended): void {
    this.#move(taskId, 'out', done, this.#options.marks(taskId))
  }

  resume(taskId: string, _attempt: number, done: (outcome: SwapOutcome) => void): void {
    this.#move(taskId, 'in', (outcome) => done(outcome))
  }

  /** Returns the answer for the agent: the pods of the node, and their intended residency. */
  answer(): AgentAnswer {
    const { agent, pod: podOf } = this.#options
    const pods = [...this.#bound.keys()].flatMap((uid): AgentAnswer['pods'] => {
      const pod = podOf(uid)
      const request = pod === undefined ? null : podRequestOf(pod)
      if (pod === undefined || request?.ok !== true) return []
      const gpus = gpusOf(pod).map((uuid) => this.#gpus.findIndex((gpu) => gpu.uuid === uuid))
      const { number: order = 0, wanted = 'in', marks = [] } = agent.order(uid) ?? {}
      return [
        {
          ...{ pod: uid, containers: [...containersOf(pod)], gpus: gpus.filter((gpu) => gpu !== -1) },
          ...{ vram_mib: request.value.vramMib, order, wanted },
          ...(marks.length === 0 ? {} : { marks: [...marks] }),
          wake_ports: [...wakePortsOf(pod, request.value)],
          ...(request.value.wakesOnRequest === true ? { wake_on_request: true } : {}),
        },
      ]
    })
    return { pods }
  }

  /** Handles a report of the agent. */
  reported({ pods }: AgentReport): void {
    for (const report of pods) {
      const bound = this.#bound.get(report.pod)
      if (bound === undefined) continue
      this.#settle(bound, report)
      const wantsGpu = report.wants_gpu || this.#isKept(report.pod)
      if (bound.wantsGpu === wantsGpu) continue
      bound.wantsGpu = wantsGpu
      if (wantsGpu) this.#listener?.gpuWanted(report.pod, bound.attempt)
      else this.#listener?.gpuUsed(report.pod, bound.attempt, report.idle_ms)
    }
  }

  /** Its owner wants it in VRAM: it counts as always at work. */
  #isKept(podUid: string): boolean {
    return this.#options.pod(podUid)?.metadata.annotations?.[POD_ANNOTATIONS.keepInVram] === 'true'
  }

  #settle(bound: BoundPod, report: PodReport): void {
    const { pod, order, outcome, residency, why_not, wakeable = false } = report
    const { move } = bound
    if (residency === 'moving') return
    if (move !== null && move.order === order && outcome !== null) {
      bound.move = null
      if (outcome === 'done') bound.isOut = residency === 'out'
      const left = { isWakeable: wakeable, ...(why_not === null ? {} : { whyNot: why_not }) }
      return later(() => move.done(outcome, left))
    }
    const { agent, isLate } = this.#options
    const last = agent.order(pod)?.number ?? order
    if (move === null && last === order && !isLate() && bound.isOut !== (residency === 'out'))
      this.#options.onContradiction(`pod ${pod} is ${residency === 'out' ? 'swapped out' : 'in VRAM'}`)
  }

  #move(
    podUid: string,
    wanted: 'in' | 'out',
    done: (outcome: SwapOutcome, left: LeftAs) => void,
    marks?: readonly SwapMark[],
  ): void {
    const bound = this.#bound.get(podUid)
    const { agent } = this.#options
    const isKnown = wanted === 'in' ? agent.hostSwapMib !== null : agent.isCurrent
    if (bound === undefined || !isKnown) return later(() => done('copy_failed', {}))
    bound.move = { order: agent.give(podUid, wanted, marks).number, done }
  }

  /**
   * According to the last report of the agent. It is out only if it has no VRAM and gets none: on its way it
   * has its VRAM, and an order from before this term is still carried out.
   */
  #found(podUid: string): BoundPod {
    const { agent } = this.#options
    const report = agent.report(podUid)
    const { residency = 'in', wants_gpu: wants = true } = report ?? {}
    const wantsGpu = wants || this.#isKept(podUid)
    const order = agent.order(podUid)
    const isOver = report?.order === order?.number && report?.outcome !== null
    const returns = order?.wanted === 'in' && !isOver
    return { attempt: FOUND_ATTEMPT, isOut: residency === 'out' && !returns, wantsGpu, move: null }
  }

  readOutput(
    _taskId: string,
    _attempt: number,
    _stream: LogStream,
    _offset: number,
    _maxBytes: number,
    done: (part: OutputPart | null) => void,
  ): void {
    later(() => done(null))
  }

  // The kubelet runs pods whether an operator answers or not, and the facts are objects of Kubernetes.
  freeze(): void {}
  thaw(): void {}
  lease(): void {}
  setLeased(): void {}
  forget(): void {}
  answerAllocation(): void {}
}

/** Completions never arrive inside the call. */
function later(fn: () => void): void {
  queueMicrotask(fn)
}
