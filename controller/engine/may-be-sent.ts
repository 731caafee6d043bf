import type { Effect } from '../model/effect.ts'
import type { Cluster } from '../state/cluster.ts'
import { aheadOf } from './inputs/nodes/contacts.ts'
import { pauseOf } from '../state/placement-pause.ts'

/**
 * Returns false for effects on a node that is ahead of the store or was not answered yet, and for all starts
 * while placements are paused. A node ignores commands of a controller that has not answered it.
 */
export function mayBeSent(c: Cluster, { kind, nodeId }: Effect): boolean {
  if ((kind === 'start' || kind === 'prepare') && pauseOf(c) !== null) return false
  return c.nodes.get(nodeId)?.contact.isAnswered !== false && aheadOf(c, nodeId) === null
}
