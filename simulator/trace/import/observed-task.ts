/** A task from its submission to its end, as the events of a cluster show it. */
import type { DurationMs, GpuMode, Instant, Mib, NoSwap, Priority } from '../../../protocol/units.ts'
import type { SourceEvent } from './event-source.ts'

/** Its activity, without the waits caused by other tasks. */
export interface ObservedWork {
  readonly phases: ReadonlyArray<readonly [busyMs: DurationMs, idleMs: DurationMs]>
  readonly ms: DurationMs
}

/**
 * The log does not say when a task used its GPU, only when it did not: from its swap-out for being idle until
 * it requested its return. All other time counts as work. The time between its request and its return is a
 * wait and does not count.
 */
export class ObservedTask {
  readonly submittedAt: Instant
  readonly gpus: number
  readonly vramMib: Mib
  readonly gpuMode: GpuMode
  readonly noswap: NoSwap
  readonly priority: Priority
  readonly owner: string | null
  /** Number of lost attempts. */
  failedAttempts = 0
  #startedAt: Instant | null = null
  #phases: Array<readonly [DurationMs, DurationMs]> = []
  /** Start of its current work; null while it is out of VRAM. */
  #busySince: Instant | null = null
  /** Since when it is known to be idle. */
  #idleSince: Instant | null = null
  #busyMs = 0

  private constructor(at: Instant, { data, by }: SourceEvent, gpus: number, vramMib: Mib) {
    this.submittedAt = at
    this.gpus = gpus
    this.vramMib = vramMib
    this.gpuMode = data['mode'] === 'exclusive' ? 'exclusive' : 'shared'
    this.noswap = data['noswap'] === 1 ? 1 : 0
    this.priority = isPriority(data['priority']) ? data['priority'] : 2
    this.owner = by === null || by === 'api' ? null : by
  }

  /** From its `task_submitted`; null if that does not contain the request. */
  static submitted(at: Instant, event: SourceEvent): ObservedTask | null {
    const { gpus, vram_mib: vramMib, mode } = event.data
    if (!isWhole(gpus, 1) || !isWhole(vramMib, mode === 'exclusive' ? 0 : 1)) return null
    return new ObservedTask(at, event, gpus, vramMib)
  }

  get hasStarted(): boolean {
    return this.#startedAt !== null
  }

  take(at: Instant, { kind, data }: SourceEvent): void {
    if (kind === 'task_started') this.#start(at)
    else if (kind === 'task_returned') this.#startOver()
    else if (kind === 'task_residency') this.#move(at, data['residency'])
    else if (kind === 'swap_in_decided') this.#ask(at, data['waited_ms'])
  }

  /** Null if it never ran. */
  end(at: Instant): ObservedWork | null {
    if (this.#startedAt === null) return null
    if (this.#busySince !== null) this.#busyMs += at - this.#busySince
    const idleMs = this.#idleSince === null ? 0 : at - this.#idleSince
    this.#close(idleMs)
    const ms = this.#phases.reduce((sum, [busy, idle]) => sum + busy + idle, 0)
    return ms === 0 ? { phases: [[1, 0]], ms: 1 } : { phases: this.#phases, ms }
  }

  #start(at: Instant): void {
    this.#startedAt = at
    this.#busySince = at
  }

  /** The work of an attempt is lost with it; the next attempt repeats it. */
  #startOver(): void {
    if (this.#startedAt !== null) this.failedAttempts += 1
    this.#startedAt = this.#busySince = this.#idleSince = null
    this.#phases = []
    this.#busyMs = 0
  }

  #move(at: Instant, residency: unknown): void {
    if (residency === 'swapping_out' && this.#busySince !== null) {
      this.#busyMs += at - this.#busySince
      this.#busySince = null
      this.#idleSince = at
    } else if (residency === 'resident' && this.#busySince === null && this.#startedAt !== null) {
      // It returns without a request: the swap-out was cancelled, or an operator requested it.
      if (this.#idleSince !== null) this.#close(at - this.#idleSince)
      this.#idleSince = null
      this.#busySince = at
    }
  }

  #ask(at: Instant, waitedMs: unknown): void {
    if (this.#idleSince === null) return
    const askedAt = at - (isWhole(waitedMs, 0) ? waitedMs : 0)
    this.#close(Math.max(0, askedAt - this.#idleSince))
    this.#idleSince = null
  }

  #close(idleMs: DurationMs): void {
    if (this.#busyMs + idleMs > 0) this.#phases.push([this.#busyMs, idleMs])
    this.#busyMs = 0
  }
}

function isWhole(value: unknown, least: number): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= least
}

function isPriority(value: unknown): value is Priority {
  return isWhole(value, 0) && value <= 4
}
