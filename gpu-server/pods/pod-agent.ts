/**
 * The pods of one node: adopts their processes, measures their use, and moves their bytes as the operator
 * orders. It decides nothing: without an order every pod stays where it is.
 */
import { isDeepStrictEqual } from 'node:util'
import type { AgentAnswer, AgentReport, PodOrder, ReportedGpu } from '../../protocol/agent-messages.ts'
import { errorText } from '../../protocol/error-text.ts'
import { MAX_DETAIL_LENGTH } from '../../protocol/limits.ts'
import type { DurationMs, Mib } from '../../protocol/units.ts'
import type { SwapOutcome } from '../core/device.ts'
import type { Accelerator } from '../devices/accelerator.ts'
import type { SocketWatch } from '../devices/socket-watch.ts'
import { OutPods } from './out-pods.ts'
import { type PastPod, PodHistory } from './pod-history.ts'
import type { ContainerProcesses } from './pod-cgroups.ts'
import { type KeptPod, PodTask } from './pod-task.ts'

/** Tells when a request waits for a pod. */
export type PodRequests = Pick<SocketWatch<PodTask>, 'watch' | 'forget' | 'hasRequest' | 'close'>

export interface PodAgentOptions {
  readonly node: string
  readonly accelerator: Accelerator
  readonly cgroups: ContainerProcesses
  readonly stateFolder: string
  readonly hostSwapMib: Mib
  /** A pod without measured use for this long is idle. */
  readonly idleAfterMs: DurationMs
  /** Why a process with this environment must stay in VRAM; null: it need not. */
  readonly whyNot: (environment: Readonly<Record<string, string>>) => string | null
  /** Monotonic. */
  readonly now: () => DurationMs
  readonly wait: (ms: DurationMs) => Promise<void>
  readonly onNote: (line: string) => void
  /** Begins to watch the sockets of pods; null: no request wakes a pod. */
  readonly watch: ((onRequest: (task: PodTask) => void) => PodRequests) | null
  /** There is something to report at once. */
  readonly onRequest: () => void
}

/** How long the answer may wait while nothing moves, and while something does. */
const CALM_MS = 1_000
const MOVING_MS = 100
/** Interval of one second. */
const FOREIGN_SAMPLES = 10

export class PodAgent {
  readonly #options: PodAgentOptions
  readonly #out: OutPods
  readonly #history: PodHistory
  #areMarksKept = true
  readonly #tasks = new Map<string, PodTask>()
  readonly #moves = new Set<Promise<void>>()
  readonly #requests: PodRequests | null
  /** Foreign VRAM by GPU, in the last samples. */
  readonly #foreignMib: (readonly Mib[])[] = []

  private constructor(options: PodAgentOptions) {
    this.#options = options
    this.#out = new OutPods(options.stateFolder)
    this.#history = new PodHistory(options.stateFolder, options.now())
    this.#requests = options.watch?.((task) => this.#requested(task)) ?? null
  }

