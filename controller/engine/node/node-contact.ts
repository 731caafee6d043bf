/**
 * What the controller knows of a node's word: when it was last heard, and until when it may hold a run lease.
 * The instants are upper bounds by the controller's clock: a lease counts from when the node sent its
 * heartbeat, and clocks differ by 5 % at most (R4, R5).
 */
import type { Boot } from '../../../protocol/messages.ts'
import type { DurationMs, Instant } from '../../../protocol/units.ts'
import type { Policy } from '../../domain/config.ts'
import type { Cluster } from '../cluster.ts'
import type { LiveNode } from '../live.ts'

/**
 * On top of a lease and its 5 %: suspending takes a moment, and so does a leader's discovery that it is none
 * any more (R9).
 */
export const LEASE_MARGIN_MS: DurationMs = 5_000
/** So many heartbeats in a row that are missed make a node suspect: 15 s by default. */
const HEARTBEATS_MISSED = 3

/** When the node sent its last authentic word, by its own clock, and when it came. */
export interface ClockSample {
  boot: Boot
  sentMono: number
  receivedAt: Instant
}

export interface NodeContact {
  /** Its last authentic word, or the start of this controller. */
  heardAt: Instant
  /** The event of its last change of status: the cause of what follows from silence. */
  statusEvent: number | null
  /** The highest number of its messages in this boot. */
  heardSeq: number
  /** The highest number of its messages that carried events. */
  eventSeq: number
  /** The longest lease that it may hold. */
  leaseMs: DurationMs
  /** From here on no lease of it holds: what it must suspend is suspended. */
  leaseEndsAt: Instant
  /** From here on another lease has passed: what it must end has ended. */
  processesEndAt: Instant
  /** Leases longer than the configured one were given; from here on none of them holds. */
  longLeaseEndsAt: Instant
  /**
   * Somebody who spoke in its name was told to begin anew: the next boot knows nothing of what ran before.
   */
  wasReset: boolean
  /** When a boot after such a reset was last accepted. */
  resetBootAt: Instant | null
  /** When the alarm was last raised that two servers have this identity. */
  duplicateAt: Instant | null
  /** Of attempts in doubt: from here on they are suspended, and have ended, wherever they were. */
  doubtEndsAt: Instant
  doubtfulProcessesEndAt: Instant
}

/** Of a node that may hold a lease of this length, as of now. */
export function newNodeContact(leaseMs: DurationMs, wasReset: boolean, now: Instant): NodeContact {
  const contact: NodeContact = {
    heardAt: now,
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
 * The node is answered with a lease: it counts from a message sent before now. An earlier, longer one may
 * still hold.
 */
export function grantLease(contact: NodeContact, leaseMs: DurationMs, now: Instant): void {
  contact.leaseMs = Math.max(contact.leaseMs, leaseMs)
  contact.leaseEndsAt = Math.max(contact.leaseEndsAt, now + windowMs(leaseMs, 1))
  contact.processesEndAt = Math.max(contact.processesEndAt, now + windowMs(leaseMs, 2))
}

/** Nothing of it is given up before then, however long it was silent. */
export function extendLeaseWindows(contact: NodeContact, until: Instant): void {
  contact.leaseEndsAt = Math.max(contact.leaseEndsAt, until)
  contact.processesEndAt = Math.max(contact.processesEndAt, until)
  contact.doubtEndsAt = Math.max(contact.doubtEndsAt, until)
  contact.doubtfulProcessesEndAt = Math.max(contact.doubtfulProcessesEndAt, until)
}

/** How long the controller waits before it counts on the end of so many leases, one after the other. */
export function windowMs(leaseMs: DurationMs, leases: number): DurationMs {
  return Math.ceil((leases * leaseMs * 105) / 100) + LEASE_MARGIN_MS
}

/**
 * The configured lease became shorter: nodes may hold the longer one, also after a restart of the controller.
 */
export function keepLongLeases(c: Cluster, beforeSeconds: number, afterSeconds: number): void {
  if (afterSeconds >= beforeSeconds) return
  for (const node of c.nodes.values()) {
    node.contact.leaseMs = Math.max(node.contact.leaseMs, beforeSeconds * 1000)
    node.contact.longLeaseEndsAt = node.contact.leaseEndsAt
    c.eventLog.dirtyNode(node)
  }
}

/** Leases longer than the configured one are over: only that one counts after a restart. */
export function forgetLongLease(c: Cluster, node: LiveNode, now: Instant): void {
  const { contact } = node
  if (contact.leaseMs <= c.policy.runLeaseMs || now < contact.longLeaseEndsAt) return
  contact.leaseMs = c.policy.runLeaseMs
  c.eventLog.dirtyNode(node)
}

export function suspectAfterMs(policy: Policy): DurationMs {
  return HEARTBEATS_MISSED * policy.heartbeatMs
}

export function isSilent(node: LiveNode, policy: Policy, now: Instant): boolean {
  return now - node.contact.heardAt > suspectAfterMs(policy)
}
