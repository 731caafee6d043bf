/** Reports the end of an attempt on the device to the controller. */
import type { FinishedEvent } from '../../protocol/messages.ts'
import { MAX_DETAIL_LENGTH } from '../../protocol/limits.ts'
import type { AttemptEnd } from './device.ts'

/** Why this server, or its device, ended an attempt; null: it did not. */
export type EndsAs = 'stopped' | 'lease_ended' | null

/** An end that the process reached by itself takes precedence over orders in between. */
export function finishedBy(
  { exitCode, didEndItself, didLeaseEnd }: AttemptEnd,
  endsAs: EndsAs = null,
): FinishedEvent['outcome'] {
  if (!didEndItself && endsAs !== null) return endsAs
  if (!didEndItself && didLeaseEnd) return 'lease_ended'
  if (exitCode === null) return 'lost'
  return exitCode === 0 ? 'completed' : 'failed'
}

/** Detail of a stop with a grace that ended before the task could run: it was swapped out or frozen. */
export const NEVER_RAN = 'it could not run within the stop grace, and ended without handling SIGTERM'

/** Returns the detail in addition to the outcome. A signal from the guard says nothing about the task. */
export function detailOf(
  outcome: FinishedEvent['outcome'],
  detail: string | null,
  isStartAcknowledged: boolean,
): string | null {
  if (outcome !== 'lease_ended') return wireText(detail)
  return isStartAcknowledged
    ? 'the run lease was over'
    : 'the run lease was over before the start was confirmed'
}

/** Shortens a device's detail of any length to the limit of the message. */
function wireText(detail: string | null): string | null {
  return detail === null ? null : detail.slice(0, MAX_DETAIL_LENGTH).replaceAll('\u0000', ' ').toWellFormed()
}
