/**
 * Utilization and starvation as percentages of a window (semantics 6; `docs/glossary.md` has the formulas).
 */
import type { DurationMs } from '../../protocol/units.ts'
import type { Counters } from './counters.ts'

export interface StarvationPercent {
  readonly total: number
  readonly queue: number
  readonly swap: number
  readonly compute: number
}

/** 100 × (demand − served) / demand and its three parts; all 0 without demand. */
export function starvationPercent(window: Counters): StarvationPercent {
  if (window.demand === 0) return { total: 0, queue: 0, swap: 0, compute: 0 }
  const share = (part: number) => (100 * part) / window.demand
  return {
    total: share(window.demand - window.served),
    queue: share(window.queue),
    swap: share(window.swap),
    compute: share(window.compute),
  }
}

/** GPU seconds that were demanded and not served. */
export function starvedSeconds({ demand, served }: Counters): number {
  return (demand - served) / 1_000_000
}

/** 100 × busy / (window × GPUs); null if the window or the scope is empty. */
export function utilizationPercent(window: Counters, windowMs: DurationMs, gpus: number): number | null {
  if (windowMs <= 0 || gpus <= 0) return null
  return (100 * window.busy) / (windowMs * 1000 * gpus)
}
