/**
 * The host clock may have been set back while no controller ran, by hours after a boot with a wrong clock.
 * Instants in the store would then be in the future: no task would count as idle or waiting until the clock
 * has caught up. Therefore no stored instant is later than now.
 */
import type { Instant } from '../../protocol/units.ts'
import type { NodeDrain } from '../model/node.ts'
import type { NodeRecord, PlacementRecord, TaskRecord } from '../ports/store.ts'

export function taskNotAhead(record: TaskRecord, now: Instant): TaskRecord {
  const { submittedAt, pendingSince, firstStartedAt, placement } = record
  return {
    ...record,
    submittedAt: Math.min(submittedAt, now),
    pendingSince: Math.min(pendingSince, now),
    firstStartedAt: firstStartedAt === null ? null : Math.min(firstStartedAt, now),
    placement: placement === null ? null : placementNotAhead(placement, now),
  }
}

function placementNotAhead(record: PlacementRecord, now: Instant): PlacementRecord {
  const { startedAt, heldGrowth, outSince = null, askedAt = null, backOffUntil = 0, residentSince } = record
  // The latest recorded instant shows how far the clock went back: the back-off ends that much earlier.
  const aheadMs = Math.max(
    0,
    record.idleSince - now,
    record.wantsSince - now,
    residentSince - now,
    (outSince ?? 0) - now,
  )
  return {
    ...record,
    assignedAt: Math.min(record.assignedAt, now),
    startedAt: startedAt === null ? null : Math.min(startedAt, now),
    wantsSince: Math.min(record.wantsSince, now),
    idleSince: Math.min(record.idleSince, now),
    residentSince: Math.min(residentSince, now),
    ...(record.idleFrom === undefined ? {} : { idleFrom: Math.min(record.idleFrom, now) }),
    heldGrowth: heldGrowth === null ? null : { ...heldGrowth, askedAt: Math.min(heldGrowth.askedAt, now) },
    ...(outSince === null ? {} : { outSince: Math.min(outSince, now) }),
    ...(askedAt === null ? {} : { askedAt: Math.min(askedAt, now) }),
    backOffUntil: Math.max(0, backOffUntil - aheadMs),
  }
}

export function nodeNotAhead(record: NodeRecord, now: Instant): NodeRecord {
  const { registeredAt, lastSeenAt, drain } = record
  return {
    ...record,
    registeredAt: Math.min(registeredAt, now),
    lastSeenAt: Math.min(lastSeenAt, now),
    drain: drain === null ? null : drainNotAhead(drain, now),
  }
}

/** Keeps the delay between the order and the move; the move happens at most that long after now. */
function drainNotAhead(drain: NodeDrain, now: Instant): NodeDrain {
  const aheadMs = Math.max(0, drain.since - now)
  return {
    ...drain,
    since: drain.since - aheadMs,
    movesAt: drain.movesAt === null ? null : drain.movesAt - aheadMs,
  }
}
