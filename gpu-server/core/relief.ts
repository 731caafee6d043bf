/**
 * Less VRAM than the reserve is free on a GPU, by the device's measurement: the server swaps a task out by
 * itself and reports it to the controller (R12; protocol, "Allocation pressure").
 */
import type { DurationMs, Instant, Mib } from '../../protocol/units.ts'
import { byCodeUnits, firstDifference } from '../../controller/structures/order.ts'
import type { Attempt } from './attempt.ts'
import type { Parts } from './parts.ts'
import type { Swaps } from './swaps.ts'

/** Interval of reports to the controller while no task can be swapped out. */
const REPORT_INTERVAL_MS: DurationMs = 60_000

/**
 * Order of swap-out.
 * 1. Priority classes below P0.
 * 2. The earliest last swap-out; never is earliest.
 * 3. The longest idle time.
 * 4. Task id, so that the order is total.
 */
const byLeavingOrder = firstDifference<Attempt>(
  (a, b) => Number(a.priority === 0) - Number(b.priority === 0),
  (a, b) => (a.lastSwapOutAt ?? -1) - (b.lastSwapOutAt ?? -1),
  (a, b) => a.lastUseAt - b.lastUseAt,
  (a, b) => byCodeUnits(a.taskId, b.taskId),
)

export class Relief {
  readonly #parts: Parts
  readonly #swaps: Swaps
  /** By GPU: time of the last report to the controller. */
  readonly #reportedAt = new Map<number, Instant>()

  constructor(parts: Parts, swaps: Swaps) {
    this.#parts = parts
    this.#swaps = swaps
  }

  /** One swap-out at a time: it may be enough. */
  measured(gpu: number, freeMib: Mib): void {
    const { reserveMib } = this.#parts.ledger
    if (freeMib >= reserveMib || reserveMib === Infinity) return
    const here = [...this.#parts.tasks.all()].filter((attempt) => attempt.gpus.includes(gpu))
    if (here.some(({ residency }) => residency === 'swapping_out')) return
    const inOrder = here.toSorted(byLeavingOrder)
    const leaving = inOrder.find((attempt) => this.#swaps.relieve(attempt)) ?? null
    const named = leaving ?? inOrder.find(({ residency }) => residency === 'resident')
    const isQuiet = this.#parts.clock.now() < (this.#reportedAt.get(gpu) ?? -Infinity) + REPORT_INTERVAL_MS
    if (named === undefined || (leaving === null && isQuiet)) return
    this.#reportedAt.set(gpu, this.#parts.clock.now())
    this.#parts.emit({
      n: 0,
      kind: 'reserve_breached',
      task_id: named.taskId,
      attempt: named.attempt,
      gpu,
      free_mib: freeMib,
    })
  }
}
