/**
 * Converts samples of GPUs to tasks: a task is present while VRAM is in use, and busy while samples say so.
 */
import type { DurationMs, Instant, Mib } from '../../../protocol/units.ts'
import { type ImportedTask, type ImportLog, type ImportOptions, plainTask } from './importer.ts'

export interface GpuSample {
  /** Id of the GPU, unique in the file. */
  readonly gpu: string
  readonly at: Instant
  /** 0 to 100. */
  readonly busyPercent: number
  /** In use on the whole GPU. Null: not sampled, and assumed to be in use. */
  readonly usedMib: Mib | null
}

/** Driver and monitoring alone use some hundred MiB. An assumption of Headroom. */
const DEFAULT_VRAM_ABOVE_MIB: Mib = 1024
const DEFAULT_GAP_MS: DurationMs = 300_000
/** Maximum number of phases of one task; a longer one continues as another. */
export const MAX_SAMPLED_PHASES = 100_000
const MAX_GPUS = 65_536

export const SAMPLE_REASONS = {
  no_task: 'not more VRAM in use than `--vram-above-mib`: no task is present',
  out_of_order: 'older than the previous one of its GPU',
  duplicate_sample: 'as old as the previous one of its GPU',
  too_many_gpus_in_file: 'of more than 65,536 GPUs',
} as const

export const SAMPLE_ADJUSTMENTS = {
  cut_after_100000_phases: 'a task with more phases continues as another one',
} as const

/**
 * 1. A sample applies until the next one of its GPU; the last for as long as the one before it.
 * 2. A task ends when VRAM is no longer in use, or when there is no sample for longer than the gap.
 * 3. Samples with more than `busyAbovePercent` are GPU work from end to end, others are idle.
 * 4. Its VRAM is the maximum that was in use.
 */
export class SampledGpus {
  readonly #options: ImportOptions
  readonly #log: ImportLog
  readonly #gpus = new Map<string, SampledGpu>()
  readonly #busyAbove: number
  readonly #usedAbove: Mib
  readonly #gapMs: DurationMs

  constructor(options: ImportOptions, log: ImportLog) {
    this.#options = options
    this.#log = log
    this.#busyAbove = options.busyAbovePercent ?? 0
    this.#usedAbove = options.vramAboveMib ?? DEFAULT_VRAM_ABOVE_MIB
    this.#gapMs = options.gapMs ?? DEFAULT_GAP_MS
  }

  /** Tasks that end with this sample. */
  *take({ gpu: name, at, busyPercent, usedMib }: GpuSample): Generator<ImportedTask> {
    const gpu = this.#gpuNamed(name)
    if (gpu === null) return this.#log.drop('too_many_gpus_in_file')
    if (gpu.lastAt !== null && at <= gpu.lastAt)
      return this.#log.drop(at === gpu.lastAt ? 'duplicate_sample' : 'out_of_order')
    if (gpu.lastAt !== null && at - gpu.lastAt > this.#gapMs) yield* this.#finish(gpu, false)
    else gpu.hold(at)
    gpu.lastAt = at
    if (usedMib !== null && usedMib <= this.#usedAbove) {
      yield* this.#finish(gpu, true)
      return this.#log.drop('no_task')
    }
    if (gpu.phases.length >= MAX_SAMPLED_PHASES) {
      this.#log.adjust('cut_after_100000_phases')
      yield* this.#finish(gpu, true)
    }
    gpu.begin(at, busyPercent > this.#busyAbove, usedMib ?? 0)
  }

  /** Tasks that were still present at the end of the file. */
  *end(): Generator<ImportedTask> {
    for (const gpu of this.#gpus.values()) yield* this.#finish(gpu, false)
  }

  /** @param isHeld its last sample applies until now; otherwise for as long as the one before */
  *#finish(gpu: SampledGpu, isHeld: boolean): Generator<ImportedTask> {
    if (!isHeld) gpu.hold((gpu.lastAt ?? 0) + gpu.stepMs)
    const task = gpu.over()
    if (task === null) return
    const vram = task.mostMib === 0 ? {} : { vram_mib: task.mostMib }
    yield plainTask(
      { id: task.id, at: task.at, gpus: 1, ...vram, work: { kind: 'phases', phases: task.phases } },
      this.#options,
    )
  }

  #gpuNamed(name: string): SampledGpu | null {
    const known = this.#gpus.get(name)
    if (known !== undefined) return known
    if (this.#gpus.size === MAX_GPUS) return null
    const gpu = new SampledGpu(name)
    this.#gpus.set(name, gpu)
    return gpu
  }
}

type Phases = Array<readonly [busyMs: DurationMs, idleMs: DurationMs]>

class SampledGpu {
  lastAt: Instant | null = null
  /** Between the last two samples. */
  stepMs: DurationMs = 1
  phases: Phases = []
  readonly #name: string
  #tasks = 0
  #startAt: Instant | null = null
  #isBusy = false
  #busyMs = 0
  #idleMs = 0
  #mostMib = 0

  constructor(name: string) {
    this.#name = name
  }

  /** The last sample applies until now. */
  hold(until: Instant): void {
    if (this.lastAt === null) return
    this.stepMs = until - this.lastAt
    if (this.#startAt === null) return
    if (this.#isBusy) this.#busyMs += this.stepMs
    else this.#idleMs += this.stepMs
  }

  /** This sample applies from now on. */
  begin(at: Instant, isBusy: boolean, usedMib: Mib): void {
    this.#startAt ??= at
    if (isBusy && this.#idleMs > 0) this.#closePhase()
    this.#isBusy = isBusy
    this.#mostMib = Math.max(this.#mostMib, usedMib)
  }

  /** The task that was present and no longer is. */
  over(): {
    readonly id: string
    readonly at: Instant
    readonly phases: Phases
    readonly mostMib: Mib
  } | null {
    if (this.#startAt === null) return null
    this.#closePhase()
    this.#tasks += 1
    const task = {
      id: `${this.#name}.${this.#tasks}`,
      at: this.#startAt,
      phases: this.phases,
      mostMib: this.#mostMib,
    }
    this.phases = []
    this.#startAt = null
    this.#mostMib = 0
    return task
  }

  #closePhase(): void {
    if (this.#busyMs + this.#idleMs > 0) this.phases.push([this.#busyMs, this.#idleMs])
    this.#busyMs = 0
    this.#idleMs = 0
  }
}
