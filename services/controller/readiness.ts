/** The controller's own checks for /readyz. */
import { statfs } from 'node:fs/promises'
import type { ReadinessCheck } from '../../controller/api/context.ts'
import type { ProcessMetrics } from '../../controller/api/metrics/process-metrics.ts'
import type { Controller } from '../../controller/controller.ts'

/** With a delay of the event loop this long, clients run into timeouts. */
const MAX_LOOP_DELAY_S = 5

export function ownChecks(
  { status }: Controller,
  process: Pick<ProcessMetrics, 'eventLoopDelayMaxSeconds'>,
): readonly ReadinessCheck[] {
  const isRecovered = status.epoch > 0
  const delayS = process.eventLoopDelayMaxSeconds()
  const isLate = delayS > MAX_LOOP_DELAY_S
  return [
    { name: 'store', ok: !status.isFaulty, detail: status.isFaulty ? 'the store has failed' : 'ok' },
    { name: 'recovery', ok: isRecovered, detail: isRecovered ? 'ok' : 'reading the store' },
    { name: 'event_loop', ok: !isLate, detail: isLate ? `it was ${delayS.toFixed(1)} s late` : 'ok' },
  ]
}

/**
 * Measures the free space on the disk of the store periodically: a disk that hangs must not block the
 * controller.
 */

const CHECK_INTERVAL_MS = 5_000
/** Below this a write may fail at any moment. */
const MIN_FREE_BYTES = 33_554_432

interface DiskMonitor {
  /** null: not known yet, or not reported by the file system. */
  freeBytes(): number | null
  check(): ReadinessCheck
  stop(): void
}

/** @param ask returns the state of the file system; replaced in tests */
export function monitorDisk(
  folder: string,
  ask: (folder: string) => Promise<{ readonly bavail: number; readonly bsize: number }> = statfs,
): DiskMonitor {
  let free: number | null = null
  let isLooking = false
  const look = async (): Promise<void> => {
    if (isLooking) return
    isLooking = true
    try {
      const { bavail, bsize } = await ask(folder)
      free = bavail * bsize
    } catch {
      free = null
    }
    isLooking = false
  }
  void look()
  const timer = setInterval(() => void look(), CHECK_INTERVAL_MS).unref()
  return {
    freeBytes: () => free,
    check: () => {
      const isShort = free !== null && free < MIN_FREE_BYTES
      const known = free === null ? 'not known' : 'ok'
      // /readyz is public: the amount of free space is only in the metrics.
      return {
        name: 'disk',
        ok: !isShort,
        detail: isShort ? 'the disk of the data folder is low on space' : known,
      }
    },
    stop: () => clearInterval(timer),
  }
}
