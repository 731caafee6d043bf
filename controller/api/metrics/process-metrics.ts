/**
 * Resources of the process: CPU, memory, open files, and the delay of its event loop. Names without our
 * prefix are those of Prometheus.
 */
import { readdirSync } from 'node:fs'
import { monitorEventLoopDelay, performance } from 'node:perf_hooks'
import { counters, gauge, gauges, counted, type Metrics } from './metrics.ts'

/** The delay is reported for a window of this length, so that two readers see the same value. */
const WINDOW_MS = 10_000
const RESOLUTION_MS = 10
const NS_PER_S = 1e9
const US_PER_S = 1e6
/**
 * The label is not called `quantile`: that name belongs to summaries, and `promtool check metrics` refuses it
 * on a gauge.
 */
const PERCENTILES = [50, 90, 99, 100] as const

export interface ProcessMetrics {
  /** The longest delay of the event loop in the last or the current window, in seconds. */
  eventLoopDelayMaxSeconds(): number
  stop(): void
}

export function measureProcess(metrics: Metrics): ProcessMetrics {
  const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
  delay.enable()
  let last: readonly number[] | null = null
  const read = (): readonly number[] =>
    PERCENTILES.map((p) => lateBy(p === 100 ? delay.max : delay.percentile(p)))
  const timer = setInterval(() => {
    last = read()
    delay.reset()
  }, WINDOW_MS).unref()
  addProcess(metrics)
  metrics.add(
    gauges(
      'headroom_event_loop_delay_seconds',
      `Event loop delay in the last complete window of ${WINDOW_MS / 1000} s; percentile 100 is the maximum.`,
      ['percentile'],
      function* () {
        const values = last ?? read()
        for (const [i, p] of PERCENTILES.entries()) yield { labels: [String(p)], value: values[i] as number }
      },
    ),
    counters(
      'headroom_event_loop_seconds_total',
      'Time that the event loop was busy or idle.',
      ['state'],
      function* () {
        const { active, idle } = performance.eventLoopUtilization()
        yield { labels: ['active'], value: active / 1000 }
        yield { labels: ['idle'], value: idle / 1000 }
      },
    ),
  )
  return {
    eventLoopDelayMaxSeconds: () => Math.max(last?.at(-1) ?? 0, lateBy(delay.max)),
    stop: () => {
      clearInterval(timer)
      delay.disable()
    },
  }
}

/** The monitor's own interval is not a delay; before its first tick its value is 0 or invalid. */
function lateBy(nanoseconds: number): number {
  if (!Number.isFinite(nanoseconds) || nanoseconds > Number.MAX_SAFE_INTEGER) return 0
  return Math.max(0, nanoseconds / NS_PER_S - RESOLUTION_MS / 1000)
}

function addProcess(metrics: Metrics): void {
  const startedAt = (performance.timeOrigin + performance.now()) / 1000 - process.uptime()
  metrics.add(
    counted('process_cpu_seconds_total', 'CPU time of the process, user and system.', () => {
      const { user, system } = process.cpuUsage()
      return (user + system) / US_PER_S
    }),
    gauge('process_resident_memory_bytes', 'Resident memory.', () => process.memoryUsage.rss()),
    gauge('process_start_time_seconds', 'Start time of the process, since the Unix epoch.', () => startedAt),
    gauge('process_open_fds', 'Open file descriptors.', openFiles),
    gauge('nodejs_heap_size_used_bytes', 'Memory used in the V8 heap.', () => process.memoryUsage().heapUsed),
    gauge(
      'nodejs_external_memory_bytes',
      'Memory of buffers and bindings outside the V8 heap.',
      () => process.memoryUsage().external,
    ),
  )
}

/** Only Linux reports it. */
function openFiles(): number | null {
  try {
    return readdirSync('/proc/self/fd').length
  } catch {
    return null
  }
}
