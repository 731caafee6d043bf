/** Restores captured state into an empty cluster. */
import type { Instant } from '../../../protocol/units.ts'
import { policyOf } from '../../model/config.ts'
import type { Reservation } from '../../model/placement.ts'
import type { TaskSpec } from '../../model/task.ts'
import { newGpuMeter } from '../../metrics/meter.ts'
import type { CancelTimer, TimerId } from '../../ports/clock.ts'
import type { Cluster } from '../../state/cluster.ts'
import { openTrial } from '../apply/lifecycle/auto-cordon.ts'
import { nextTry } from '../apply/lifecycle/start-tries.ts'
import { beginMoving } from '../inputs/commands/drain.ts'
import type { LiveEntry, LiveGpu, LiveNode, LivePlacement, LiveTask } from '../../state/facts.ts'
import { newLiveGpu, newLivePlacement, newLiveTask } from '../../state/facts.ts'
import { revisitQueue } from '../apply/vram/node-queue.ts'
import { requestEagerCheck } from '../apply/vram/eager-returns.ts'
import { runProbe } from '../apply/lifecycle/probes.ts'
import { nodeOf } from '../../state/records.ts'
import { overrun } from '../apply/lifecycle/runtime-limits.ts'
import { restoreStoreStatus } from './store-status.ts'
import type {
  ClusterCheckpoint,
  EntryNumber,
  GpuNumber,
  ReservationCheckpoint,
  NodeCheckpoint,
  NodeNumber,
  TaskCheckpoint,
  TaskNumber,
} from './cluster-checkpoint.ts'
import {
  ENTRY_FIELDS,
  fieldsOf,
  GPU_FIELDS,
  NODE_FIELDS,
  PLACEMENT_FIELDS,
  TASK_FIELDS,
} from './live-fields.ts'

/** @param wake sets a timer of the cluster again */
export function restoreCluster(
  c: Cluster,
  checkpoint: ClusterCheckpoint,
  wake: (id: TimerId, fn: (now: Instant) => void) => CancelTimer,
): void {
  new ClusterRestore(c, checkpoint, wake).restore()
}

class ClusterRestore {
  readonly #c: Cluster
  readonly #checkpoint: ClusterCheckpoint
  readonly #wake: (id: TimerId, fn: (now: Instant) => void) => CancelTimer
  readonly #tasks: readonly LiveTask[]
  readonly #nodes: readonly LiveNode[]
  readonly #headReservations = new Map<string, Reservation>()

