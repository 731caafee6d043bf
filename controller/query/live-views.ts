/** The read side of the engine: `Views` of the live cluster. */
import { ZERO_COUNTERS, sumOf } from '../metrics/counters.ts'
import type { Counters } from '../metrics/counters.ts'
import { settle } from '../metrics/meter.ts'
import { effectiveSchedulableMib, resolveOvercommit } from '../model/vram.ts'
import type { Gpu, Node } from '../model/placement.ts'
import type { Task } from '../model/placement.ts'
import type { Instant } from '../../protocol/units.ts'
import type { Clock } from '../ports/clock.ts'
import type { StoreReads } from '../ports/store.ts'
import { alarmsOf } from './alarms.ts'
import { stopsOf } from '../engine/apply/lifecycle/stops.ts'
import { aheadNodes } from '../engine/inputs/nodes/contacts.ts'
import { absentFrom } from '../engine/inputs/nodes/node-registry.ts'
import type { PauseState } from '../state/placement-pause.ts'
import { pauseOf } from '../state/placement-pause.ts'
import type { Cluster } from '../state/cluster.ts'
import type { OwnMark } from '../state/epoch-history.ts'
import type { Engine } from '../engine/engine.ts'
import { explainFully } from './preview/explain-fully.ts'
import { explainTask } from './explain/explain-task.ts'
import { previewGroup } from './preview/group-preview.ts'
import { snapshotOf } from './cluster-snapshot.ts'
import { predictPlacement } from './preview/prediction.ts'
import { overOf, planConfig, planNodeConfig } from './preview/impact.ts'
import type { LiveGpu, LiveNode, LiveTask } from '../state/facts.ts'
import type { ClusterTotals, RecoveryView, TaskCounts, Views, WaitCounts } from './views.ts'

/**
 * @param areHeartbeatsElided heartbeats that change nothing are not sent: between faults a node that is up
 * counts as heard now
 */
export function createViews(
  engine: Engine,
  clock: Clock,
  stored: StoreReads,
  areHeartbeatsElided = false,
): Views {
  const c = engine.cluster
  return {
    now: () => clock.now(),
    config: () => c.config,
    nodes: () => c.nodes.values(),
    node: (id) => c.nodes.get(id),
    lastHeardAt: (node) => (areHeartbeatsElided && node.status === 'up' ? clock.now() : node.lastSeenAt),
    groups: () => c.groups.values(),
    group: (id) => c.groups.get(id),
    openTasks: () => c.tasks.values(),
    openTasksBefore: (seq) => c.submissions.newestFirst(seq),
    placedTasks: () => placedTasks(c),
    openTask: (id) => c.tasks.get(id),
    counts: () => countsOf(c),
    stoppingCount: () => stopsOf(c, clock.now()).count,
    totals: () => totalsOf(c),
    swapJain: () => c.fairness.jain(),
    lastEventSeq: () => c.eventLog.nextEventSeq - 1,
    alarms: () => alarmsOf(c, clock.now()),
    recovery: () => recoveryOf(c, engine.ownMark),
    explain: (task) => explainTask(c, task as LiveTask, clock.now()),
    explainFully: (task) => explainFully(c, task as LiveTask, clock.now()),
    planConfig: (change) => planConfig(c, change, clock.now()),
    planNodeConfig: (nodeId, change) => planNodeConfig(c, nodeId, change, clock.now()),
    predict: (request) => predictPlacement(c, request, clock.now()),
    previewGroup: (id, nodeIds) => previewGroup(c, id, nodeIds),
    over: () => overOf(c),
    clusterCounters: () => clusterCounters(c, clock.now()),
    nodeCounters: (node: Node) => sumOf((node as LiveNode).gpus.map((gpu) => gpuCounters(gpu, clock.now()))),
    gpuCounters: (gpu: Gpu) => gpuCounters(gpu as LiveGpu, clock.now()),
    pendingCount: () => c.pendingCount,
    waits: (groupId) => waitsOf(c, groupId, clock.now()),
    nodeSwaps: (node: Node) => (node as LiveNode).swaps,
    gpuSwaps: (gpu: Gpu) => (gpu as LiveGpu).swaps,
    gpuCopyMs: (gpu: Gpu) => (gpu as LiveGpu).copyMs,
    activityRuns: () => c.activity.all(),
    snapshot: (tried) => snapshotOf(c, clock.now(), tried),
    taskCounters: (task: Task) => taskCounters(task as LiveTask, clock.now()),
    stored,
  }
}

function recoveryOf(
  c: PauseState & Pick<Cluster, 'nodes' | 'contacts' | 'aheadCount'>,
  ownMark: OwnMark,
): RecoveryView {
  const resultUnknown: Task[] = []
  for (const node of c.nodes.values()) {
    if (node.deferred === null || !node.deferred.isAfterLoss) continue
    for (const { task } of absentFrom(node, new Set(node.deferred.present))) resultUnknown.push(task)
  }
  return {
    pause: pauseOf(c),
    recovery: c.recovery,
    awaitedSinceStart: [...(c.startWait?.awaited ?? [])],
    ownMark,
    aheadNodes: aheadNodes(c),
    contacts: c.contacts.size,
    resultUnknown,
  }
}

