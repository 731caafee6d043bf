/**
 * Shares a GPU's compute in time slices: k working tasks each progress at η(k)/k of the speed of one alone; a
 * task on several GPUs progresses at its slowest (design "The simulator", Model of a GPU). All single-GPU
 * tasks of a GPU progress alike, so the GPU keeps one sum of work per task, and each task the sum at which it
 * is done: a change costs one timer, however many tasks share.
 */
import type { Instant, Microseconds } from '../../protocol/units.ts'
import { insertAt, removeAt } from '../../controller/structures/list-edit.ts'
import { RANK_DEVICE } from '../../controller/ports/clock.ts'
import type { SimClock, SimTimer } from '../kernel/virtual-clock.ts'

/** A runner with GPU work. Work is in microseconds on an idle GPU. */
export interface Runner {
  readonly gpus: readonly number[]
  leftUs: Microseconds
  /**
   * Kept by ComputeSharing: for a single GPU, the GPU's sum at which it is done; for several, when it was
   * last settled.
   */
  mark: number
  /** Kept by ComputeSharing: its GPU, if it has one GPU and has run. */
  home: object | null
  /** Its own timer, if it has several GPUs; null until it is needed. */
  timer: SimTimer | null
}

class SharedGpu<T extends Runner> {
  count = 0
  /** Work done for each single-GPU task so far. */
  doneUs: Microseconds = 0
  settledAt: Instant
  /** Single-GPU runners, the next to be done first. */
  readonly single: T[] = []
  readonly spanning: T[] = []
  readonly timer: SimTimer

  constructor(clock: SimClock, onDue: (gpu: SharedGpu<T>) => void) {
    this.settledAt = clock.now()
    this.timer = clock.timer(onDue, this, RANK_DEVICE)
  }
}

export class ComputeSharing<T extends Runner> {
  readonly #clock: SimClock
  readonly #gpus: readonly SharedGpu<T>[]
  readonly #efficiencyPermille: readonly number[]
  readonly #onDone: (runner: T) => void
  readonly #onSpanningDue = (runner: T): void => this.#spanningDue(runner)

  /**
   * @param efficiencyPermille η(k) in thousandths: [k - 1]; the last applies to all larger k
   * @param onDone called when its work is done; it no longer shares
   */
  constructor(
    clock: SimClock,
    gpuCount: number,
    efficiencyPermille: readonly number[],
    onDone: (runner: T) => void,
  ) {
    this.#clock = clock
    this.#onDone = onDone
    this.#efficiencyPermille = efficiencyPermille
    const due = (gpu: SharedGpu<T>): void => this.#due(gpu)
    this.#gpus = Array.from({ length: gpuCount }, () => new SharedGpu(clock, due))
  }

  /** Starts to work on `leftUs`. */
  add(runner: T): void {
    const home = this.#homeOf(runner)
    if (home === null) return this.#addSpanning(runner)
    this.#settle(home)
    home.count += 1
    runner.mark = home.doneUs + runner.leftUs
    insertByMark(home.single, runner)
    this.#pace(home)
  }

  /** Stops before it is done; `leftUs` is the remaining work. */
  remove(runner: T): void {
    const home = this.#homeOf(runner)
    if (home === null) {
      this.#settleAround(runner)
      this.#takeOutSpanning(runner)
      return this.#paceAround(runner)
    }
    this.#settle(home)
    takeOut(home, runner)
    this.#pace(home)
  }

