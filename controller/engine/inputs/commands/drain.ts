/**
 * Cordons and drains. A drained node takes no new task; its tasks end in their own time, and from an instant
 * on those that may be requeued (`on_node_loss: requeue`) are stopped and wait for another node. The drain
 * lasts until the node is uncordoned or forgotten.
 */
import type { DurationMs, Instant } from '../../../../protocol/units.ts'
import type { Cluster } from '../../../state/cluster.ts'
import type { Answer } from '../../../model/command.ts'
import type { LiveNode } from '../../../state/facts.ts'
import { endAutoCordon } from '../../apply/lifecycle/auto-cordon.ts'
import { tryRefusedAgain } from '../../apply/lifecycle/start-tries.ts'
import { placementsOn } from '../../../state/placements-on.ts'
import { orderStop } from '../../apply/lifecycle/stops.ts'
import { stopGraceOf } from '../../apply/node-commands.ts'

/** Cordons or uncordons the node. Uncordoning ends a drain. */
export function setCordon(c: Cluster, nodeId: string, isCordoned: boolean, now: Instant): Answer<LiveNode> {
  const node = c.nodes.get(nodeId)
  if (node === undefined) return { ok: false, refusal: { code: 'not_found', what: 'node', id: nodeId } }
  if (!isCordoned) {
    endDrain(c, node, now)
    endAutoCordon(c, node, 'uncordoned', now)
  }
  if (node.isCordoned !== isCordoned) {
    node.isCordoned = isCordoned
    for (const gpu of node.gpus) c.touchGpu(gpu)
    c.eventLog.emit(now, 'node_config_changed', null, node.id, null, { is_cordoned: isCordoned })
    c.eventLog.dirtyNode(node)
    if (!isCordoned) tryRefusedAgain(c, 'node_uncordoned', now)
  }
  return { ok: true, value: node }
}

/**
 * @param moveAfterMs delay after which tasks that may be requeued are moved; null: never. A later call
 * replaces an earlier one.
 */
export function drainNode(
  c: Cluster,
  nodeId: string,
  moveAfterMs: DurationMs | null,
  by: string,
  now: Instant,
): Answer<LiveNode> {
  const closed = setCordon(c, nodeId, true, now)
  if (!closed.ok) return closed
  const node = closed.value
  const movesAt = moveAfterMs === null ? null : now + moveAfterMs
  const tasks = placementsOn(node).size
  const event = c.eventLog.emit(now, 'node_drain', null, node.id, null, {
    is_draining: true,
    tasks,
    moves_at: movesAt,
  })
  node.drain = { since: node.drain?.since ?? now, movesAt, by, event }
  c.eventLog.dirtyNode(node)
  if (movesAt !== null && movesAt <= now) {
    node.cancelDrain?.()
    node.cancelDrain = null
    moveTasks(c, node, now)
  } else resumeDrain(c, node)
  return { ok: true, value: node }
}

/** Moves that have begun continue. */
function endDrain(c: Cluster, node: LiveNode, now: Instant): void {
  if (node.drain === null) return
  node.drain = null
  node.cancelDrain?.()
  node.cancelDrain = null
  c.eventLog.emit(now, 'node_drain', null, node.id, null, {
    is_draining: false,
    tasks: placementsOn(node).size,
    moves_at: null,
  })
  c.eventLog.dirtyNode(node)
}

/**
 * Plans the instant from which on tasks are moved; also after a restart of the controller, which may have
 * missed it.
 */
export function resumeDrain(c: Cluster, node: LiveNode): void {
  node.cancelDrain?.()
  node.cancelDrain = null
  const movesAt = node.drain?.movesAt ?? null
  if (movesAt === null) return
  node.cancelDrain = c.wake(movesAt, (now) => beginMoving(c, node, now))
}

/** Runs when its timer is due. */
export function beginMoving(c: Cluster, node: LiveNode, now: Instant): void {
  node.cancelDrain = null
  moveTasks(c, node, now)
}

function moveTasks(c: Cluster, node: LiveNode, now: Instant): void {
  if (node.drain === null) return
  const { by, event } = node.drain
  for (const placement of placementsOn(node)) {
    if (placement.stopping !== null || placement.task.spec.onNodeLoss !== 'requeue') continue
    orderStop(
      c,
      placement,
      {
        then: 'pending',
        reason: `its node is drained by ${by}`,
        endReason: null,
        graceMs: stopGraceOf(placement.task, c.policy),
      },
      now,
      event,
    )
  }
}
