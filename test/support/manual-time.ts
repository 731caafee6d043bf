import type { RealTime } from '../../simulator/kernel/paced-clock.ts'

interface Planned {
  readonly at: number
  readonly fn: () => void
}

/**
 * Real time under the control of a test; callbacks for "soon" or "after" run when the test advances it, in
 * order.
 */
export function manualTime(start: number): RealTime & { advance(ms: number): Promise<void> } {
  let now = start
  let planned: Planned[] = []
  const next = (until: number): Planned | undefined => {
    let first: Planned | undefined
    for (const each of planned)
      if (each.at <= until && (first === undefined || each.at < first.at)) first = each
    return first
  }
  return {
    now: () => now,
    after(ms, fn) {
      const entry = { at: now + ms, fn }
      planned.push(entry)
      return () => {
        planned = planned.filter((each) => each !== entry)
      }
    },
    soon: (fn) => {
      planned.push({ at: now, fn })
    },
    async advance(ms) {
      const until = now + ms
      for (let due = next(until); due !== undefined; due = next(until)) {
        planned = planned.filter((each) => each !== due)
        now = Math.max(now, due.at)
        due.fn()
        await Promise.resolve()
      }
      now = until
    },
  }
}
