/** Real time for paced clocks. */
import type { RealTime } from '../simulator/kernel/paced-clock.ts'

export const REAL_TIME: RealTime = {
  now: () => Date.now(),
  after: (ms, fn) => {
    const timer = setTimeout(fn, ms)
    return () => clearTimeout(timer)
  },
  soon: (fn) => {
    setImmediate(fn)
  },
}