  /** Remaining work of its current step, whether or not it shares. */
  leftUs(runner: T): number {
    const gpu = this.#homeOf(runner)
    if (gpu === null) {
      if (!(this.#gpus[runner.gpus[0] ?? 0] as SharedGpu<T>).spanning.includes(runner)) return runner.leftUs
      const count = this.#slowestCount(runner)
      return Math.max(
        0,
        runner.leftUs - Math.floor(((this.#clock.now() - runner.mark) * this.#efficiency(count)) / count),
      )
    }
    if (!gpu.single.includes(runner)) return runner.leftUs
    const sinceUs = Math.floor(
      ((this.#clock.now() - gpu.settledAt) * this.#efficiency(gpu.count)) / gpu.count,
    )
    return Math.max(0, runner.mark - gpu.doneUs - sinceUs)
  }

  /** Its only GPU; null if it has several. */
  #homeOf(runner: T): SharedGpu<T> | null {
    if (runner.home !== null) return runner.home as SharedGpu<T>
    const [only] = runner.gpus
    if (runner.gpus.length !== 1 || only === undefined) return null
    const home = this.#gpus[only] as SharedGpu<T>
    runner.home = home
    return home
  }

  #addSpanning(runner: T): void {
    this.#settleAround(runner)
    runner.mark = this.#clock.now()
    for (const index of runner.gpus) {
      const gpu = this.#gpus[index] as SharedGpu<T>
      gpu.count += 1
      gpu.spanning.push(runner)
    }
    this.#paceAround(runner)
  }

  #takeOutSpanning(runner: T): void {
    for (const index of runner.gpus) {
      const gpu = this.#gpus[index] as SharedGpu<T>
      gpu.count -= 1
      removeAt(gpu.spanning, gpu.spanning.indexOf(runner))
    }
    runner.timer?.clear()
  }

  /** A single-GPU task may be done. */
  #due(gpu: SharedGpu<T>): void {
    this.#settleGpu(gpu)
    const first = gpu.single[0]
    if (first === undefined || first.mark > gpu.doneUs) {
      this.#paceGpu(gpu)
      return
    }
    this.#settle(gpu)
    takeOut(gpu, first)
    this.#pace(gpu)
    this.#onDone(first)
  }

  #settleAround(runner: T): void {
    for (const index of runner.gpus) this.#settle(this.#gpus[index] as SharedGpu<T>)
  }

  #paceAround(runner: T): void {
    for (const index of runner.gpus) this.#pace(this.#gpus[index] as SharedGpu<T>)
  }

  #settle(gpu: SharedGpu<T>): void {
    this.#settleGpu(gpu)
    for (const spanning of gpu.spanning) this.#settleSpanning(spanning)
  }

  #pace(gpu: SharedGpu<T>): void {
    this.#paceGpu(gpu)
    for (const spanning of gpu.spanning) this.#paceSpanning(spanning)
  }

  #settleGpu(gpu: SharedGpu<T>): void {
    const now = this.#clock.now()
    if (now === gpu.settledAt) return
    if (gpu.single.length > 0)
      gpu.doneUs += Math.floor(((now - gpu.settledAt) * this.#efficiency(gpu.count)) / gpu.count)
    gpu.settledAt = now
  }

  #paceGpu(gpu: SharedGpu<T>): void {
    const first = gpu.single[0]
    if (first === undefined) {
      gpu.timer.clear()
      return
    }
    const ms = Math.ceil((Math.max(0, first.mark - gpu.doneUs) * gpu.count) / this.#efficiency(gpu.count))
    gpu.timer.set(this.#clock.now() + ms)
  }

  #settleSpanning(runner: T): void {
    const now = this.#clock.now()
    if (now === runner.mark) return
    const count = this.#slowestCount(runner)
    runner.leftUs = Math.max(
      0,
      runner.leftUs - Math.floor(((now - runner.mark) * this.#efficiency(count)) / count),
    )
    runner.mark = now
  }

  #paceSpanning(runner: T): void {
    const count = this.#slowestCount(runner)
    const ms = Math.ceil((runner.leftUs * count) / this.#efficiency(count))
    runner.timer ??= this.#clock.timer(this.#onSpanningDue, runner, RANK_DEVICE)
    runner.timer.set(this.#clock.now() + ms)
  }

  #spanningDue(runner: T): void {
    this.#settleAround(runner)
    if (runner.leftUs > 0) {
      this.#paceSpanning(runner)
      return
    }
    this.#takeOutSpanning(runner)
    this.#paceAround(runner)
    this.#onDone(runner)
  }

  /** Number of tasks that share the GPU on which it is slowest. */
  #slowestCount(runner: T): number {
    let slowest = 0
    for (const index of runner.gpus) {
      const { count } = this.#gpus[index] as SharedGpu<T>
      if (slowest === 0 || this.#efficiency(count) * slowest < this.#efficiency(slowest) * count)
        slowest = count
    }
    return slowest
  }

  /** η in thousandths: microseconds of work per millisecond, before division among the sharers. */
  #efficiency(count: number): number {
    const table = this.#efficiencyPermille
    return table[Math.min(count, table.length) - 1] ?? 1000
  }
}

/** A runner with this GPU only. */
function takeOut<T extends Runner>(gpu: SharedGpu<T>, runner: T): void {
  gpu.count -= 1
  removeAt(gpu.single, gpu.single.indexOf(runner))
  runner.leftUs = Math.max(0, runner.mark - gpu.doneUs)
}

/** Equal marks keep their order of arrival. */
function insertByMark(runners: Runner[], runner: Runner): void {
  let at = runners.length
  while (at > 0 && (runners[at - 1] as Runner).mark > runner.mark) at -= 1
  insertAt(runners, at, runner)
}
