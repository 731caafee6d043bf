/** Real time as paced clocks take it. */
import type { RealTime } from '../../simulator/paced-clock.ts'

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
