/**
 * The brake on mass silence: when many nodes become silent together, the controller is more likely cut off
 * than all of them dead. Nothing is requeued or given up until they are back, forgotten, or declared dead by
 * an operator.
 */
import type { RequeueFreeze } from '../../../model/controller-status.ts'
import type { Instant } from '../../../../protocol/units.ts'
import { judgeSilence } from '../../../policy/freeze.ts'
import type { Cluster } from '../../../state/cluster.ts'
import { extendLeaseWindows, isSilent } from '../../../state/node-contact.ts'

/**
 * Nodes that were cut off return within this time: a server retries after at most 12 s, and its hello is
 * spread.
 */
const BACK_WITHIN_MS = 30_000

/** Freezes or unfreezes. Returns true if anything changed. */
export function updateFreeze(c: Cluster, now: Instant): boolean {
  const { freeze } = c
  const lastWords: Instant[] = []
  const released = new Set<string>()
  for (const node of c.nodes.values()) {
    if (!isSilent(node, c.policy, now)) continue
    if (freeze.released.has(node.id)) released.add(node.id)
    else lastWords.push(node.contact.heardAt)
  }
  const { isFrozen, silentNodes } = judgeSilence(lastWords, c.nodes.size, c.policy.heartbeatMs)
  if (isFrozen === freeze.isFrozen) {
    c.freeze = { ...freeze, released, silentNodes }
    return false
  }
  const data = {
    alarm: isFrozen ? 'MASS_SILENCE' : null,
    is_frozen: isFrozen,
    silent_nodes: silentNodes,
    nodes: c.nodes.size,
    by: null,
  }
  if (!isFrozen) awaitOthers(c, released, now)
  c.freeze = {
    isFrozen,
    since: now,
    silentNodes,
    released,
    event: c.eventLog.emit(now, 'requeue_freeze', null, null, null, data),
  }
  return true
}

/**
 * Enough nodes are back to blame the network: the others get time to be heard before anything of them is
 * given up.
 */
function awaitOthers(c: Cluster, released: ReadonlySet<string>, now: Instant): void {
  for (const node of c.nodes.values()) {
    if (isSilent(node, c.policy, now) && !released.has(node.id))
      extendLeaseWindows(node.contact, now + BACK_WITHIN_MS)
  }
}

/** An operator declares that the silent nodes are dead. */
export function releaseFreeze(c: Cluster, by: string, now: Instant): RequeueFreeze {
  if (!c.freeze.isFrozen) return c.freeze
  const released = new Set(c.freeze.released)
  for (const node of c.nodes.values()) if (isSilent(node, c.policy, now)) released.add(node.id)
  const data = { alarm: null, is_frozen: false, silent_nodes: c.freeze.silentNodes, nodes: c.nodes.size, by }
  c.freeze = {
    isFrozen: false,
    since: now,
    silentNodes: 0,
    released,
    event: c.eventLog.emit(now, 'requeue_freeze', null, null, null, data),
  }
  return c.freeze
}
