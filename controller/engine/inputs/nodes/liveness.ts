/**
 * Silence and its consequences (R4, R5): a node becomes suspect, then unreachable when its run lease is
 * certainly over; then `on_node_loss` decides about each task. Unconfirmed starts become pending again once
 * the node must have ended them.
 */
import type { Instant } from '../../../../protocol/units.ts'
import type { Cluster } from '../../../state/cluster.ts'
import type { LiveNode, LivePlacement } from '../../../state/facts.ts'
import { alarmBrokerAbsence } from '../../../state/broker-absence.ts'
import { aheadOf } from './contacts.ts'
import { pauseOf } from '../../../state/placement-pause.ts'
import { noteGivenUp } from '../../apply/lifecycle/given-up.ts'
import { endLost, endOfStopped } from './node-events.ts'
import { setStatus } from './node-registry.ts'
import { placementsOn } from '../../../state/placements-on.ts'
import { isSilent } from '../../../state/node-contact.ts'
import { updateFreeze } from './requeue-freeze.ts'
import { finish, loseSight } from '../../apply/lifecycle/transitions.ts'
import { returnUnlessSuperseded } from './quarantine.ts'

/** Checks all nodes. Returns true if anything changed. */
export function updateLiveness(c: Cluster, now: Instant): boolean {
  let isChanged = false
  for (const node of c.nodes.values()) {
    forgetLongLease(c, node, now)
    if (node.status !== 'up' || !isSilent(node, c.policy, now)) continue
    setStatus(c, node, 'suspect', now)
    isChanged = true
  }
  isChanged = updateFreeze(c, now) || isChanged
  alarmBrokerAbsence(c, now)
  // Without the broker no node can be heard, so that none is given up.
  if (c.broker.isAway) return isChanged
  for (const node of c.nodes.values()) {
    if (node.status === 'suspect' && isSilent(node, c.policy, now) && now >= node.contact.leaseEndsAt) {
      setStatus(c, node, 'unreachable', now)
      isChanged = true
    }
    if (mayGiveUp(c, node)) isChanged = settleNode(c, node, now) || isChanged
  }
  return isChanged
}

/**
 * Returns false while the store may lack a part of its history, and for a node that is ahead of the store.
 */
function mayGiveUp(c: Cluster, node: LiveNode): boolean {
  return pauseOf(c) === null && aheadOf(c, node.id) === null
}

/** Extends all deadlines by the time in which no message could arrive. */
export function extendGrace(c: Cluster, deafMs: number): void {
  for (const { contact } of c.nodes.values()) {
    contact.heardAt += deafMs
    contact.leaseEndsAt += deafMs
    contact.processesEndAt += deafMs
    contact.longLeaseEndsAt += deafMs
    contact.doubtEndsAt += deafMs
    contact.doubtfulProcessesEndAt += deafMs
  }
}

function settleNode(c: Cluster, node: LiveNode, now: Instant): boolean {
  const isSilentFor = node.status === 'unreachable'
  let isChanged = false
  for (const placement of placementsOn(node)) {
    if (!isSilentFor && !placement.isInDoubt) continue
    isChanged = settlePlacement(c, placement, now) || isChanged
  }
  return isChanged
}

/** Returns true if the state of the task changed. */
function settlePlacement(c: Cluster, placement: LivePlacement, now: Instant): boolean {
  const { task, node, stopping, startedAt, isInDoubt } = placement
  if (startedAt === null) return settleUnconfirmed(c, placement, now)
  if (
    isInDoubt
      ? now < node.contact.doubtEndsAt
      : node.status !== 'unreachable' || now < node.contact.leaseEndsAt
  )
    return false
  task.lastEventSeq = node.contact.statusEvent ?? task.lastEventSeq
  const detail = isInDoubt ? 'its server has lost its state' : 'its server is unreachable'
  // Other tasks end with the lease. A task with `wait` may still run, and is not started again.
  const isEnded = task.spec.onNodeLoss !== 'wait'
  if (stopping !== null && stopping.then !== 'pending') {
    finish(c, task, endOfStopped(stopping.then, stopping, null, `${stopping.reason}; ${detail}`), now)
  } else if (isEnded && !c.freeze.isFrozen) {
    noteGivenUp(placement)
    endLost(c, placement, 'node_unreachable', detail, now)
  } else if (isInDoubt && !c.freeze.isFrozen) {
    finish(c, task, { state: 'lost', code: 'node_state_lost', exitCode: null, reason: detail }, now)
  } else if (task.state === 'running' && !isInDoubt) loseSight(c, placement, now)
  else return false
  return true
}

/** The start was never confirmed: if the attempt ever began, the node has ended it by now (R4, R5). */
function settleUnconfirmed(c: Cluster, placement: LivePlacement, now: Instant): boolean {
  const { task, node, stopping, isInDoubt } = placement
  if (
    now <
      (isInDoubt
        ? Math.max(node.contact.doubtfulProcessesEndAt, node.contact.doubtEndsAt)
        : node.contact.processesEndAt) ||
    c.freeze.isFrozen
  )
    return false
  if (stopping !== null && stopping.then !== 'pending') {
    finish(c, task, endOfStopped(stopping.then, stopping, null, stopping.reason), now)
  } else {
    noteGivenUp(placement)
    returnUnlessSuperseded(c, placement, 'start_unconfirmed', now)
  }
  return true
}

/** Leases longer than the configured one are over: after a restart only the configured one counts. */
function forgetLongLease(c: Cluster, node: LiveNode, now: Instant): void {
  const { contact } = node
  if (contact.leaseMs <= c.policy.runLeaseMs || now < contact.longLeaseEndsAt) return
  contact.leaseMs = c.policy.runLeaseMs
  c.eventLog.dirtyNode(node)
}
