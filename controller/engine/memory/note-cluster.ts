/** Writes down what a cluster remembers. Changes nothing. */
import type { Hold } from '../../domain/node.ts'
import type { Cluster } from '../cluster.ts'
import type { LiveEntry, LiveGpu, LiveNode, LivePlacement, LiveTask } from '../live.ts'
import type { PendingQueue } from '../pool/pending-queue.ts'
import type { Pool } from '../pool/pool.ts'
import type {
  ClusterMemory,
  EntryMemory,
  EntryNumber,
  GpuMemory,
  GpuNumber,
  HoldMemory,
  NodeMemory,
  NodeNumber,
  PlacementMemory,
  PoolMemory,
  TaskMemory,
  TaskNumber,
} from './cluster-memory.ts'
import {
  ENTRY_FIELDS,
  fieldsOf,
  GPU_FIELDS,
  NODE_FIELDS,
  PLACEMENT_FIELDS,
  TASK_FIELDS,
} from './live-fields.ts'
import type { Marks } from './marks.ts'
import { noteStanding } from './standing-memory.ts'

export function noteCluster(c: Cluster, marks: Marks): ClusterMemory {
  return new Noting(c, marks).note()
}

class Noting {
  readonly #c: Cluster
  readonly #marks: Marks
  readonly #tasks: LiveTask[]
  readonly #taskNumbers = new Map<LiveTask, TaskNumber>()
  readonly #nodeNumbers = new Map<LiveNode, NodeNumber>()
  readonly #entryNumbers = new Map<LiveEntry, EntryNumber>()
  readonly #headHolds = new Map<Hold, string>()

