/** Captures the state of a cluster without changing it. */
import type { Reservation } from '../../model/placement.ts'
import type { Cluster } from '../../state/cluster.ts'
import type { LiveEntry, LiveGpu, LiveNode, LivePlacement, LiveTask } from '../../state/facts.ts'
import type { PendingQueue } from '../../state/index/pending-queue.ts'
import type { Pool } from '../../state/index/pool.ts'
import type {
  ClusterCheckpoint,
  EntryCheckpoint,
  EntryNumber,
  GpuCheckpoint,
  GpuNumber,
  ReservationCheckpoint,
  NodeCheckpoint,
  NodeNumber,
  PlacementCheckpoint,
  PoolCheckpoint,
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
import type { PendingIds } from './pending-ids.ts'
import { captureStoreStatus } from './store-status.ts'

export function captureCluster(c: Cluster, ids: PendingIds): ClusterCheckpoint {
  return new ClusterCapture(c, ids).capture()
}

class ClusterCapture {
  readonly #c: Cluster
  readonly #ids: PendingIds
  readonly #tasks: LiveTask[]
  readonly #taskNumbers = new Map<LiveTask, TaskNumber>()
  readonly #nodeNumbers = new Map<LiveNode, NodeNumber>()
  readonly #entryNumbers = new Map<LiveEntry, EntryNumber>()
  readonly #headReservations = new Map<Reservation, string>()

  constructor(c: Cluster, ids: PendingIds) {
    this.#c = c
    this.#ids = ids
    this.#tasks = [...c.tasks.values()]
    this.#tasks.forEach((task, number) => this.#taskNumbers.set(task, number))
    for (const node of c.nodes.values()) {
      this.#nodeNumbers.set(node, this.#nodeNumbers.size)
      node.queue.forEach((entry, number) => this.#entryNumbers.set(entry, number))
    }
    for (const [pool, { reservation }] of c.poolReservations)
      this.#headReservations.set(reservation, pool.key)
  }

  capture(): ClusterCheckpoint {
    const c = this.#c
    const openCount = this.#tasks.length
    const rest: Omit<ClusterCheckpoint, 'tasks'> = {
      config: c.config,
      groups: [...c.groups.values()],
      nodes: [...c.nodes.values()].map((node) => this.#node(node)),
      openCount,
      pools: [...c.pools.values()].map((pool) => this.#pool(pool)),
      queues: c.queues.map(specOf),
      avoiders: [...c.avoiders].map((task) => this.#task(task)),
      refusedTasks: [...c.refusedTasks].map((task) => this.#task(task)),
      eligibilityTimers: c.eligibilityTimers
        .entries()
        .map(([at, placement]) => [at, this.#current(placement), placement.submissionNumber]),
      leases: [...c.leases.renewals()].flatMap(([task, at]) =>
        isOpen(c, task) ? [[this.#task(task), at] as const] : [],
      ),
      submissionKeys: [...c.submissionKeys.records()],
      probes: [...c.probes].map(([{ task }, cancel]) => [this.#task(task), this.#ids.timer(cancel)]),
      eagerChecks: this.#eagerChecks(),
      startTimers: [...c.startTimers].map(([task, cancel]) => [this.#task(task), this.#ids.timer(cancel)]),
      runtimeLimits: [...c.runtimeLimits].map(([{ task }, cancel]) => [
        this.#task(task),
        this.#ids.timer(cancel),
      ]),
      finished: c.finished,
      activity: c.activity.all(),
      swapTotals: c.swapTotals,
      changes: c.changes,
      queueChanges: c.queueChanges,
      queueChangesSeen: c.queueChangesSeen,
      lastReservationPass: c.lastReservationPass,
      freeze: { ...c.freeze, released: [...c.freeze.released] },
      broker: c.broker,
      storeStatus: captureStoreStatus(c, this.#ids),
      nextTaskSeq: c.nextTaskSeq,
      nextNodeOrdinal: c.nextNodeOrdinal,
      queueUs: c.waiting.queueUs,
      indexState: this.#indexState(),
    }
    // Last: the references above have added ended tasks to the list.
    return { ...rest, tasks: this.#tasks.map((task) => this.#captureTask(task)) }
  }

  #task(task: LiveTask): TaskNumber {
    const known = this.#taskNumbers.get(task)
    if (known !== undefined) return known
    const number = this.#tasks.push(task) - 1
    this.#taskNumbers.set(task, number)
    return number
  }

  /** Null: the placement has ended. */
  #current(placement: LivePlacement): TaskNumber | null {
    return placement.task.placement === placement ? this.#task(placement.task) : null
  }

  #number(node: LiveNode): NodeNumber {
    const number = this.#nodeNumbers.get(node)
    if (number === undefined) throw new Error(`broken invariant: node ${node.id} is not known any more`)
    return number
  }

  /** Null: the entry has left the queue. */
  #entry(entry: LiveEntry | null): EntryNumber | null {
    return entry === null ? null : (this.#entryNumbers.get(entry) ?? null)
  }

  #gpu({ node, index }: LiveGpu): GpuNumber {
    return [this.#number(node), index]
  }

  #captureTask(task: LiveTask): TaskCheckpoint {
    const entry = this.#entry(task.placementEntry)
    return {
      ...fieldsOf(task, TASK_FIELDS),
      placement: task.placement === null ? null : this.#placement(task.placement),
      placementEntry:
        task.placementEntry === null || entry === null
          ? null
          : [this.#number(task.placementEntry.node), entry],
      isQueued: task.queue !== null,
      isAside: task.queue?.isSetAside(task) === true,
      refusedBy: task.refusedBy === null ? null : [...task.refusedBy],
      avoidedNow:
        task.avoidedNow === null ? null : [...task.avoidedNow].map((node) => this.#number(node as LiveNode)),
    }
  }

  #placement(placement: LivePlacement): PlacementCheckpoint {
    return {
      ...fieldsOf(placement, PLACEMENT_FIELDS),
      node: this.#number(placement.node),
      gpus: indexesOf(placement.gpus),
      leavesFor: this.#entry(placement.leavesFor),
      entry: this.#entry(placement.entry),
    }
  }

  #node(node: LiveNode): NodeCheckpoint {
    return {
      ...fieldsOf(node, NODE_FIELDS),
      gpus: node.gpus.map((gpu) => this.#captureGpu(gpu)),
      queue: node.queue.map((entry) => this.#captureEntry(entry)),
      collector: this.#entry(node.collector),
      wake: node.wakeAt === null || node.cancelWake === null ? null : this.#ids.timer(node.cancelWake),
      eagerTimer: node.cancelEager === null ? null : this.#ids.timer(node.cancelEager),
      trialTimer: node.cancelTrial === null ? null : this.#ids.timer(node.cancelTrial),
      drainTimer: node.cancelDrain === null ? null : this.#ids.timer(node.cancelDrain),
    }
  }

  #captureEntry(entry: LiveEntry): EntryCheckpoint {
    const { task, gpus, failedAttempt } = entry
    const collector = this.#entry(failedAttempt?.collector ?? null)
    // If the key names a collector that has left, or a task that has changed, the entry is tried again in any
    // case.
    const isOver =
      failedAttempt === null ||
      failedAttempt.spec !== task.spec ||
      (failedAttempt.collector !== null && collector === null)
    return {
      ...fieldsOf(entry, ENTRY_FIELDS),
      task: this.#task(task),
      gpus: indexesOf(gpus),
      failedAttempt: isOver
        ? null
        : { ledgerVersion: failedAttempt.ledgerVersion, hostUsedMib: failedAttempt.hostUsedMib, collector },
    }
  }

  #captureGpu(gpu: LiveGpu): GpuCheckpoint {
    const { meter, rounds, figures } = gpu
    return {
      ...fieldsOf(gpu, GPU_FIELDS),
      placements: gpu.placements.map(({ task }) => this.#task(task)),
      pendingClaimants: gpu.pendingClaimants.map((entry) => this.#entry(entry) as EntryNumber),
      claimants: gpu.claimants.map((entry) => this.#entry(entry) as EntryNumber),
      reservations: gpu.reservations.map((reservation) => this.#reservation(reservation)),
      exclusiveTask: gpu.exclusiveTask === null ? null : this.#task(gpu.exclusiveTask),
      rounds: {
        p0: { round: rounds.p0.round, marks: [...rounds.p0.marks] },
        non_p0: { round: rounds.non_p0.round, marks: [...rounds.non_p0.marks] },
      },
      meter: { ...meter, sharers: meter.sharers.map((sharer) => this.#task((sharer as LivePlacement).task)) },
      figures: { ...figures },
    }
  }

  #reservation(reservation: Reservation): ReservationCheckpoint {
    const { by, task, queueClass, mib, isExclusive } = reservation
    return {
      by,
      task: this.#task(task as LiveTask),
      queueClass,
      mib,
      isExclusive,
      pool: this.#headReservations.get(reservation) ?? null,
    }
  }

  #pool(pool: Pool): PoolCheckpoint {
    const reserved = this.#c.poolReservations.get(pool)
    const { shortfallIndexes } = pool
    return {
      key: pool.key,
      version: pool.version,
      membershipVersion: pool.membershipVersion,
      shortfallVersion: shortfallIndexes.shortfallVersion,
      shortfallIndexes: shortfallIndexes.indexes.map(({ kind, gpuCount, places, unseen }) => ({
        kind,
        gpuCount,
        nodes: places.map(
          ([node, minusRoomMib, everMib]) => [this.#number(node), minusRoomMib, everMib] as const,
        ),
        unseen: unseen.map((node) => this.#number(node)),
      })),
      reservation:
        reserved === undefined
          ? null
          : {
              task: this.#task(reserved.task),
              reservation: this.#reservation(reserved.reservation),
              gpus: reserved.gpus.map((gpu) => this.#gpu(gpu)),
              missingMib: reserved.missingMib,
              nearVersion: reserved.shortfallVersion,
            },
    }
  }

  #eagerChecks(): ClusterCheckpoint['eagerChecks'] {
    const { nodes, keptFor } = this.#c.eagerChecks.all
    return {
      nodes: nodes.map((node) => this.#number(node)),
      keptFor: keptFor.map(
        ([task, kept]) => [this.#task(task), kept.map((node) => this.#number(node))] as const,
      ),
    }
  }

  #indexState(): ClusterCheckpoint['indexState'] {
    const { touchedNodes, staleGpus, ...flags } = this.#c.indexState
    const isKnown = (node: LiveNode): boolean => this.#nodeNumbers.has(node)
    return {
      ...flags,
      touchedNodes: touchedNodes.filter(isKnown).map((node) => this.#number(node)),
      // A GPU that was replaced, or whose node was forgotten, is in no pool anymore.
      staleGpus: staleGpus
        .filter((gpu) => isKnown(gpu.node) && gpu.node.gpus.includes(gpu))
        .map((gpu) => this.#gpu(gpu)),
    }
  }
}

function isOpen(c: Cluster, task: LiveTask): boolean {
  return c.tasks.get(task.spec.id) === task
}

function indexesOf(gpus: readonly LiveGpu[]): readonly number[] {
  return gpus.map(({ index }) => index)
}

/** Returns the fields that tasks of this queue have in common. */
function specOf({ shape, owner }: PendingQueue): ClusterCheckpoint['queues'][number] {
  return {
    gpuMode: shape.kind === 'exclusive' ? 'exclusive' : 'shared',
    noswap: shape.kind === 'noswap' ? 1 : 0,
    gpuCount: shape.gpuCount,
    groups: shape.poolKey === '' ? [] : shape.poolKey.split('\n'),
    priority: shape.isP0 ? 0 : 1,
    owner,
  }
}
