import type { DurationMs } from '../../protocol/units.ts'
import type { Work } from './trace-format.ts'

/** GPU work of a task on each of its GPUs, in ms on an idle GPU. */
export function busyMsOf(work: Work): DurationMs {
  switch (work.kind) {
    case 'duration':
      return work.ms
    case 'phases': {
      let busyMs = 0
      for (const phase of work.phases) busyMs += phase[0]
      return busyMs
    }
    case 'bursts': {
      let busyMs = 0
      for (const burst of work.at) busyMs += burst[1]
      return busyMs
    }
  }
}

/** Wall time from start to end of a task that runs alone on idle GPUs: the divisor of its slowdown. */
export function aloneMsOf(work: Work): DurationMs {
  switch (work.kind) {
    case 'duration':
      return work.ms
    case 'phases': {
      let ms = 0
      for (const phase of work.phases) ms += phase[0] + phase[1]
      return ms
    }
    case 'bursts': {
      let doneMs = 0
      for (const [offsetMs, busyMs] of work.at) doneMs = Math.max(doneMs, offsetMs) + busyMs
      return Math.max(doneMs, work.stayMs)
    }
  }
}
