/** An attempt that a node reports becomes the attempt of a pending task: the store lost its placement. */
import type { DurationMs, Instant } from '../../../../protocol/units.ts'
import type { QuarantinedAttempt } from '../../../model/node.ts'
import type { Cluster } from '../../../state/cluster.ts'
import { addPlacement } from '../../../state/gpu-ledger.ts'
import type { LiveGpu, LiveNode, LiveTask } from '../../../state/facts.ts'
import { newLivePlacement } from '../../../state/new-facts.ts'
import { setResidency, started } from '../../apply/lifecycle/transitions.ts'
import { askForSwapIn, dropEntry } from '../../apply/lifecycle/entries.ts'
import { forgetRefusals } from '../../apply/lifecycle/refusals.ts'

export interface ReportedAttempt extends Omit<QuarantinedAttempt, 'taskId' | 'since' | 'stoppedBy'> {
  /** Since its last GPU use or its start, as it is reported now. Absent: not known. */
  readonly idleMs?: DurationMs
}

/** pending → running, as the node reports. Returns false if the node has no such GPU. */
export function takeReported(
  c: Cluster,
  node: LiveNode,
  task: LiveTask,
  reported: ReportedAttempt,
  now: Instant,
): boolean {
  const gpus = reported.gpus
    .map((index) => node.gpus[index])
    .filter((gpu): gpu is LiveGpu => gpu !== undefined)
  if (gpus.length === 0 || gpus.length < reported.gpus.length) return false
  if (task.placementEntry !== null) dropEntry(c, task.placementEntry)
  c.dequeue(task)
  forgetRefusals(c, task)
  task.isHeld = false
  c.countPending(task, -1)
  c.countPlaced(task, 1)
  c.enterState(task, 'assigned')
  task.attempt = reported.attempt
  task.lastNodeId = node.id
  const placement = newLivePlacement(task, gpus, reported.vramMib, now)
  task.placement = placement
  for (const gpu of gpus) {
    addPlacement(gpu, placement)
    c.touchGpu(gpu)
  }
  const { idleMs = 0 } = reported
  c.eventLog.taskEvent(now, 'task_placed', task, node.id, {
    attempt: task.attempt,
    gpus: reported.gpus,
    demand_mib: reported.vramMib,
    ...{ when: 'reported', ...(idleMs === 0 ? {} : { idle_ms: idleMs }) },
  })
  if (reported.residency === 'none') return true
  placement.confirmed = { bootCounter: node.boot.counter, seq: node.contact.heardSeq }
  started(c, placement, reported.wantsGpu, now)
  placement.idleSince -= idleMs
  c.eligibilityTimers.update(c, placement, now)
  placement.generation = reported.generation
  if (reported.residency === 'swapped_out' || reported.residency === 'swapping_in') {
    setResidency(c, placement, 'swapped_out', 'reported', now)
    if (placement.wantsGpu) askForSwapIn(c, placement, now)
  }
  // The node may count it under another noswap value.
  placement.isNoswapUnacknowledged = true
  const address = { nodeId: node.id, taskId: task.spec.id, attempt: task.attempt }
  c.eventLog.transaction.effects.push({ kind: 'set_noswap', ...address, noswap: placement.noswap })
  return true
}
