/** The GPUs of a virtual node, as its agent sees and moves their bytes. */
import type { Clock } from '../../../../controller/ports/clock.ts'
import { timePasses } from '../../../../controller/ports/clock.ts'
import type { RandomStream } from '../../../../controller/ports/random.ts'
import type { SwapOutcome } from '../../../../gpu-server/core/device.ts'
import type { AcceleratedTask, Accelerator, TaskUse } from '../../../../gpu-server/devices/accelerator.ts'
import type { GpuReport } from '../../../../protocol/messages.ts'
import type { Instant, Mib } from '../../../../protocol/units.ts'
import type { VirtualNode } from './virtual-node.ts'
import type { VirtualContainer, VirtualPod } from './virtual-pod.ts'

interface Moved {
  readonly pod: VirtualPod
  readonly containers: readonly VirtualContainer[]
}

export class VirtualAccelerator implements Accelerator {
  readonly kind = 'process'
  readonly signalsWanted = false
  readonly #node: VirtualNode
  readonly #clock: Clock
  readonly #random: RandomStream
  #sampledAt: Instant
  #foreignMib: readonly Mib[]

  constructor(node: VirtualNode, clock: Clock, random: RandomStream) {
    this.#node = node
    this.#clock = clock
    this.#random = random
    this.#sampledAt = clock.now()
    this.#foreignMib = node.gpus.map(() => 0)
  }

  gpus(): readonly GpuReport[] {
    return this.#node.gpus.map(({ mib }, index) => {
      return { index, model: 'X', physical_mib: mib, foreign_mib: this.#foreignMib[index] ?? 0 }
    })
  }

  containerDevices(gpus: readonly number[]): readonly string[] {
    return gpus.map((index) => this.#node.gpus[index]?.uuid ?? '')
  }

  async swapOut(task: AcceleratedTask): Promise<SwapOutcome> {
    const moved = this.#moved(task)
    if (moved === null) return 'copy_failed'
    this.#node.willSwapOut(moved.pod, moved.containers)
    const isDone = await this.#copied(moved)
    const isAwake = moved.pod.isBusy
    this.#end(moved, isDone && !isAwake ? 'out' : 'in')
    return isAwake ? 'woke_while_locked' : isDone ? 'done' : 'copy_failed'
  }

  async swapIn(task: AcceleratedTask): Promise<SwapOutcome> {
    const moved = this.#moved(task)
    if (moved === null) return 'copy_failed'
    const { pod, containers } = moved
    const outMib = containers.reduce((sum, { mib, residency }) => sum + (residency === 'out' ? mib : 0), 0)
    if (this.#node.isDisturbed && !this.#node.hasRoomFor(pod, outMib)) return 'no_vram'
    const isDone = await this.#copied(moved)
    this.#end(moved, isDone ? 'in' : 'out')
    return isDone ? 'done' : 'copy_failed'
  }

  residencyOf(task: AcceleratedTask): Promise<'resident' | 'swapped_out' | 'unknown'> {
    const { containers = [] } = this.#moved(task) ?? {}
    if (containers.length === 0) return Promise.resolve('unknown')
    const isOut = containers.some(({ residency }) => residency === 'out')
    return Promise.resolve(isOut ? 'swapped_out' : 'resident')
  }

  /** A kernel between two samples is seen. VRAM of processes that belong to no task is foreign. */
  sample(tasks: readonly AcceleratedTask[]): ReturnType<Accelerator['sample']> {
    const since = this.#sampledAt
    this.#sampledAt = this.#clock.now()
    const uses = new Map(tasks.map((task) => [task, this.#use(task, since)]))
    const known = new Set(tasks.flatMap((task) => task.processIds()))
    this.#foreignMib = this.#node.gpus.map(({ uuid }) =>
      this.#node
        .podsOn(uuid)
        .flatMap(({ onGpu }) => onGpu)
        .filter(({ pid, residency }) => !known.has(pid) && residency !== 'out')
        .reduce((sum, { mib }) => sum + mib, this.#node.foreignMib(uuid)),
    )
    return Promise.resolve({ uses, freeMib: this.#node.gpus.map(() => null) })
  }

  usedMib = ({ gpus }: AcceleratedTask): Promise<readonly null[]> => Promise.resolve(gpus.map(() => null))
  hasFree = (): Promise<boolean> => Promise.resolve(true)
  whyNotSwappable = (): Promise<null> => Promise.resolve(null)
  environment = (): Readonly<Record<string, string>> => ({})
  open = (): Promise<void> => Promise.resolve()
  close = (): Promise<void> => Promise.resolve()

  #use(task: AcceleratedTask, since: Instant): TaskUse {
    const usedMib = task.gpus.map(() => null)
    const moved = this.#moved(task)
    if (moved === null) return { usedMib, isBusy: null }
    const { isBusy, usedAt } = moved.pod
    return { usedMib, isBusy: isBusy || usedAt > since }
  }

  #moved(task: AcceleratedTask): Moved | null {
    const pids = task.processIds()
    const pod = this.#node.pods.get(task.taskId)
    const containers = pod?.containers.filter(({ isUp, pid }) => isUp && pids.includes(pid)) ?? []
    return pod === undefined || containers.length === 0 ? null : { pod, containers }
  }

  async #copied({ pod, containers }: Moved): Promise<boolean> {
    this.#node.setResidency(pod, containers, 'moving')
    const fails = this.#random() < 0.03
    await timePasses(this.#clock, 200 + Math.floor(this.#random() * 3_000))
    return !fails
  }

  /** A container that has ended meanwhile has no bytes, or others. */
  #end({ pod, containers }: Moved, to: 'in' | 'out'): void {
    const left = containers.filter(({ residency }) => residency === 'moving')
    this.#node.setResidency(pod, left, to)
  }
}