  /** Finds what an earlier agent left. Rejects with AcceleratorFault or StateFault. */
  static async open(options: PodAgentOptions): Promise<PodAgent> {
    await options.accelerator.open()
    const agent = new PodAgent(options)
    for (const pod of agent.#out.all()) await agent.#adopt(pod)
    for (const pod of agent.#history.pods) agent.#remember(pod)
    return agent
  }

  /** Swaps in progress end first; every pod stays where it is. */
  async close(): Promise<void> {
    await this.settled()
    try {
      this.#history.keepAll(this.#tasks.values(), this.#options.now())
    } catch (error) {
      this.#options.onNote(`how long pods were idle is lost: ${errorText(error)}`)
    }
    this.#requests?.close()
    await this.#options.accelerator.close()
  }

  async settled(): Promise<void> {
    while (this.#moves.size > 0) await Promise.all(this.#moves)
  }

  get outCount(): number {
    return [...this.#tasks.values()].filter(({ isOut }) => isOut).length
  }

  report(): AgentReport {
    const { node, hostSwapMib, now } = this.#options
    const at = now()
    const pods = [...this.#tasks.values()].map((task) => ({
      pod: task.taskId,
      residency: task.isMoving ? ('moving' as const) : task.isOut ? ('out' as const) : ('in' as const),
      ...{ order: task.order, outcome: task.outcome },
      why_not: task.whyNot?.slice(0, MAX_DETAIL_LENGTH) ?? null,
      ...{ wants_gpu: task.wantsGpu, idle_ms: Math.max(0, Math.floor(at - task.lastUseAt)) },
      ...(task.isWakeable ? { wakeable: true } : {}),
      ...(task.marks.length === 0 ? {} : { marks: [...task.marks] }),
    }))
    const wait_ms = this.#moves.size > 0 ? MOVING_MS : CALM_MS
    const gpus = this.#gpus()
    const { rounds } = this.#history
    return {
      ...{ node, host_swap_mib: hostSwapMib, wait_ms, pods },
      ...(gpus === null ? {} : { gpus }),
      ...(rounds.length === 0 ? {} : { rounds: [...rounds] }),
    }
  }

  obey({ pods }: AgentAnswer): void {
    const known = new Set(pods.map(({ pod }) => pod))
    for (const task of this.#tasks.values()) if (!known.has(task.taskId)) this.#leave(task)
    this.#keepMarks(pods)
    for (const pod of pods) this.#obey(pod)
  }

  /** Those of all orders of an answer together, and before any of its swaps begins. */
  #keepMarks(pods: AgentAnswer['pods']): void {
    for (const order of pods) {
      const task = this.#tasks.get(order.pod) ?? this.#newTask(order)
      if (order.marks === undefined || isDeepStrictEqual(order.marks, task.marks)) continue
      task.marks = order.marks
      this.#areMarksKept = false
    }
    if (this.#areMarksKept) return
    this.#history.keepMarks(this.#tasks.values())
    this.#areMarksKept = true
  }

  /** Called once a second. */
  async sample(): Promise<void> {
    const { accelerator, now, idleAfterMs } = this.#options
    const tasks = [...this.#tasks.values()]
    const present = tasks.filter(({ isOut, isMoving }) => !isOut && !isMoving)
    // All of them, or what others hold would count as foreign.
    const { uses } = await accelerator.sample(tasks)
    this.#foreignMib.push(accelerator.gpus().map(({ foreign_mib }) => foreign_mib))
    if (this.#foreignMib.length > FOREIGN_SAMPLES) this.#foreignMib.shift()
    const sampled = present.map(async (task) => {
      const isBusy = uses.get(task)?.isBusy ?? null
      // A request that waits is use, although the GPU is idle; and so is a start that is still to come.
      const isUsed =
        isBusy === true || task.processIds().length === 0 || (await this.#requests?.hasRequest(task)) === true
      if ((isBusy === null && !isUsed) || task.isOut || task.isMoving) return
      if (isUsed) this.#used(task)
      else task.wantsGpu = now() - task.lastUseAt < idleAfterMs
    })
    await Promise.all(sampled)
  }

  #used(task: PodTask): void {
    task.lastUseAt = this.#options.now()
    task.wantsGpu = true
  }

  /** Brings back every pod, one after the other. Returns why it could not, for each that is still out. */
  async release(): Promise<readonly string[]> {
    await this.settled()
    const left: string[] = []
    for (const task of [...this.#tasks.values()]) {
      if (!task.isOut) continue
      if (task.processIds().length === 0) {
        this.#drop(task)
        continue
      }
      await this.#move(task, 'in')
      if (task.isOut) left.push(`pod ${task.taskId}: ${task.outcome ?? 'unknown'}`)
    }
    return left
  }

  /** Null: their size is not known. */
  #gpus(): readonly ReportedGpu[] | null {
    const { accelerator, node } = this.#options
    const gpus = accelerator.gpus()
    if (gpus.some(({ physical_mib }) => physical_mib === 0)) return null
    const uuids = accelerator.containerDevices(gpus.map(({ index }) => index))
    // A container may use VRAM a moment before the operator says that it is ours.
    const isForeignKnown = this.#foreignMib.length === FOREIGN_SAMPLES
    return gpus.map(({ index, model, physical_mib: vram_mib }) => ({
      ...{ uuid: uuids[index] ?? declaredUuid(node, index), model, vram_mib },
      ...(isForeignKnown
        ? { foreign_mib: Math.min(...this.#foreignMib.map((each) => each[index] ?? 0)) }
        : {}),
    }))
  }

  async #adopt(pod: KeptPod): Promise<void> {
    const { accelerator } = this.#options
    const task = this.#newTask(pod)
    if (task.processIds().length === 0) return this.#drop(task)
    const residency = await accelerator.residencyOf(task)
    task.isOut = residency !== 'resident'
    if (!task.isOut) {
      // It was on its way, and some of its processes may be stopped.
      await task.resume()
      this.#out.delete(pod.pod)
      return
    }
    task.wantsGpu = false
    task.isWakeable = task.isDeclaredWakeable
    await this.#watch(task)
  }

  /** From an earlier agent. A container that has started again has used the GPU since, or will. */
  #remember({ marks, idle_ms: idleMs, ...pod }: PastPod): void {
    const known = this.#tasks.get(pod.pod)
    const task = known ?? this.#newTask(pod)
    task.marks = marks
    if (known !== undefined || idleMs === null || task.processIds().length === 0) return
    task.lastUseAt -= idleMs
    task.wantsGpu = false
  }

  #newTask(pod: KeptPod): PodTask {
    const { cgroups, now, wait } = this.#options
    const task = new PodTask(pod, now(), cgroups, wait)
    this.#tasks.set(pod.pod, task)
    return task
  }

  #obey(order: PodOrder): void {
    const task = this.#tasks.get(order.pod) ?? this.#newTask(order)
    const { start, isDeclaredWakeable } = task
    const isStarted = order.containers.some((id) => !task.facts.containers.includes(id))
    task.update(order)
    // It was not seen since its start.
    if (isStarted && !task.isOut && !task.isMoving) this.#used(task)
    const isWatchedAsBefore =
      isDeepStrictEqual(start, task.start) && isDeclaredWakeable === task.isDeclaredWakeable
    if (task.isOut && !task.isMoving && !isWatchedAsBefore) void this.#watch(task)
    if (task.isMoving) return
    if (order.order === 0 || order.order === task.order) return this.#heedRestart(task)
    task.order = order.order
    task.outcome = null
    task.whyNot = null
    if (task.isOut === (order.wanted === 'out')) task.outcome = 'done'
    // An order may be older than its last use, for example when it is repeated to the agent after a kill.
    else if (order.wanted === 'out' && task.wantsGpu) task.outcome = 'woke_while_locked'
    else this.#begin(task, order.wanted)
  }

  /** A container of a pod that is out ended, for example for lack of memory: the kubelet starts another. */
  #heedRestart(task: PodTask): void {
    if (!task.isOut) return
    const { containers } = task.facts
    const swappedOut = this.#out.find(task.taskId)?.containers ?? []
    const isNew = (id: string): boolean => !swappedOut.includes(id)
    if (containers.some(isNew)) task.wantsGpu = true
    if (containers.every(isNew) && task.processIds().length > 0) this.#takeRestarted(task)
  }

  /** Its bytes ended with the containers from before. It uses the GPU only after an order to return. */
  #takeRestarted(task: PodTask): void {
    this.#drop(task)
    const { marks, order, outcome } = task
    const restarted = Object.assign(this.#newTask(task.facts), { marks, order })
    this.#track(restarted, async () => {
      await this.#move(restarted, 'out')
      restarted.outcome = outcome
    })
  }

