/**
 * The controller's own connection to the broker. While it is away, silence says nothing about the nodes: no
 * node is given up until it is back, and for one lease longer, in which every node that lives is heard again
 * (safety 3; R5). A task lease is not ended meanwhile either.
 */
import type { Instant } from '../../../protocol/units.ts'
import type { Cluster } from '../cluster.ts'
import { extendLeaseWindows, suspectAfterMs, windowMs } from './node-contact.ts'

export interface BrokerAbsence {
  readonly isAway: boolean
  /** Since when it is away, or back; null: it never was away since this controller started. */
  readonly since: Instant | null
  /** Once it is back: until then no node is given up. */
  readonly heldUntil: Instant
  /** It lasted long enough for nodes to be suspect: the alarm was raised. */
  readonly isAlarmed: boolean
}

export const BROKER_PRESENT: BrokerAbsence = { isAway: false, since: null, heldUntil: 0, isAlarmed: false }

/** The connection was lost, or holds again. Returns true if that is new. */
export function setBrokerAway(c: Cluster, isAway: boolean, now: Instant): boolean {
  const { isAway: wasAway, since, isAlarmed } = c.broker
  if (isAway === wasAway) return false
  if (isAway) {
    c.broker = { isAway, since: now, heldUntil: now, isAlarmed: false }
    return true
  }
  c.leases.extend(now - (since ?? now))
  let heldUntil = now
  for (const { contact } of c.nodes.values()) {
    const until = now + windowMs(contact.leaseMs, 1)
    extendLeaseWindows(contact, until)
    heldUntil = Math.max(heldUntil, until)
  }
  c.broker = { isAway, since: now, heldUntil, isAlarmed: false }
  if (isAlarmed) emitAbsence(c, now)
  return true
}

/**
 * Raises the alarm once an absence has lasted as long as silence that makes a node suspect: a restart of the
 * broker is too short for it.
 */
export function alarmBrokerAbsence(c: Cluster, now: Instant): void {
  const { broker } = c
  if (!broker.isAway || broker.isAlarmed || now - (broker.since ?? now) < suspectAfterMs(c.policy)) return
  c.broker = { ...broker, isAlarmed: true }
  emitAbsence(c, now)
}

function emitAbsence(c: Cluster, now: Instant): void {
  const { isAway, heldUntil } = c.broker
  const data = {
    alarm: isAway ? 'BROKER_AWAY' : null,
    is_away: isAway,
    held_until: isAway ? null : heldUntil,
    nodes: c.nodes.size,
  }
  c.eventLog.emit(now, 'broker_absence', null, null, null, data)
}
