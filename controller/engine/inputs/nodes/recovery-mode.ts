/**
 * Recovery: the store was restored, or a loss was accepted. Nothing is placed, requeued or given up until
 * every known node is heard or an administrator ends it (docs/operating.md, "The store went back").
 */
import type { Instant } from '../../../../protocol/units.ts'
import type { NodeRecord, RecoveryRecord } from '../../../ports/store.ts'
import type { Cluster } from '../../../state/cluster.ts'

export function beginRecovery(
  c: Cluster,
  { reason, sinceWallMs }: RecoveryRecord,
  nodes: readonly NodeRecord[],
  now: Instant,
): void {
  c.recovery = { reason, since: sinceWallMs, awaited: new Set(nodes.map(({ id }) => id)) }
  emit(c, { alarm: 'RECOVERY', isOn: true, by: null }, now)
  // Without nodes the recovery waits for nothing.
  endRecoveryWhenAllHaveSpoken(c, now)
}

/** Ends the recovery once every known node has reported its attempts. */
export function endRecoveryWhenAllHaveSpoken(c: Cluster, now: Instant): void {
  if (c.recovery?.awaited.size === 0) endRecovery(c, null, now)
}

/** @param by the administrator who ended it; null: it ended by itself */
export function endRecovery(c: Cluster, by: string | null, now: Instant): void {
  emit(c, { alarm: null, isOn: false, by }, now)
  c.recovery = null
  c.queueChanges += 1
  c.eventLog.transaction.endsRecovery = true
}

function emit(
  c: Cluster,
  { alarm, isOn, by }: { alarm: string | null; isOn: boolean; by: string | null },
  now: Instant,
): void {
  const { reason, awaited } = c.recovery as NonNullable<Cluster['recovery']>
  c.eventLog.emit(now, 'recovery', null, null, null, {
    alarm,
    is_on: isOn,
    reason,
    nodes_awaited: awaited.size,
    by,
  })
}
