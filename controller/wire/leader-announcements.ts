/**
 * Announces the leader on the bus: its epoch and process. GPU servers that hear of a new leader report to it
 * early; nothing else depends on it.
 */
import type { Envelope } from '../../protocol/envelope.ts'
import type { Leader } from '../../protocol/messages.ts'
import { leaderSubject } from '../../protocol/subjects.ts'
import type { DurationMs } from '../../protocol/units.ts'
import type { Bus } from '../ports/bus.ts'
import { RANK_ARRIVAL } from '../ports/clock.ts'
import type { Clock } from '../ports/clock.ts'

const EVERY_MS: DurationMs = 2_000
/** The first announcements follow each other faster: the connection to the broker may not be ready yet. */
const FIRST_AFTER_MS: DurationMs = 250

export interface LeaderAnnouncementOptions {
  readonly bus: Bus
  readonly clock: Clock
  readonly envelope: (body: Leader) => Envelope
  readonly epoch: () => number
  /** Id of this process. */
  readonly id: string
}

/** Publishes now, at growing intervals, and then every 2 s. @returns a function that stops */
export function publishLeader({ bus, clock, envelope, epoch, id }: LeaderAnnouncementOptions): () => void {
  let cancel = (): void => {}
  let nextMs = FIRST_AFTER_MS
  const tell = (): void => {
    bus.publish(leaderSubject(), envelope({ op: 'leader', epoch: epoch(), id }))
    cancel = clock.at(clock.now() + nextMs, tell, RANK_ARRIVAL)
    nextMs = Math.min(2 * nextMs, EVERY_MS)
  }
  tell()
  return () => cancel()
}
