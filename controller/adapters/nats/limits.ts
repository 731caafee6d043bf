/**
 * What a bus over NATS holds at most, and what it counts. Past a limit work is refused at its source, which
 * tries again later.
 */
import type { DurationMs } from '../../../protocol/units.ts'
import type { MalformedReason } from '../../../protocol/codec.ts'

export interface NatsLimits {
  /** Requests without an outcome. */
  readonly maxOutstandingRequests: number
  /**
   * Bytes that the connection has not taken yet: more, and requests fail as `unsendable`, publications and
   * replies are dropped.
   */
  readonly maxUnsentBytes: number
  /** Messages that came in and wait for their handler: more, and those that follow are dropped. */
  readonly maxWaitingMessages: number
  readonly maxWaitingBytes: number
  /** Handlers run for so long, then sockets and timers have their turn. */
  readonly turnMs: DurationMs
  /**
   * The broker is asked whether it is there so often, and counts as gone when two are not answered before the
   * third is due.
   */
  readonly pingEveryMs: DurationMs
}

export const DEFAULT_LIMITS: NatsLimits = {
  maxOutstandingRequests: 65_536,
  maxUnsentBytes: 64 * 1024 * 1024,
  maxWaitingMessages: 65_536,
  maxWaitingBytes: 64 * 1024 * 1024,
  turnMs: 8,
  pingEveryMs: 5_000,
}

/** Since the bus was made. */
export interface BusCounts {
  /** Connections made: the first, and each one after a loss. */
  connections: number
  /** Came in and reached a handler. */
  handled: number
  requests: number
  /** Outcomes of requests: together with those under way they add up to `requests`. */
  answers: number
  timeouts: number
  noResponders: number
  disconnected: number
  unsendable: number
  /** Answers for which nobody waits any more. */
  lateAnswers: number
  /** Came in while too much waited already: this process is too slow for what it hears. */
  overrun: number
  /**
   * Publications and replies that were not sent: too large, no connection, too much unsent, or a reply whose
   * request came over an earlier connection.
   */
  dropped: number
  /** Came in and was no message, by reason. */
  readonly malformed: Record<MalformedReason, number>
  /** The broker forbade a publication or a subscription. */
  denied: number
}

export function newCounts(): BusCounts {
  return {
    connections: 0,
    handled: 0,
    requests: 0,
    answers: 0,
    timeouts: 0,
    noResponders: 0,
    disconnected: 0,
    unsendable: 0,
    lateAnswers: 0,
    overrun: 0,
    dropped: 0,
    malformed: { too_large: 0, not_json: 0, wrong_version: 0, bad_field: 0 },
    denied: 0,
  }
}
