/**
 * The GPUs of a node of Kubernetes behind the port for devices: a launch binds a pod, which the kubelet then
 * runs, and the pod's end is the end of the attempt. Nothing here stops a pod, and without an agent on the
 * node none is swapped.
 */
import type { Pod } from '../contract/kubernetes.ts'
import type {
  AttemptEnd,
  Device,
  DeviceListener,
  Launched,
  LaunchRequest,
  OutputPart,
  Suspended,
  Survivor,
  SwapOutcome,
} from '../../gpu-server/core/device.ts'
import type { GpuReport, LogStream } from '../../protocol/messages.ts'
import type { Claim } from '../contract/policies.ts'
import { podRequestOf } from '../contract/pod-request.ts'
import type { DeclaredGpu } from './declared-gpus.ts'
import type { PodBindings } from './pod-bindings.ts'
import { gpusOf } from './pod-task.ts'

export interface PodDeviceOptions {
  readonly nodeName: string
  readonly gpus: readonly DeclaredGpu[]
  readonly bindings: Pick<PodBindings, 'begin' | 'abandon'>
  /** As last seen; undefined: it is gone. */
  readonly pod: (uid: string) => Pod | undefined
  /** Pods that are bound to the node already. */
  readonly bound: readonly Pod[]
  /** Bound to GPUs that are not declared: they hold VRAM that nothing counts. */
  readonly onUnknownGpus: (pod: Pod) => void
}

/** Every attempt that the device finds is the first that this controller knows of its pod. */
const FOUND_ATTEMPT = 1

export class PodDevice implements Device {
  readonly #options: PodDeviceOptions
  #gpus: readonly DeclaredGpu[]
  #listener: DeviceListener | null = null
  /** Attempts by pod, from their launch to their end. */
  readonly #attempts = new Map<string, number>()

  constructor(options: PodDeviceOptions) {
    this.#options = options
    this.#gpus = options.gpus
  }

  declare(gpus: readonly DeclaredGpu[]): void {
    this.#gpus = gpus
  }

  /** Whether the pod was launched here and has not ended. */
  has(podUid: string): boolean {
    return this.#attempts.has(podUid)
  }

  ended(podUid: string, exitCode: number | null, detail: string | null): void {
    const attempt = this.#attempts.get(podUid)
    if (attempt === undefined) return
    this.#attempts.delete(podUid)
    const end: AttemptEnd = { exitCode, detail, didEndItself: exitCode !== null, didLeaseEnd: false }
    this.#listener?.exited(podUid, attempt, end)
  }

  gpus(): readonly GpuReport[] {
    return this.#gpus.map(({ model, vramMib }, index) => ({
      index,
      model,
      physical_mib: vramMib,
      foreign_mib: 0,
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
      const { vramMib, isSwappable } = request.value
      this.#attempts.set(taskId, FOUND_ATTEMPT)
      return [
        {
          start: {
            ...{ taskId, attempt: FOUND_ATTEMPT, gpus, vramMib, gpuMode: 'shared' },
            ...{ noswap: isSwappable ? 0 : 1, priority: 2, onNodeLoss: 'wait', isLease: false },
          },
          ...{ end: null, residency: 'resident', isFrozen: false, isStopping: false },
          ...{ wantsGpu: true, idleMs: 0, vramMib, heldMib: null },
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
      if (bound.error === null) return done({ error: null, wantsGpu: true })
      if (this.#attempts.get(taskId) === attempt) this.#attempts.delete(taskId)
      done(bound)
    })
  }

  /** Ends a launch in progress; a pod that is bound ends by its own or by its owner. */
  stop(taskId: string): void {
    this.#options.bindings.abandon(taskId, 'the start was called off')
  }

  suspend(_taskId: string, _attempt: number, done: Suspended): void {
    later(() => done('not_swappable', { whyNot: 'no agent runs on the node' }))
  }

  resume(_taskId: string, _attempt: number, done: (outcome: SwapOutcome) => void): void {
    later(() => done('copy_failed'))
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