  /** The operator knows it no more: it has ended, or it must not stay stopped. */
  #leave(task: PodTask): void {
    if (task.isMoving) return
    if (!task.isOut || task.processIds().length === 0) return this.#drop(task)
    this.#begin(task, 'in')
  }

  #drop(task: PodTask): void {
    task.forget()
    this.#requests?.forget(task)
    this.#tasks.delete(task.taskId)
    this.#out.delete(task.taskId)
  }

  #begin(task: PodTask, to: PodOrder['wanted']): void {
    this.#track(task, () => this.#move(task, to))
  }

  #track(task: PodTask, act: () => Promise<void>): void {
    task.isMoving = true
    const move = act().finally(() => this.#moves.delete(move))
    this.#moves.add(move)
  }

  async #move(task: PodTask, to: PodOrder['wanted']): Promise<void> {
    task.isMoving = true
    try {
      task.outcome = to === 'out' ? await this.#swapOut(task) : await this.#swapIn(task)
      // No sample has seen it meanwhile, and the next order would follow at once.
      if (task.outcome === 'woke_while_locked') this.#used(task)
    } catch (error) {
      task.outcome = 'copy_failed'
      this.#options.onNote(`pod ${task.taskId}: a swap failed: ${errorText(error)}`)
    } finally {
      task.isMoving = false
    }
  }

  async #swapOut(task: PodTask): Promise<SwapOutcome> {
    const { accelerator, whyNot } = this.#options
    if (task.processIds().length === 0) return 'copy_failed'
    const wishes = task.environments().map(whyNot)
    task.whyNot = wishes.find((why) => why !== null) ?? (await accelerator.whyNotSwappable(task))
    if (task.whyNot !== null) return 'not_swappable'
    this.#out.add(task.facts)
    let outcome: SwapOutcome = 'copy_failed'
    try {
      outcome = await accelerator.swapOut(task)
    } finally {
      task.isOut = outcome === 'done' || (await accelerator.residencyOf(task)) === 'swapped_out'
      if (task.isOut) await this.#watch(task)
      else {
        await task.resume()
        this.#out.delete(task.taskId)
      }
    }
    return outcome
  }

  async #swapIn(task: PodTask): Promise<SwapOutcome> {
    const { accelerator, now } = this.#options
    const outcome = await accelerator.swapIn(task)
    if (outcome !== 'done') return outcome
    task.isOut = task.isWakeable = false
    this.#requests?.forget(task)
    task.lastUseAt = now()
    this.#out.delete(task.taskId)
    return outcome
  }

  /** It is out: from now on its requests are reported. */
  async #watch(task: PodTask): Promise<void> {
    const wasWakeable = task.isWakeable
    this.#requests?.forget(task)
    const isHeard = (await this.#requests?.watch(task)) === true
    if (!task.isOut) return
    task.isWakeable = isHeard && task.isDeclaredWakeable
    // Nothing else would bring it back.
    if (wasWakeable && !task.isWakeable) this.#requested(task)
  }

  #requested(task: PodTask): void {
    if (!task.isOut) return
    task.wantsGpu = true
    this.#options.onRequest()
  }
}

/** Returns the UUID of a GPU without a driver. The name of a node may contain dots. */
function declaredUuid(node: string, index: number): string {
  return `${node.replaceAll(/[^A-Za-z0-9-]/g, '-').slice(0, 80)}-GPU-${index}`
}
