/**
 * Swap-out and swap-in by an operator. The node decides in the end (R12); known obstacles are refused here
 * with the reason.
 */
import { movableMib } from '../../../model/placement.ts'
import { inMib, secondsUntil } from '../../../model/words.ts'
import type { Instant } from '../../../../protocol/units.ts'
import type { Cluster } from '../../../state/cluster.ts'
import type { Answer } from '../../../model/command.ts'
import { noteLoneSwapOut } from '../../apply/decision-log.ts'
import { askForSwapIn, dropEntry } from '../../apply/lifecycle/entries.ts'
import type { LivePlacement, LiveTask } from '../../../state/facts.ts'
import { isWantedBack } from '../nodes/node-events.ts'
import { orderSwapOut } from '../../apply/vram/enact-entry.ts'

/**
 * Swaps the task out although no task needs its VRAM; it stays out until it wants the GPU. It is not a victim
 * of a decision, so rounds do not count it. If it waits to return only because an operator asked, that
 * request is withdrawn instead.
 */
export function swapOutTask(c: Cluster, id: string, now: Instant): Answer<LiveTask> {
  const placement = placementFor(c, id)
  if ('ok' in placement) return placement
  const { task } = placement
  if (placement.residency === 'swapped_out' && placement.isSwapInRequested && !placement.wantsGpu) {
    callOff(c, placement)
    emitOrdered(c, placement, 'out', now)
    return { ok: true, value: task }
  }
  const refusal = refusalToLeave(placement, now)
  if (refusal !== null) return conflict(`task ${id} ${refusal}`)
  emitOrdered(c, placement, 'out', now)
  noteLoneSwapOut(c, placement, 'operator', now)
  orderSwapOut(c, placement, null, now)
  placement.isSwappedOutByOperator = true
  return { ok: true, value: task }
}

/**
 * An operator requests the return: the task waits in its node's queue as if it wanted the GPU, until it is
 * resident (semantics 5, "Return").
 */
export function swapInTask(c: Cluster, id: string, now: Instant): Answer<LiveTask> {
  const placement = placementFor(c, id)
  if ('ok' in placement) return placement
  const { task, residency } = placement
  if (residency !== 'swapped_out')
    return conflict(`task ${id} is ${residency.replace('_', ' ')}; only a swapped-out task can be swapped in`)
  if (placement.isSwapInRequested) return { ok: true, value: task }
  placement.isSwapInRequested = true
  emitOrdered(c, placement, 'in', now)
  askForSwapIn(c, placement, now)
  return { ok: true, value: task }
}

/**
 * Withdraws the operator's request; the entry stays if the task itself or its probe also requests the return.
 */
function callOff(c: Cluster, placement: LivePlacement): void {
  placement.isSwapInRequested = false
  placement.isSwappedOutByOperator = true
  const { entry, heldGrowth } = placement
  if (entry !== null && !isWantedBack(placement) && heldGrowth === null) dropEntry(c, entry)
}

/** Returns the placement if its server can receive orders for it, otherwise the refusal. */
function placementFor(c: Cluster, id: string): LivePlacement | Answer<never> {
  const task = c.tasks.get(id)
  if (task === undefined) return { ok: false, refusal: { code: 'not_found', what: 'task', id } }
  const { placement } = task
  if (placement === null) return conflict(`task ${id} is pending: it is on no GPU`)
  if (placement.startedAt === null) return conflict(`task ${id} has not started yet`)
  if (placement.stopping !== null)
    return conflict(`task ${id} is being stopped: ${placement.stopping.reason}`)
  if (placement.node.status !== 'up' || task.state === 'unreachable' || placement.isInDoubt) {
    return conflict(`task ${id} cannot be moved: its server ${placement.node.name} does not answer`)
  }
  return placement
}

/** Returns why the task cannot be swapped out now; null if the controller knows no obstacle. */
function refusalToLeave(placement: LivePlacement, now: Instant): string | null {
  const { residency, noswap, wantsGpu, heldGrowth, backOffUntil, gpus, node } = placement
  if (residency !== 'resident')
    return `is ${residency.replace('_', ' ')}; only a resident task can be swapped out`
  if (noswap === 1) return 'is noswap: it stays in VRAM'
  if (wantsGpu) return 'wants the GPU: an active task is not swapped out'
  if (heldGrowth !== null) return 'waits for an allocation, for which it would return at once'
  if (now < backOffUntil)
    return `failed to swap a moment ago; it may be tried again in ${secondsUntil(backOffUntil, now)}`
  const needMib = movableMib(placement) * gpus.length
  const haveMib = node.hostSwapMib - node.hostUsedMib
  return needMib <= haveMib
    ? null
    : `needs ${inMib(needMib)} of host memory to swap to; ${node.name} has ${inMib(haveMib)}`
}

function emitOrdered(
  c: Cluster,
  { task, node, attempt }: LivePlacement,
  direction: 'out' | 'in',
  now: Instant,
): void {
  c.eventLog.taskEvent(now, 'swap_ordered', task, node.id, { attempt, direction })
}

function conflict(detail: string): Answer<never> {
  return { ok: false, refusal: { code: 'conflict', detail } }
}
