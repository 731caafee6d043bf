/**
 * Every transition of a task, each with exactly one event (semantics 3). They keep ledger, meters, indexes
 * and records consistent; callers decide whether a transition is right.
 */
import type { Instant, Mib, NoSwap } from '../../../../protocol/units.ts'
import type { TaskEnd } from '../../../model/end-reason.ts'
import { isPlainEnd } from '../../../model/end-reason.ts'
import type { EventData } from '../../../model/event.ts'
import { afterStart } from '../../../model/start-refusal.ts'
import { type Residency } from '../../../../protocol/units.ts'
import { mayQueue, movableMib } from '../../../model/placement.ts'
import { addSharer, removeSharer, settle } from '../../../metrics/meter.ts'
import { capacityForSwappableMib, hasHostRoomToGrow } from '../../../policy/placement/feasible.ts'
import { victimClassOf } from '../../../model/victim-class.ts'
import { forgetTask } from '../../../policy/swap/rounds.ts'
import type { Cluster } from '../../../state/cluster.ts'
import type { Considered } from '../decision-log.ts'
import { noteGrowth, notePlacement } from '../decision-log.ts'
import {
  addPlacement,
  changeNoswap,
  changeResidency,
  changeResidual,
  countHostMemory,
  growPlacement,
  refreshLargestSwappable,
  removePlacement,
} from '../../../state/gpu-ledger.ts'
import type { LiveGpu, LivePlacement, LiveTask, SwapTotals } from '../../../state/facts.ts'
import { newLivePlacement } from '../../../state/new-facts.ts'
import { askForSwapIn, dropEntry, resumeGrowth } from './entries.ts'
import { startEffect } from '../node-commands.ts'
import { overtakeGivenUp } from './given-up.ts'
import { noteStarted, noteTrial, noteUnstarted } from './auto-cordon.ts'
import { forgetProbe, planProbe } from './probes.ts'
import { setEligible } from '../../../state/index/eligibility-timers.ts'
import { forgetRefusals, liftRefusals } from './refusals.ts'
import { forgetPreparations } from './preparations.ts'
import { forgetTries } from './start-tries.ts'
import { forgetRuntime, startRuntimeLimit } from './runtime-limits.ts'

/** pending → assigned: attempt + 1, GPUs committed, `start` ordered (R2). */
export function assign(
  c: Cluster,
  task: LiveTask,
  gpus: readonly LiveGpu[],
  when: string,
  now: Instant,
  considered: Considered | null = null,
): void {
  c.dequeue(task)
  if (task.placementEntry !== null) dropEntry(c, task.placementEntry)
  forgetPreparations(c, task)
  c.countPending(task, -1)
  c.countPlaced(task, 1)
  c.enterState(task, 'assigned')
  forgetTries(c, task)
  task.attempt += 1
  const demandMib =
    task.spec.vramMib > 0 ? task.spec.vramMib : Math.min(...gpus.map((gpu) => gpu.capacityMib))
  const placement = newLivePlacement(task, gpus, demandMib, now)
  task.placement = placement
  task.lastNodeId = placement.node.id
  for (const gpu of gpus) {
    addPlacement(gpu, placement)
    c.gpuLostRoom(gpu)
  }
  noteTrial(c, placement)
  const node = placement.node
  const indexes = gpus.map((gpu) => gpu.index)
  const causedBy = task.lastEventSeq
  c.eventLog.taskEvent(now, 'task_placed', task, node.id, {
    attempt: task.attempt,
    gpus: indexes,
    demand_mib: demandMib,
    when,
  })
  notePlacement(c, placement, considered, when, causedBy)
  c.eventLog.transaction.effects.push(startEffect(placement, c.policy))
}

/** assigned → running: resident from now on; the wait is over. */
export function started(c: Cluster, placement: LivePlacement, wantsGpu: boolean, now: Instant): void {
  const task = placement.task
  c.waiting.end(task, now)
  beginMeterChange(placement, now)
  c.enterState(task, 'running')
  task.firstStartedAt ??= now
  // Not earlier: the task would alternate between two nodes that refuse it.
  if (task.refusedBy !== null) forgetRefusals(c, task)
  overtakeGivenUp(task)
  task.trouble = afterStart(task.trouble)
  placement.startedAt = now
  placement.residency = 'resident'
  placement.generation = 1
  placement.residentSince = placement.idleFrom = now
  placement.idleSince = now
  placement.wantsGpu = wantsGpu
  placement.wantsSince = now
  endMeterChange(placement, now)
  c.eligibilityTimers.update(c, placement, now)
  startRuntimeLimit(c, placement)
  // Waiting entries may count on its VRAM from now on, and so may collect.
  if (placement.node.queue.length > 0) c.touchNode(placement.node)
  c.eventLog.taskEvent(now, 'task_started', task, placement.node.id, { attempt: placement.attempt })
  noteStarted(c, placement, now)
}

