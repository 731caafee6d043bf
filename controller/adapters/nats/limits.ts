/**
 * Limits and counters of the bus over NATS. Beyond a limit work is refused at its source, which retries
 * later.
 */
import type { DurationMs } from '../../../protocol/units.ts'
import type { MalformedReason } from '../../../protocol/codec.ts'

export interface NatsLimits {
  /** Maximum number of requests in flight. */
  readonly maxOutstandingRequests: number
  /**
   * Maximum of bytes that the connection has not sent: beyond, requests fail as `unsendable`, publications
   * and replies are dropped.
   */
  readonly maxUnsentBytes: number
  /** Maximum of incoming messages waiting for their handler: further ones are dropped. */
  readonly maxWaitingMessages: number
  readonly maxWaitingBytes: number
  /** Time slice of handlers, after which sockets and timers run. */
  readonly turnMs: DurationMs
  /**
   * Interval of pings to the broker, which counts as lost when two are unanswered before the third is due.
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

/** Counters since the bus was created. */
export interface BusCounts {
  /** Connections made: the first, and each one after a loss. */
  connections: number
  /** Messages that reached a handler. */
  handled: number
  requests: number
  /** Outcomes of requests: together with those in flight they add up to `requests`. */
  answers: number
  timeouts: number
  noResponders: number
  disconnected: number
  unsendable: number
  /** Answers after the request had ended. */
  lateAnswers: number
  /** Dropped because too many messages waited: this process is too slow for its input. */
  overrun: number
  /**
   * Publications and replies that were not sent: too large, no connection, too much unsent, or a reply to a
   * request of an earlier connection.
   */
  dropped: number
  /** Payloads that were no message, by reason. */
  readonly malformed: Record<MalformedReason, number>
  /** Publications or subscriptions that the broker forbade. */
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
