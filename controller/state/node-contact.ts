/**
 * The last contact with a node, and the window in which it may hold a run lease. The instants are upper
 * bounds on the controller's clock: a lease counts from when the node sent its heartbeat, and clocks differ
 * by at most 5% (R4, R5).
 */
import type { DurationMs, Instant } from '../../protocol/units.ts'

/**
 * Added to a lease and its 5%: suspending takes a moment, and so does a leader's discovery that it was
 * replaced (R9).
 */
const LEASE_MARGIN_MS: DurationMs = 5_000
/** Number of consecutive missed heartbeats that make a node suspect: 15 s by default. */
const HEARTBEATS_MISSED = 3

export interface NodeContact {
  /** Its last authentic message, or the start of this controller. */
  heardAt: Instant
  /** It was given a lease by this controller, and obeys it from then on (R5). */
  isAnswered: boolean
  /** The event of its last status change: the cause of the consequences of silence. */
  statusEvent: number | null
  /** The highest number of its messages in this boot. */
  heardSeq: number
  /** The highest number of its messages that carried events. */
  eventSeq: number
  /** The longest lease that it may hold. */
  leaseMs: DurationMs
  /** From here on no lease holds: tasks that it must suspend are suspended. */
  leaseEndsAt: Instant
  /** From here on a second lease has passed: tasks that it must end have ended. */
  processesEndAt: Instant
  /** Leases longer than the configured one were given; from here on none of them holds. */
  longLeaseEndsAt: Instant
  /**
   * A sender with its identity was told to start a new boot: that boot knows nothing about earlier attempts.
   */
  wasReset: boolean
  /** When a boot after such a reset was last accepted. */
  resetBootAt: Instant | null
  /** When the alarm about two servers with this identity was last raised. */
  duplicateAt: Instant | null
  /** Attempts in doubt: from these instants on they are suspended, and have ended, on any server. */
  doubtEndsAt: Instant
  doubtfulProcessesEndAt: Instant
}

/** For a node that may hold a lease of this length from now on. */
export function newNodeContact(leaseMs: DurationMs, wasReset: boolean, now: Instant): NodeContact {
  const contact: NodeContact = {
    heardAt: now,
    isAnswered: false,
    statusEvent: null,
    heardSeq: 0,
    eventSeq: 0,
    leaseMs,
    leaseEndsAt: now,
    processesEndAt: now,
    longLeaseEndsAt: now,
    wasReset,
    resetBootAt: null,
    duplicateAt: null,
    doubtEndsAt: 0,
    doubtfulProcessesEndAt: 0,
  }
  grantLease(contact, leaseMs, now)
  contact.longLeaseEndsAt = contact.leaseEndsAt
  contact.doubtEndsAt = contact.leaseEndsAt
  contact.doubtfulProcessesEndAt = contact.processesEndAt
  return contact
}

/**
 * The answer gives the node a lease: it counts from a message sent before now. An earlier, longer one may
 * still hold.
 */
export function grantLease(contact: NodeContact, leaseMs: DurationMs, now: Instant): void {
  contact.leaseMs = Math.max(contact.leaseMs, leaseMs)
  contact.leaseEndsAt = Math.max(contact.leaseEndsAt, now + windowMs(leaseMs, 1))
  contact.processesEndAt = Math.max(contact.processesEndAt, now + windowMs(leaseMs, 2))
}

/** Nothing on the node is given up before this instant. */
export function extendLeaseWindows(contact: NodeContact, until: Instant): void {
  contact.leaseEndsAt = Math.max(contact.leaseEndsAt, until)
  contact.processesEndAt = Math.max(contact.processesEndAt, until)
  contact.doubtEndsAt = Math.max(contact.doubtEndsAt, until)
  contact.doubtfulProcessesEndAt = Math.max(contact.doubtfulProcessesEndAt, until)
}

/** Returns how long the controller waits for the end of consecutive leases. */
export function windowMs(leaseMs: DurationMs, leases: number): DurationMs {
  return Math.ceil((leases * leaseMs * 105) / 100) + LEASE_MARGIN_MS
}

/** The part of the policy that silence depends on. */
type HeartbeatPolicy = { readonly heartbeatMs: DurationMs }

export function suspectAfterMs({ heartbeatMs }: HeartbeatPolicy): DurationMs {
  return HEARTBEATS_MISSED * heartbeatMs
}

export function isSilent(
  { contact }: { readonly contact: NodeContact },
  policy: HeartbeatPolicy,
  now: Instant,
): boolean {
  return now - contact.heardAt > suspectAfterMs(policy)
}