/**
 * assigned or running → pending again: the node refused it, never saw it, or is lost and the task may be
 * requeued.
 */
export function returnToPending(
  c: Cluster,
  placement: LivePlacement,
  reason: string,
  now: Instant,
  more: EventData = {},
): void {
  const task = placement.task
  const nodeId = placement.node.id
  unplace(c, placement, now)
  c.enterState(task, 'pending')
  task.pendingSince = now
  c.countPending(task, 1)
  c.eventLog.taskEvent(now, 'task_returned', task, nodeId, { attempt: placement.attempt, reason, ...more })
  if (mayQueue(task)) c.enqueue(task, now)
  c.waiting.begin(task, now)
  // A refused start has freed nothing.
  if (placement.startedAt !== null) liftRefusals(c, placement.node)
}

/** running → unreachable: its service is unknown, so its demand is not counted meanwhile. */
export function loseSight(c: Cluster, placement: LivePlacement, now: Instant): void {
  const { task, node, attempt } = placement
  beginMeterChange(placement, now)
  c.enterState(task, 'unreachable')
  endMeterChange(placement, now)
  c.eventLog.taskEvent(now, 'task_unreachable', task, node.id, {
    attempt,
    on_node_loss: task.spec.onNodeLoss,
  })
}

/** unreachable → running: its server reports it. */
export function reachAgain(c: Cluster, placement: LivePlacement, now: Instant): void {
  const { task, node, attempt } = placement
  beginMeterChange(placement, now)
  c.enterState(task, 'running')
  endMeterChange(placement, now)
  c.eagerChecks.add(node)
  c.eventLog.taskEvent(now, 'task_reachable', task, node.id, { attempt })
}

/** Any open state → a final one. */
export function finish(c: Cluster, task: LiveTask, end: TaskEnd, now: Instant): void {
  const { state, code, exitCode, reason } = end
  const nodeId = task.placement?.node.id ?? null
  if (task.placement === null) {
    c.dequeue(task)
    if (task.placementEntry !== null) dropEntry(c, task.placementEntry)
    forgetPreparations(c, task)
    c.countPending(task, -1)
  } else {
    const { node } = task.placement
    noteEndedUnconfirmed(c, task.placement)
    unplace(c, task.placement, now)
    liftRefusals(c, node)
  }
  if (task.refusedBy !== null) forgetRefusals(c, task)
  forgetTries(c, task)
  if (task.trouble.pause !== null) task.trouble = { ...task.trouble, pause: null }
  c.waiting.end(task, now)
  c.enterState(task, state)
  task.finishedAt = now
  task.exitCode = exitCode
  task.endCode = code
  task.endReason = reason
  c.finished[state] += 1
  const why = isPlainEnd(code) ? {} : { code }
  c.eventLog.taskEvent(now, 'task_finished', task, nodeId, {
    state,
    attempt: end.attempt ?? task.attempt,
    exit_code: exitCode,
    reason,
    ...why,
  })
  c.tasks.delete(task.spec.id)
}

/** Its node has not reported the end, so it may name the attempt again. */
function noteEndedUnconfirmed({ endedUnconfirmed }: Cluster, { task, node, attempt }: LivePlacement): void {
  if (node.status === 'up') return
  endedUnconfirmed.set(task.spec.id, attempt)
  if (endedUnconfirmed.size > MAX_ENDED_UNCONFIRMED)
    endedUnconfirmed.delete(endedUnconfirmed.keys().next().value as string)
}

/** Bounds the memory; attempts beyond it are stopped one snapshot later. */
const MAX_ENDED_UNCONFIRMED = 4_096

/** The task starts or stops wanting the GPU. `idleMs`: time since its last use, when it stops. */
export function changeWants(
  c: Cluster,
  placement: LivePlacement,
  wantsGpu: boolean,
  idleMs: number,
  now: Instant,
): void {
  if (placement.wantsGpu !== wantsGpu) {
    c.activity.ended(placement, now)
    beginMeterChange(placement, now)
    placement.wantsGpu = wantsGpu
    placement.wantsSince = now
    endMeterChange(placement, now)
    // A restart must know it; it is not a transition, so there is no event.
    c.eventLog.dirtyTask(placement.task)
  }
  if (!wantsGpu) placement.idleSince = Math.max(placement.idleFrom, now - idleMs)
  c.eligibilityTimers.update(c, placement, now)
}

/** Whether its server reports requests for it while it is out. */
export function setWakeable(c: Cluster, placement: LivePlacement, isWakeable: boolean, now: Instant): void {
  if (placement.residency !== 'swapped_out' || placement.isWakeable === isWakeable) return
  placement.isWakeable = isWakeable
  planProbe(c, placement, now)
  c.eagerChecks.add(placement.node)
  c.eventLog.dirtyTask(placement.task)
}

