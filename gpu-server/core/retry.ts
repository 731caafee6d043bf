/** Retry intervals of requests to the controller (R1, R11). */
import type { DurationMs } from '../../protocol/units.ts'
import type { RandomStream } from '../../controller/ports/random.ts'

/** Time to wait for an answer before a retry. */
export const ANSWER_TIMEOUT_MS: DurationMs = 5_000
export const RETRY_FIRST_MS: DurationMs = 250
export const RETRY_MAX_MS: DurationMs = 10_000

export function nextRetryMs(retryMs: DurationMs): DurationMs {
  return Math.min(2 * retryMs, RETRY_MAX_MS)
}

/** ± 20%, so that a thousand servers do not send at the same time (R11). */
export function jittered(ms: DurationMs, random: RandomStream): DurationMs {
  return Math.floor(ms * (0.8 + 0.4 * random()))
}
