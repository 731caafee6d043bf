/**
 * Silence and what follows from it (R4, R5): a node is suspect first, and unreachable when its run lease is
 * over for sure; then every task goes the way its `on_node_loss` says. What was never confirmed is pending
 * again once the node must have ended it.
 */
import type { Instant } from '../../../protocol/units.ts'
import type { Cluster } from '../cluster.ts'
import type { LiveNode, LivePlacement } from '../live.ts'
import { alarmBrokerAbsence } from './broker-absence.ts'
import { aheadOf } from './contacts.ts'
import { pauseOf } from './placement-pause.ts'
import { noteGivenUp } from './given-up.ts'
import { endLost, endOfStopped } from './node-events.ts'
import { placementsOn, setStatus } from './node-registry.ts'
import { forgetLongLease, isSilent } from './node-contact.ts'
import { updateFreeze } from './requeue-freeze.ts'
import { finish, loseSight, returnToPending } from '../transitions.ts'

/** One look at all nodes. Says whether anything changed. */
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
  // Who hears no node cannot say which of them are gone.
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

/** Not while the store may lack a part of its history, and never what a node holds that has heard of more. */
function mayGiveUp(c: Cluster, node: LiveNode): boolean {
  return pauseOf(c) === null && aheadOf(c, node.id) === null
}

/** Its time is counted from here on, as if the silence so far had not been: nobody could be heard. */
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

/** Says whether the task has changed its state. */
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
  // The lease ends the others; one that waits for its node may still run, and never runs again.
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

/** Its start was never confirmed: the node has ended it by now, if it ever began (R4, R5). */
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
    returnToPending(c, placement, 'start_unconfirmed', now)
  }
  return true
}
