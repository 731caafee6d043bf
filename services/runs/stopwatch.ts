/** Times of a run: not in result.json, because they differ every time. */
import { threadCpuMs } from '../../controller/api/observe/thread-cpu.ts'
import type { Stopwatch } from '../../simulator/run/run.ts'

export interface Timing {
  /**
   * User and system time of the whole process so far, including its start, without workers; for one of
   * several runs, of its thread.
   */
  readonly cpu_s: number
  /** Since the start of the process, or of the run. */
  readonly wall_s: number
  /** Time spent deciding: the controller's cycles. */
  readonly decide_s: number
}

export interface DecisionStopwatch extends Stopwatch {
  readonly elapsedMs: number
}

export function createStopwatch(): DecisionStopwatch {
  let startedAt = 0
  let elapsedMs = 0
  return {
    start: () => {
      startedAt = performance.now()
    },
    stop: () => {
      elapsedMs += performance.now() - startedAt
    },
    get elapsedMs() {
      return elapsedMs
    },
  }
}

export function processTiming(stopwatch: DecisionStopwatch | null): Timing {
  const { user, system } = process.cpuUsage()
  return timing((user + system) / 1000, performance.now(), stopwatch)
}

/** For one of several runs in this process: measured in its own thread from now on. */
export function startTiming(stopwatch: DecisionStopwatch): () => Timing {
  const cpu = threadCpuMs()
  const wall = performance.now()
  return () => timing(threadCpuMs() - cpu, performance.now() - wall, stopwatch)
}

function timing(cpuMs: number, wallMs: number, stopwatch: DecisionStopwatch | null): Timing {
  return { cpu_s: seconds(cpuMs), wall_s: seconds(wallMs), decide_s: seconds(stopwatch?.elapsedMs ?? 0) }
}

function seconds(ms: number): number {
  return Math.round(ms) / 1000
}
