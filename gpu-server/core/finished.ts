/** How the end of an attempt on the device is told to the controller. */
import type { FinishedEvent } from '../../protocol/messages.ts'
import { MAX_DETAIL_LENGTH } from '../../protocol/schema.ts'
import type { AttemptEnd } from './device.ts'

export function finishedBy({ exitCode, didLeaseEnd }: AttemptEnd): FinishedEvent['outcome'] {
  if (didLeaseEnd) return 'lease_ended'
  if (exitCode === null) return 'lost'
  return exitCode === 0 ? 'completed' : 'failed'
}

/** What a device says may be of any length, the message may not. */
export function wireText(detail: string | null): string | null {
  return detail === null ? null : detail.slice(0, MAX_DETAIL_LENGTH).replaceAll('\u0000', ' ').toWellFormed()
}