  constructor(c: Cluster, marks: Marks) {
    this.#c = c
    this.#marks = marks
    this.#tasks = [...c.tasks.values()]
    this.#tasks.forEach((task, number) => this.#taskNumbers.set(task, number))
    for (const node of c.nodes.values()) {
      this.#nodeNumbers.set(node, this.#nodeNumbers.size)
      node.queue.forEach((entry, number) => this.#entryNumbers.set(entry, number))
    }
    for (const [pool, { hold }] of c.poolHolds) this.#headHolds.set(hold, pool.key)
  }

  note(): ClusterMemory {
    const c = this.#c
    const openCount = this.#tasks.length
    const rest: Omit<ClusterMemory, 'tasks'> = {
      config: c.config,
      groups: [...c.groups.values()],
      nodes: [...c.nodes.values()].map((node) => this.#node(node)),
      openCount,
      pools: [...c.pools.values()].map((pool) => this.#pool(pool)),
      queues: c.queues.map(specOf),
      avoiders: [...c.avoiders].map((task) => this.#task(task)),
      refusedTasks: [...c.refusedTasks].map((task) => this.#task(task)),
      ripening: c.ripening
        .entries()
        .map(([at, placement]) => [at, this.#current(placement), placement.submissionNumber]),
      leases: [...c.leases.renewals()].flatMap(([task, at]) =>
        isOpen(c, task) ? [[this.#task(task), at] as const] : [],
      ),
      submissionKeys: [...c.submissionKeys.records()],
      probes: [...c.probes].map(([{ task }, cancel]) => [this.#task(task), this.#marks.timer(cancel)]),
      eagerLooks: this.#eagerLooks(),
      startTimers: [...c.startTimers].map(([task, cancel]) => [this.#task(task), this.#marks.timer(cancel)]),
      runtimeLimits: [...c.runtimeLimits].map(([{ task }, cancel]) => [
        this.#task(task),
        this.#marks.timer(cancel),
      ]),
      finished: c.finished,
      activity: c.activity.all(),
      swapTotals: c.swapTotals,
      changes: c.changes,
      queueChanges: c.queueChanges,
      queueChangesSeen: c.queueChangesSeen,
      holdsLook: c.holdsLook,
      freeze: { ...c.freeze, released: [...c.freeze.released] },
      broker: c.broker,
      standing: noteStanding(c, this.#marks),
      nextTaskSeq: c.nextTaskSeq,
      nextNodeOrdinal: c.nextNodeOrdinal,
      queueUs: c.waiting.queueUs,
      upkeep: this.#upkeep(),
    }
    // Last: whom the others point at is known now.
    return { ...rest, tasks: this.#tasks.map((task) => this.#noteTask(task)) }
  }

  #task(task: LiveTask): TaskNumber {
    const known = this.#taskNumbers.get(task)
    if (known !== undefined) return known
    const number = this.#tasks.push(task) - 1
    this.#taskNumbers.set(task, number)
    return number
  }

  /** Null: it has ended. */
  #current(placement: LivePlacement): TaskNumber | null {
    return placement.task.placement === placement ? this.#task(placement.task) : null
  }

  #number(node: LiveNode): NodeNumber {
    const number = this.#nodeNumbers.get(node)
    if (number === undefined) throw new Error(`broken invariant: node ${node.id} is not known any more`)
    return number
  }

  /** Null: it has left the queue. */
  #entry(entry: LiveEntry | null): EntryNumber | null {
    return entry === null ? null : (this.#entryNumbers.get(entry) ?? null)
  }

  #gpu({ node, index }: LiveGpu): GpuNumber {
    return [this.#number(node), index]
  }

  #noteTask(task: LiveTask): TaskMemory {
    const claim = this.#entry(task.claim)
    return {
      ...fieldsOf(task, TASK_FIELDS),
      placement: task.placement === null ? null : this.#placement(task.placement),
      claim: task.claim === null || claim === null ? null : [this.#number(task.claim.node), claim],
      isQueued: task.queue !== null,
      isAside: task.queue?.isSetAside(task) === true,
      refusedBy: task.refusedBy === null ? null : [...task.refusedBy],
      avoidedNow:
        task.avoidedNow === null ? null : [...task.avoidedNow].map((node) => this.#number(node as LiveNode)),
    }
  }

  #placement(placement: LivePlacement): PlacementMemory {
    return {
      ...fieldsOf(placement, PLACEMENT_FIELDS),
      node: this.#number(placement.node),
      gpus: indexesOf(placement.gpus),
      leavesFor: this.#entry(placement.leavesFor),
      entry: this.#entry(placement.entry),
    }
  }

  #node(node: LiveNode): NodeMemory {
    return {
      ...fieldsOf(node, NODE_FIELDS),
      gpus: node.gpus.map((gpu) => this.#noteGpu(gpu)),
      queue: node.queue.map((entry) => this.#noteEntry(entry)),
      collector: this.#entry(node.collector),
      wake: node.wakeAt === null || node.cancelWake === null ? null : this.#marks.timer(node.cancelWake),
      eagerTimer: node.cancelEager === null ? null : this.#marks.timer(node.cancelEager),
      trialTimer: node.cancelTrial === null ? null : this.#marks.timer(node.cancelTrial),
      drainTimer: node.cancelDrain === null ? null : this.#marks.timer(node.cancelDrain),
    }
  }

  #noteEntry(entry: LiveEntry): EntryMemory {
    const { task, gpus, vainLook } = entry
    const collector = this.#entry(vainLook?.collector ?? null)
    // One that spoke of a collector that has left, or of a task that has changed, is looked at again whatever
    // happens.
    const isOver =
      vainLook === null || vainLook.spec !== task.spec || (vainLook.collector !== null && collector === null)
    return {
      ...fieldsOf(entry, ENTRY_FIELDS),
      task: this.#task(task),
      gpus: indexesOf(gpus),
      vainLook: isOver
        ? null
        : { bookChanges: vainLook.bookChanges, hostUsedMib: vainLook.hostUsedMib, collector },
    }
  }

  #noteGpu(gpu: LiveGpu): GpuMemory {
    const { meter, rounds, figures } = gpu
    return {
      ...fieldsOf(gpu, GPU_FIELDS),
      placements: gpu.placements.map(({ task }) => this.#task(task)),
      claims: gpu.claims.map((entry) => this.#entry(entry) as EntryNumber),
      owners: gpu.owners.map((entry) => this.#entry(entry) as EntryNumber),
      holds: gpu.holds.map((hold) => this.#hold(hold)),
      exclusiveTask: gpu.exclusiveTask === null ? null : this.#task(gpu.exclusiveTask),
      rounds: {
        p0: { round: rounds.p0.round, marks: [...rounds.p0.marks] },
        non_p0: { round: rounds.non_p0.round, marks: [...rounds.non_p0.marks] },
      },
      meter: { ...meter, sharers: meter.sharers.map((sharer) => this.#task((sharer as LivePlacement).task)) },
      figures: { ...figures },
    }
  }

  #hold(hold: Hold): HoldMemory {
    const { by, task, queueClass, mib, isExclusive } = hold
    return {
      by,
      task: this.#task(task as LiveTask),
      queueClass,
      mib,
      isExclusive,
      pool: this.#headHolds.get(hold) ?? null,
    }
  }

  #pool(pool: Pool): PoolMemory {
    const held = this.#c.poolHolds.get(pool)
    const { nearness } = pool
    return {
      key: pool.key,
      version: pool.version,
      membershipVersion: pool.membershipVersion,
      nearVersion: nearness.nearVersion,
      near: nearness.indexes.map(({ kind, gpuCount, places, unseen }) => ({
        kind,
        gpuCount,
        nodes: places.map(
          ([node, minusRoomMib, everMib]) => [this.#number(node), minusRoomMib, everMib] as const,
        ),
        unseen: unseen.map((node) => this.#number(node)),
      })),
      hold:
        held === undefined
          ? null
          : {
              task: this.#task(held.task),
              hold: this.#hold(held.hold),
              gpus: held.gpus.map((gpu) => this.#gpu(gpu)),
              missingMib: held.missingMib,
              nearVersion: held.nearVersion,
            },
    }
  }

  #eagerLooks(): ClusterMemory['eagerLooks'] {
    const { nodes, keptFor } = this.#c.eagerLooks.all
    return {
      nodes: nodes.map((node) => this.#number(node)),
      keptFor: keptFor.map(
        ([task, kept]) => [this.#task(task), kept.map((node) => this.#number(node))] as const,
      ),
    }
  }

  #upkeep(): ClusterMemory['upkeep'] {
    const { touchedNodes, staleGpus, ...flags } = this.#c.upkeep
    const isKnown = (node: LiveNode): boolean => this.#nodeNumbers.has(node)
    return {
      ...flags,
      touchedNodes: touchedNodes.filter(isKnown).map((node) => this.#number(node)),
      // A GPU that was replaced, or whose node was forgotten, has no seat any more.
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

/** What a task of this queue says of itself. */
function specOf({ shape, owner }: PendingQueue): ClusterMemory['queues'][number] {
  return {
    gpuMode: shape.kind === 'exclusive' ? 'exclusive' : 'shared',
    noswap: shape.kind === 'noswap' ? 1 : 0,
    gpuCount: shape.gpuCount,
    groups: shape.poolKey === '' ? [] : shape.poolKey.split('\n'),
    priority: shape.isP0 ? 0 : 1,
    owner,
  }
}