/** Returns the sum over all GPUs ever known, and the demand of tasks that wait for a placement. */
export function clusterCounters(
  c: Pick<Cluster, 'nodes' | 'waiting' | 'ofForgotten'>,
  now: Instant,
): Counters {
  c.waiting.settle(now)
  const { servedUs: served, swapUs: swap, computeUs: compute } = c.ofForgotten
  const counters = { ...ZERO_COUNTERS, served, swap, compute }
  for (const node of c.nodes.values()) {
    for (const gpu of node.gpus) {
      settle(gpu.meter, now)
      counters.served += gpu.meter.servedUs
      counters.swap += gpu.meter.swapUs
      counters.compute += gpu.meter.computeUs
    }
  }
  counters.queue = c.waiting.queueUs
  counters.busy = counters.served
  counters.demand = counters.served + counters.queue + counters.swap + counters.compute
  return counters
}

export function gpuCounters(gpu: LiveGpu, now: Instant): Counters {
  settle(gpu.meter, now)
  const { servedUs: served, swapUs: swap, computeUs: compute } = gpu.meter
  return { demand: served + swap + compute, served, queue: 0, swap, compute, busy: served }
}

function waitsOf(c: Pick<Cluster, 'waiting'>, groupId: string | undefined, now: Instant): WaitCounts {
  if (groupId !== undefined) return c.waiting.groups.of(groupId, now) ?? NO_WAIT
  c.waiting.settle(now)
  return { tasks: c.waiting.tasks, queueUs: c.waiting.queueUs }
}

const NO_WAIT: WaitCounts = { tasks: 0, queueUs: 0 }

function taskCounters(task: LiveTask, now: Instant): Counters {
  const { placement } = task
  if (placement !== null) for (const gpu of placement.gpus) settle(gpu.meter, now)
  const served = task.servedUs + (placement?.servedUs ?? 0)
  const compute = task.computeUs + (placement?.computeUs ?? 0)
  const waiting = task.waitCountedFrom === null ? 0 : (now - task.waitCountedFrom) * 1000 * task.spec.gpuCount
  const away = task.awayFrom === null ? 0 : (now - task.awayFrom) * 1000 * task.spec.gpuCount
  const queue = task.queueUs + waiting
  const swap = task.swapUs + away
  return { demand: served + queue + swap + compute, served, queue, swap, compute, busy: served }
}

function countsOf(c: Pick<Cluster, 'tasks' | 'tasksIn' | 'pendingCount' | 'finished'>): TaskCounts {
  const { assigned, unreachable } = c.tasksIn
  return {
    pending: c.pendingCount,
    assigned,
    running: c.tasks.size - c.pendingCount - assigned - unreachable,
    unreachable,
    ...c.finished,
  }
}

/** Yields each task once, at the first of its GPUs. */
function* placedTasks(c: Pick<Cluster, 'nodes'>): Generator<LiveTask> {
  for (const node of c.nodes.values()) {
    for (const gpu of node.gpus)
      for (const placement of gpu.placements) if (placement.gpus[0] === gpu) yield placement.task
  }
}

function totalsOf(c: Pick<Cluster, 'nodes' | 'policy' | 'swapTotals'>): ClusterTotals {
  const sum = {
    nodes: 0,
    nodesUp: 0,
    gpus: 0,
    gpusUp: 0,
    physicalMib: 0,
    effectiveSchedulableMib: 0,
    commitLimitMib: 0,
  }
  const use = { residentMib: 0, committedMib: 0, swappedMib: 0, foreignMib: 0 }
  for (const node of c.nodes.values()) {
    const isUp = node.status === 'up'
    const { percent } = resolveOvercommit(c.policy.overcommitPercent, node.overcommitOverride)
    sum.nodes += 1
    sum.nodesUp += isUp ? 1 : 0
    for (const gpu of node.gpus) {
      sum.gpus += 1
      sum.gpusUp += isUp ? 1 : 0
      sum.physicalMib += gpu.physicalMib
      sum.effectiveSchedulableMib += effectiveSchedulableMib(gpu.physicalMib, percent)
      sum.commitLimitMib += gpu.limitMib
      const residentMib = gpu.noswapResidentMib + gpu.swappableResidentMib
      use.residentMib += residentMib
      use.committedMib += gpu.noswapMib + gpu.swappableMib
      use.foreignMib += gpu.foreignMib
    }
    use.swappedMib += node.hostUsedMib
  }
  const { swapOuts, swapIns, swappedOutMib, swappedInMib } = c.swapTotals
  return {
    ...sum,
    ...use,
    swapOuts,
    swapIns,
    swappedOutMibTotal: swappedOutMib,
    swappedInMibTotal: swappedInMib,
  }
}
