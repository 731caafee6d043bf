import type { Clock } from '../../../controller/ports/clock.ts'

/** A clock whose timers wait while it is frozen, as those of a stopped process. */
export function freezableClock(clock: Clock): Clock & { freeze(): void; thaw(): void } {
  let waiting: (() => void)[] | null = null
  const held = (fn: () => void) => () => {
    if (waiting === null) fn()
    else waiting.push(fn)
  }
  return {
    now: () => clock.now(),
    at: (instant, fn, rank) => clock.at(instant, held(fn), rank),
    soon: (fn, rank) => clock.soon(held(fn), rank),
    freeze: () => {
      waiting ??= []
    },
    thaw: () => {
      const due = waiting ?? []
      waiting = null
      for (const fn of due) fn()
    },
  }
}