/**
 * A swap-out ended: `residualMib` of it stay in VRAM on each GPU. A figure above its demand says nothing
 * about what it takes back.
 */
export function setSwappedOut(
  c: Cluster,
  placement: LivePlacement,
  residualMib: Mib,
  because: string | null,
  now: Instant,
): void {
  if (placement.isEligible) setEligible(c, placement, false)
  const keptMib = Math.min(residualMib, placement.demandMib)
  if (placement.residualMib !== keptMib) {
    changeResidual(placement, keptMib)
    c.eventLog.dirtyTask(placement.task)
    for (const gpu of placement.gpus) c.touchGpu(gpu)
    if (placement.residency === 'swapped_out') noteResidency(c, placement, because, now)
  }
  setResidency(c, placement, 'swapped_out', because, now)
}

function noteResidency(
  c: Cluster,
  placement: LivePlacement,
  because: string | null,
  now: Instant,
  causedBy = placement.task.lastEventSeq,
): void {
  const { residency, generation, residualMib, task, node } = placement
  const left = residency === 'swapped_out' && residualMib > 0 ? { residual_mib: residualMib } : {}
  const data = { residency, generation, because, ...left }
  c.eventLog.taskEvent(now, 'task_residency', task, node.id, data, causedBy)
}

/** One step on the residency axis. The first step of a victim has the decision as its cause. */
export function setResidency(
  c: Cluster,
  placement: LivePlacement,
  to: Residency,
  because: string | null,
  now: Instant,
  causedBy = placement.task.lastEventSeq,
): void {
  const from = placement.residency
  if (from === to) return
  // A growth asks for more where the task is, a return for what it lacks there.
  if (placement.entry !== null) dropEntry(c, placement.entry)
  beginMeterChange(placement, now)
  placement.residency = to
  for (const gpu of placement.gpus) changeResidency(gpu, placement, from, to)
  countHostMemory(placement, from, to)
  // A cancelled swap-out has interrupted nothing.
  if (to === 'resident' && from !== 'swapping_out') {
    placement.residentSince = now
    if (!placement.isEager) placement.idleSince = placement.idleFrom = now
  }
  if (to !== 'swapping_out') placement.leavesFor = null
  endMeterChange(placement, now)
  c.eligibilityTimers.update(c, placement, now)
  countSwaps(c, placement, from, to)
  countCopy(placement, to, now)
  if (to === 'resident') {
    placement.isProbed = placement.isSwapInRequested = placement.isSwappedOutByOperator = false
    placement.swappedOutSince = null
    placement.isWakeable = false
    placement.outBy = null
  } else if (to === 'swapped_out') placement.swappedOutSince ??= now
  planProbe(c, placement, now)
  for (const gpu of placement.gpus) c.touchGpu(gpu)
  noteResidency(c, placement, because, now, causedBy)
  if (placement.heldGrowth === null) return
  if (to === 'resident') resumeGrowth(c, placement)
  else if (to === 'swapped_out') askForReturnGrown(c, placement, now)
}

/**
 * With a held allocation the task does not stay out: it returns with the requested demand if that can ever be
 * resident (semantics 1, "growth").
 */
function askForReturnGrown(c: Cluster, placement: LivePlacement, now: Instant): void {
  const { heldGrowth, demandMib, residualMib } = placement
  if (heldGrowth === null) return
  const isPossible =
    placement.gpus.every((gpu) => heldGrowth.mib - residualMib <= capacityForSwappableMib(gpu)) &&
    hasHostRoomToGrow(placement.gpus, heldGrowth.mib - demandMib, placement.noswap === 1)
  if (heldGrowth.mib > demandMib && isPossible) {
    grow(c, placement, heldGrowth.mib, now)
    noteGrowth(c, placement, null, heldGrowth.mib - demandMib, now)
    c.eventLog.transaction.effects.push({
      kind: 'grant',
      nodeId: placement.node.id,
      taskId: placement.task.spec.id,
      attempt: placement.attempt,
      mib: heldGrowth.mib,
      reason: 'after_return',
    })
  }
  askForSwapIn(c, placement, now)
}

/** Raises the demand to `mib` per GPU. */
export function grow(c: Cluster, placement: LivePlacement, mib: Mib, now: Instant): void {
  const byMib = mib - placement.demandMib
  const wasEligible = placement.isEligible
  if (wasEligible) setEligible(c, placement, false)
  for (const gpu of placement.gpus) growPlacement(gpu, placement, byMib)
  if (placement.residency !== 'resident') placement.node.hostUsedMib += byMib * placement.gpus.length
  placement.demandMib = mib
  if (wasEligible) setEligible(c, placement, true)
  for (const gpu of placement.gpus) c.touchGpu(gpu)
  c.eventLog.taskEvent(now, 'growth_granted', placement.task, placement.node.id, {
    attempt: placement.attempt,
    demand_mib: mib,
  })
}

