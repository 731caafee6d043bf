/** How often this server repeats itself until the controller answers (R1, R11). */
import type { DurationMs } from '../../protocol/units.ts'
import type { RandomStream } from '../../controller/ports/random.ts'

/** Wait for an answer this long, then try again. */
export const ANSWER_TIMEOUT_MS: DurationMs = 5_000
export const RETRY_FIRST_MS: DurationMs = 250
export const RETRY_MAX_MS: DurationMs = 10_000

export function nextRetryMs(retryMs: DurationMs): DurationMs {
  return Math.min(2 * retryMs, RETRY_MAX_MS)
}

/** ± 20 %, so that a thousand servers do not speak at once (R11). */
export function jittered(ms: DurationMs, random: RandomStream): DurationMs {
  return Math.floor(ms * (0.8 + 0.4 * random()))
}
