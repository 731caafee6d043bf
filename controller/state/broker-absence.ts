/**
 * The controller's own connection to the broker. Without it silence says nothing about the nodes: no node is
 * given up until the connection is restored and one lease has passed, in which every live node is heard again
 * (safety 3; R5). Task leases do not end in the meantime.
 */
import type { Instant } from '../../protocol/units.ts'
import type { Cluster } from './cluster.ts'
import { extendLeaseWindows, suspectAfterMs, windowMs } from './node-contact.ts'

/** Records that the connection was lost or restored. Returns true if that is a change. */
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
 * Raises the alarm once an absence has lasted as long as the silence that makes a node suspect. A restart of
 * the broker is shorter.
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