/** Accounts the placement under the other noswap value. */
export function setNoswap(c: Cluster, placement: LivePlacement, noswap: NoSwap, now: Instant): void {
  if (placement.noswap === noswap) return
  for (const gpu of placement.gpus) changeNoswap(gpu, placement, noswap)
  placement.noswap = noswap
  placement.isNoswapUnacknowledged = true
  for (const gpu of placement.gpus) {
    refreshLargestSwappable(gpu)
    c.touchGpu(gpu)
  }
  c.eligibilityTimers.update(c, placement, now)
  c.eventLog.transaction.effects.push({
    kind: 'set_noswap',
    nodeId: placement.node.id,
    taskId: placement.task.spec.id,
    attempt: placement.attempt,
    noswap,
  })
}

/** Adds a restored placement to the meters from now on. */
export function resumeMetering(placement: LivePlacement, now: Instant): void {
  beginMeterChange(placement, now)
  endMeterChange(placement, now)
}

/** Removes a placement from its GPUs. */
function unplace(c: Cluster, placement: LivePlacement, now: Instant): void {
  const task = placement.task
  beginMeterChange(placement, now)
  placement.wantsGpu = false
  endMeterChange(placement, now)
  if (placement.entry !== null) dropEntry(c, placement.entry)
  if (placement.isEligible) setEligible(c, placement, false)
  countHostMemory(placement, placement.residency, 'none')
  for (const gpu of placement.gpus) {
    removePlacement(gpu, placement)
    forgetTask(gpu.rounds, task.spec.id)
    c.fairness.leaves(gpu.fairnessScopes[victimClassOf(task.spec)], task.spec.id)
    c.touchGpu(gpu)
  }
  forgetRuntime(c, placement)
  forgetProbe(c, placement)
  c.countPlaced(task, -1)
  if (placement.startedAt === null) noteUnstarted(c, placement)
  task.servedUs += placement.servedUs
  task.computeUs += placement.computeUs
  task.placement = null
}

function countSwaps(c: Cluster, placement: LivePlacement, from: Residency, to: Residency): void {
  const { node, gpus } = placement
  const mib = movableMib(placement)
  if (from === 'swapping_out' && to === 'swapped_out') {
    placement.task.swapOuts += 1
    for (const totals of [c.swapTotals, node.swaps]) countSwapOut(totals, mib * gpus.length)
    for (const gpu of gpus) countSwapOut(gpu.swaps, mib)
  } else if (from === 'swapping_in' && to === 'resident') {
    for (const totals of [c.swapTotals, node.swaps]) countSwapIn(totals, mib * gpus.length)
    for (const gpu of gpus) countSwapIn(gpu.swaps, mib)
  }
}

function countCopy(placement: LivePlacement, to: Residency, now: Instant): void {
  const { movingSince, gpus } = placement
  if (movingSince !== null) for (const gpu of gpus) gpu.copyMs += now - movingSince
  placement.movingSince = to === 'swapping_out' || to === 'swapping_in' ? now : null
}

function countSwapOut(totals: SwapTotals, mib: Mib): void {
  totals.swapOuts += 1
  totals.swappedOutMib += mib
}

function countSwapIn(totals: SwapTotals, mib: Mib): void {
  totals.swapIns += 1
  totals.swappedInMib += mib
}

/** Settles the meters of the placement's GPUs before its sharing changes. */
function beginMeterChange(placement: LivePlacement, now: Instant): void {
  for (const gpu of placement.gpus) settle(gpu.meter, now)
}

/** Counts the placement as a sharer, as swapped out while wanting the GPU, or neither. */
function endMeterChange(placement: LivePlacement, now: Instant): void {
  const task = placement.task
  const isStarted = placement.startedAt !== null && task.state !== 'unreachable'
  const isSharing = isStarted && placement.wantsGpu && placement.residency === 'resident'
  const isAway = isStarted && placement.wantsGpu && placement.residency !== 'resident'
  if (isSharing !== placement.isSharing) {
    placement.isSharing = isSharing
    for (const gpu of placement.gpus) {
      if (isSharing) addSharer(gpu.meter, placement)
      else removeSharer(gpu.meter, placement)
    }
  }
  if (isAway === (task.awayFrom !== null)) return
  if (isAway) task.awayFrom = now
  else {
    task.swapUs += (now - (task.awayFrom as Instant)) * 1000 * placement.gpus.length
    task.awayFrom = null
  }
  for (const gpu of placement.gpus) gpu.meter.awayCount += isAway ? 1 : -1
}
