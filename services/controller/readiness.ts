/** The controller's own checks for /readyz. */
import type { ReadinessCheck } from '../../controller/api/context.ts'
import type { ProcessMetrics } from '../../controller/api/metrics/process-metrics.ts'
import type { Controller } from '../../controller/controller.ts'

/** With a delay of the event loop this long, clients run into timeouts. */
const MAX_LOOP_DELAY_S = 5

export function ownChecks(
  { engine }: Controller,
  process: Pick<ProcessMetrics, 'eventLoopDelayMaxSeconds'>,
): readonly ReadinessCheck[] {
  const isRecovered = engine.epoch > 0
  const delayS = process.eventLoopDelayMaxSeconds()
  const isLate = delayS > MAX_LOOP_DELAY_S
  return [
    { name: 'store', ok: !engine.isFaulty, detail: engine.isFaulty ? 'the store has failed' : 'ok' },
    { name: 'recovery', ok: isRecovered, detail: isRecovered ? 'ok' : 'reading the store' },
    { name: 'event_loop', ok: !isLate, detail: isLate ? `it was ${delayS.toFixed(1)} s late` : 'ok' },
  ]
}