  constructor(
    c: Cluster,
    checkpoint: ClusterCheckpoint,
    wake: (id: TimerId, fn: (now: Instant) => void) => CancelTimer,
  ) {
    this.#c = c
    this.#checkpoint = checkpoint
    this.#wake = wake
    this.#tasks = checkpoint.tasks.map((task) =>
      Object.assign(newLiveTask(task.spec, task.pendingSince), fieldsOf(task, TASK_FIELDS)),
    )
    this.#nodes = checkpoint.nodes.map(bareNode)
  }

  restore(): void {
    const [c, m] = [this.#c, this.#checkpoint]
    c.config = m.config
    c.policy = policyOf(m.config.fields)
    for (const group of m.groups) c.groups.set(group.id, group)
    for (const node of this.#nodes) c.addNode(node)
    for (const { key } of m.pools) c.poolFor(key)
    m.tasks.forEach((checkpoint, number) => this.#place(this.#task(number), checkpoint))
    m.nodes.forEach((checkpoint, number) => this.#queue(this.#node(number), checkpoint))
    m.tasks.forEach((checkpoint, number) => this.#linkEntries(this.#task(number), checkpoint))
    m.nodes.forEach((checkpoint, number) => this.#fill(this.#node(number), checkpoint))
    for (const spec of m.queues) c.queueFor(spec as TaskSpec)
    for (let number = 0; number < m.openCount; number++)
      this.#open(this.#task(number), m.tasks[number] as TaskCheckpoint)
    this.#restorePools()
    this.#restoreTimers()
    this.#restoreRest()
  }

  #task(number: TaskNumber): LiveTask {
    return this.#tasks[number] as LiveTask
  }

  #node(number: NodeNumber): LiveNode {
    return this.#nodes[number] as LiveNode
  }

  #gpu([node, index]: GpuNumber): LiveGpu {
    return this.#node(node).gpus[index] as LiveGpu
  }

  #placementOf(number: TaskNumber): LivePlacement {
    return this.#task(number).placement as LivePlacement
  }

  #place(task: LiveTask, { placement, refusedBy, avoidedNow }: TaskCheckpoint): void {
    task.refusedBy = refusedBy === null ? null : new Map(refusedBy)
    task.avoidedNow = avoidedNow === null ? null : new Set(avoidedNow.map((number) => this.#node(number)))
    if (placement === null) return
    const gpus = placement.gpus.map((index) => this.#gpu([placement.node, index]))
    const live = newLivePlacement(task, gpus, placement.demandMib, placement.assignedAt)
    task.placement = Object.assign(live, fieldsOf(placement, PLACEMENT_FIELDS))
  }

  #queue(node: LiveNode, { queue, collector }: NodeCheckpoint): void {
    node.queue = queue.map((entry) => ({
      ...fieldsOf(entry, ENTRY_FIELDS),
      task: this.#task(entry.task),
      node,
      gpus: entry.gpus.map((index) => node.gpus[index] as LiveGpu),
      failedAttempt: null,
    }))
    queue.forEach(({ failedAttempt }, number) => {
      const entry = entryOf(node, number)
      if (failedAttempt !== null)
        entry.failedAttempt = {
          ...failedAttempt,
          collector: entryOrNull(node, failedAttempt.collector),
          spec: entry.task.spec,
        }
    })
    node.collector = entryOrNull(node, collector)
    if (node.collector !== null) this.#c.collecting.add(node)
  }

  /** Links tasks and queue entries to each other. */
  #linkEntries(task: LiveTask, { placementEntry, placement }: TaskCheckpoint): void {
    task.placementEntry =
      placementEntry === null ? null : entryOf(this.#node(placementEntry[0]), placementEntry[1])
    if (task.placement === null || placement === null) return
    task.placement.leavesFor = entryOrNull(task.placement.node, placement.leavesFor)
    task.placement.entry = entryOrNull(task.placement.node, placement.entry)
  }

  #fill(node: LiveNode, checkpoint: NodeCheckpoint): void {
    const { gpus, wake, eagerTimer, drainTimer, trialTimer } = checkpoint
    gpus.forEach((gpuCheckpoint, index) => {
      const gpu = node.gpus[index] as LiveGpu
      gpu.placements = gpuCheckpoint.placements.map((number) => this.#placementOf(number))
      gpu.pendingClaimants = gpuCheckpoint.pendingClaimants.map((number) => entryOf(node, number))
      gpu.claimants = gpuCheckpoint.claimants.map((number) => entryOf(node, number))
      gpu.reservations = gpuCheckpoint.reservations.map((reservation) => this.#reservation(reservation))
      gpu.exclusiveTask =
        gpuCheckpoint.exclusiveTask === null ? null : this.#task(gpuCheckpoint.exclusiveTask)
      for (const name of ['p0', 'non_p0'] as const) {
        gpu.rounds[name].round = gpuCheckpoint.rounds[name].round
        for (const [taskId, mark] of gpuCheckpoint.rounds[name].marks)
          gpu.rounds[name].marks.set(taskId, mark)
      }
      const { sharers, ...meter } = gpuCheckpoint.meter
      gpu.meter = { ...newGpuMeter(0), ...meter, sharers: sharers.map((number) => this.#placementOf(number)) }
      gpu.figures = { ...gpuCheckpoint.figures }
    })
    if (wake !== null) node.cancelWake = this.#wake(wake, () => revisitQueue(this.#c, node))
    if (eagerTimer !== null) node.cancelEager = this.#wake(eagerTimer, () => requestEagerCheck(this.#c, node))
    if (trialTimer !== null) node.cancelTrial = this.#wake(trialTimer, () => openTrial(this.#c, node))
    if (drainTimer !== null)
      node.cancelDrain = this.#wake(drainTimer, (now) => beginMoving(this.#c, node, now))
  }

  /** The reservation of a pool's head is one object on all its GPUs. */
  #reservation({ pool, task, ...fields }: ReservationCheckpoint): Reservation {
    const known = pool === null ? undefined : this.#headReservations.get(pool)
    if (known !== undefined) return known
    const reservation: Reservation = { ...fields, task: this.#task(task) }
    if (pool !== null) this.#headReservations.set(pool, reservation)
    return reservation
  }

  #open(task: LiveTask, { isQueued, isAside }: TaskCheckpoint): void {
    const c = this.#c
    const { gpuCount, groups } = task.spec
    c.tasks.set(task.spec.id, task)
    c.submissions.add(task, c.tasks.size)
    c.enterState(task, task.state, null)
    if (task.state === 'pending') c.countPending(task, 1)
    if (task.placement !== null || task.placementEntry?.hasReserved === true) c.countPlaced(task, 1)
    if (isQueued) c.queueFor(task.spec).add(task)
    if (isAside) task.queue?.setAside(task)
    if (task.waitCountedFrom === null) return
    c.waiting.tasks += 1
    c.waiting.gpus += gpuCount
    if (groups.length > 0) c.waiting.groups.begin(groups, gpuCount, task.waitCountedFrom)
  }

  #restorePools(): void {
    const c = this.#c
    for (const checkpoint of this.#checkpoint.pools) {
      const pool = c.poolFor(checkpoint.key)
      pool.version = checkpoint.version
      pool.membershipVersion = checkpoint.membershipVersion
      const indexes = checkpoint.shortfallIndexes.map(({ nodes, unseen, ...kind }) => ({
        ...kind,
        places: nodes.map(
          ([node, minusRoomMib, everMib]) => [this.#node(node), minusRoomMib, everMib] as const,
        ),
        unseen: unseen.map((number) => this.#node(number)),
      }))
      pool.restoreShortfallIndexes({ shortfallVersion: checkpoint.shortfallVersion, indexes })
      const { reservation } = checkpoint
      if (reservation === null) continue
      const { missingMib, nearVersion: shortfallVersion } = reservation
      const gpus = reservation.gpus.map((number) => this.#gpu(number))
      c.poolReservations.set(pool, {
        task: this.#task(reservation.task),
        reservation: this.#reservation(reservation.reservation),
        gpus,
        missingMib,
        shortfallVersion,
      })
    }
  }

  #restoreTimers(): void {
    const c = this.#c
    for (const [task, timer] of this.#checkpoint.probes) {
      const placement = this.#placementOf(task)
      c.probes.set(
        placement,
        this.#wake(timer, (now) => runProbe(c, placement, now)),
      )
    }
    for (const [number, timer] of this.#checkpoint.startTimers) {
      const task = this.#task(number)
      c.startTimers.set(
        task,
        this.#wake(timer, (now) => nextTry(c, task, now)),
      )
    }
    for (const [task, timer] of this.#checkpoint.runtimeLimits) {
      const placement = this.#placementOf(task)
      c.runtimeLimits.set(
        placement,
        this.#wake(timer, (now) => overrun(c, placement, now)),
      )
    }
  }

  #restoreRest(): void {
    const [c, m] = [this.#c, this.#checkpoint]
    for (const number of m.avoiders) c.avoiders.add(this.#task(number))
    for (const number of m.refusedTasks) c.refusedTasks.add(this.#task(number))
    c.eligibilityTimers.restore(
      m.eligibilityTimers.map(([at, task, number]) => [
        at,
        task === null ? endedPlacement(number) : this.#placementOf(task),
      ]),
    )
    const { nodes, keptFor } = m.eagerChecks
    c.eagerChecks.restore({
      nodes: nodes.map((number) => this.#node(number)),
      keptFor: keptFor.map(
        ([task, kept]) => [this.#task(task), kept.map((number) => this.#node(number))] as const,
      ),
    })
    for (const [task, renewedAt] of m.leases) c.leases.renew(this.#task(task), renewedAt)
    c.submissionKeys.restore(m.submissionKeys)
    Object.assign(c.finished, m.finished)
    Object.assign(c.swapTotals, m.swapTotals)
    c.activity.restore(m.activity)
    c.changes = m.changes
    c.queueChanges = m.queueChanges
    c.queueChangesSeen = m.queueChangesSeen
    c.lastReservationPass = m.lastReservationPass
    c.freeze = { ...m.freeze, released: new Set(m.freeze.released) }
    c.broker = m.broker
    restoreStoreStatus(c, m.storeStatus, this.#wake)
    c.nextTaskSeq = m.nextTaskSeq
    c.nextNodeOrdinal = m.nextNodeOrdinal
    c.waiting.queueUs = m.queueUs
    c.queuedEntries = this.#nodes.reduce((sum, { queue }) => sum + queue.length, 0)
    const { touchedNodes, staleGpus, ...flags } = m.indexState
    c.restoreIndexState({
      ...flags,
      touchedNodes: touchedNodes.map((number) => this.#node(number)),
      staleGpus: staleGpus.map((number) => this.#gpu(number)),
    })
  }
}

/** Returns the node with its GPUs, which have no placements yet. */
function bareNode(checkpoint: NodeCheckpoint): LiveNode {
  const { boot, contact } = checkpoint
  const record = {
    ...checkpoint,
    bootCounter: boot.counter,
    bootRandom: boot.random,
    leaseMs: contact.leaseMs,
    wasReset: contact.wasReset,
    gpus: [],
  }
  const node: LiveNode = Object.assign(nodeOf(record, 0), fieldsOf(checkpoint, NODE_FIELDS))
  node.gpus = checkpoint.gpus.map((gpu) => {
    const live = newLiveGpu(node, gpu.index, gpu.model, gpu.physicalMib, gpu.foreignMib, 0)
    return Object.assign(live, fieldsOf(gpu, GPU_FIELDS))
  })
  return node
}

function entryOf(node: LiveNode, number: EntryNumber): LiveEntry {
  return node.queue[number] as LiveEntry
}

function entryOrNull(node: LiveNode, number: EntryNumber | null): LiveEntry | null {
  return number === null ? null : entryOf(node, number)
}

/** A stand-in that stays in the heap until its instant, without effect. */
function endedPlacement(submissionNumber: number): LivePlacement {
  const task = { placement: null } as LiveTask
  return { task, submissionNumber, eligibilityTimerAt: null } as LivePlacement
}
