/** Takes up what a cluster remembered: into one that knows nothing yet. */
import type { Instant } from '../../../protocol/units.ts'
import { policyOf } from '../../domain/config.ts'
import type { Hold } from '../../domain/node.ts'
import type { TaskSpec } from '../../domain/task.ts'
import { newGpuMeter } from '../../metrics/meter.ts'
import type { CancelTimer, TimerMark } from '../../ports/clock.ts'
import type { Cluster } from '../cluster.ts'
import { openTrial } from '../node/auto-cordon.ts'
import { nextTry } from '../node/start-tries.ts'
import { beginMoving } from '../node/drain.ts'
import type { LiveEntry, LiveGpu, LiveNode, LivePlacement, LiveTask } from '../live.ts'
import { newLiveGpu, newLivePlacement, newLiveTask } from '../live.ts'
import { lookAgain } from '../node/node-queue.ts'
import { lookEagerly } from '../node/eager-returns.ts'
import { runProbe } from '../node/probes.ts'
import { nodeOf } from '../records.ts'
import { overrun } from '../node/runtime-limits.ts'
import { recallStanding } from './standing-memory.ts'
import type {
  ClusterMemory,
  EntryNumber,
  GpuNumber,
  HoldMemory,
  NodeMemory,
  NodeNumber,
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

/** @param wake asks for a timer of the cluster's again. */
export function recallCluster(
  c: Cluster,
  memory: ClusterMemory,
  wake: (mark: TimerMark, fn: (now: Instant) => void) => CancelTimer,
): void {
  new Recalling(c, memory, wake).recall()
}

class Recalling {
  readonly #c: Cluster
  readonly #m: ClusterMemory
  readonly #wake: (mark: TimerMark, fn: (now: Instant) => void) => CancelTimer
  readonly #tasks: readonly LiveTask[]
  readonly #nodes: readonly LiveNode[]
  readonly #headHolds = new Map<string, Hold>()

  constructor(
    c: Cluster,
    memory: ClusterMemory,
    wake: (mark: TimerMark, fn: (now: Instant) => void) => CancelTimer,
  ) {
    this.#c = c
    this.#m = memory
    this.#wake = wake
    this.#tasks = memory.tasks.map((task) =>
      Object.assign(newLiveTask(task.spec, task.pendingSince), fieldsOf(task, TASK_FIELDS)),
    )
    this.#nodes = memory.nodes.map(bareNode)
  }

  recall(): void {
    const [c, m] = [this.#c, this.#m]
    c.config = m.config
    c.policy = policyOf(m.config.fields)
    for (const group of m.groups) c.groups.set(group.id, group)
    for (const node of this.#nodes) c.addNode(node)
    for (const { key } of m.pools) c.poolFor(key)
    m.tasks.forEach((memory, number) => this.#place(this.#task(number), memory))
    m.nodes.forEach((memory, number) => this.#queue(this.#node(number), memory))
    m.tasks.forEach((memory, number) => this.#tie(this.#task(number), memory))
    m.nodes.forEach((memory, number) => this.#fill(this.#node(number), memory))
    for (const spec of m.queues) c.queueFor(spec as TaskSpec)
    for (let number = 0; number < m.openCount; number++)
      this.#open(this.#task(number), m.tasks[number] as TaskMemory)
    this.#recallPools()
    this.#recallTimers()
    this.#recallRest()
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

  #place(task: LiveTask, { placement, refusedBy, avoidedNow }: TaskMemory): void {
    task.refusedBy = refusedBy === null ? null : new Map(refusedBy)
    task.avoidedNow = avoidedNow === null ? null : new Set(avoidedNow.map((number) => this.#node(number)))
    if (placement === null) return
    const gpus = placement.gpus.map((index) => this.#gpu([placement.node, index]))
    const live = newLivePlacement(task, gpus, placement.demandMib, placement.assignedAt)
    task.placement = Object.assign(live, fieldsOf(placement, PLACEMENT_FIELDS))
  }

  #queue(node: LiveNode, { queue, collector }: NodeMemory): void {
    node.queue = queue.map((entry) => ({
      ...fieldsOf(entry, ENTRY_FIELDS),
      task: this.#task(entry.task),
      node,
      gpus: entry.gpus.map((index) => node.gpus[index] as LiveGpu),
      vainLook: null,
    }))
    queue.forEach(({ vainLook }, number) => {
      const entry = entryOf(node, number)
      if (vainLook !== null)
        entry.vainLook = {
          ...vainLook,
          collector: entryOrNull(node, vainLook.collector),
          spec: entry.task.spec,
        }
    })
    node.collector = entryOrNull(node, collector)
    if (node.collector !== null) this.#c.collecting.add(node)
  }

  /** Tasks and the entries of queues know each other. */
  #tie(task: LiveTask, { claim, placement }: TaskMemory): void {
    task.claim = claim === null ? null : entryOf(this.#node(claim[0]), claim[1])
    if (task.placement === null || placement === null) return
    task.placement.leavesFor = entryOrNull(task.placement.node, placement.leavesFor)
    task.placement.entry = entryOrNull(task.placement.node, placement.entry)
  }

  #fill(node: LiveNode, memory: NodeMemory): void {
    const { gpus, wake, eagerTimer, drainTimer, trialTimer } = memory
    gpus.forEach((gpuMemory, index) => {
      const gpu = node.gpus[index] as LiveGpu
      gpu.placements = gpuMemory.placements.map((number) => this.#placementOf(number))
      gpu.claims = gpuMemory.claims.map((number) => entryOf(node, number))
      gpu.owners = gpuMemory.owners.map((number) => entryOf(node, number))
      gpu.holds = gpuMemory.holds.map((hold) => this.#hold(hold))
      gpu.exclusiveTask = gpuMemory.exclusiveTask === null ? null : this.#task(gpuMemory.exclusiveTask)
      for (const name of ['p0', 'non_p0'] as const) {
        gpu.rounds[name].round = gpuMemory.rounds[name].round
        for (const [id, mark] of gpuMemory.rounds[name].marks) gpu.rounds[name].marks.set(id, mark)
      }
      const { sharers, ...meter } = gpuMemory.meter
      gpu.meter = { ...newGpuMeter(0), ...meter, sharers: sharers.map((number) => this.#placementOf(number)) }
      gpu.figures = { ...gpuMemory.figures }
    })
    if (wake !== null) node.cancelWake = this.#wake(wake, () => lookAgain(this.#c, node))
    if (eagerTimer !== null) node.cancelEager = this.#wake(eagerTimer, () => lookEagerly(this.#c, node))
    if (trialTimer !== null) node.cancelTrial = this.#wake(trialTimer, () => openTrial(this.#c, node))
    if (drainTimer !== null)
      node.cancelDrain = this.#wake(drainTimer, (now) => beginMoving(this.#c, node, now))
  }

  /** One object for the head of a pool, wherever it holds. */
  #hold({ pool, task, ...fields }: HoldMemory): Hold {
    const known = pool === null ? undefined : this.#headHolds.get(pool)
    if (known !== undefined) return known
    const hold: Hold = { ...fields, task: this.#task(task) }
    if (pool !== null) this.#headHolds.set(pool, hold)
    return hold
  }

  #open(task: LiveTask, { isQueued, isAside }: TaskMemory): void {
    const c = this.#c
    const { gpuCount, groups } = task.spec
    c.tasks.set(task.spec.id, task)
    c.submissions.add(task, c.tasks.size)
    c.enterState(task, task.state, null)
    if (task.state === 'pending') c.countPending(task, 1)
    if (task.placement !== null || task.claim?.owns === true) c.countPlaced(task, 1)
    if (isQueued) c.queueFor(task.spec).add(task)
    if (isAside) task.queue?.setAside(task)
    if (task.waitCountedFrom === null) return
    c.waiting.tasks += 1
    c.waiting.gpus += gpuCount
    if (groups.length > 0) c.waiting.groups.begin(groups, gpuCount, task.waitCountedFrom)
  }

  #recallPools(): void {
    const c = this.#c
    for (const memory of this.#m.pools) {
      const pool = c.poolFor(memory.key)
      pool.version = memory.version
      pool.membershipVersion = memory.membershipVersion
      const indexes = memory.near.map(({ nodes, unseen, ...kind }) => ({
        ...kind,
        places: nodes.map(
          ([node, minusRoomMib, everMib]) => [this.#node(node), minusRoomMib, everMib] as const,
        ),
        unseen: unseen.map((number) => this.#node(number)),
      }))
      pool.recallNearness({ nearVersion: memory.nearVersion, indexes })
      const { hold } = memory
      if (hold === null) continue
      const { missingMib, nearVersion } = hold
      const gpus = hold.gpus.map((number) => this.#gpu(number))
      c.poolHolds.set(pool, {
        task: this.#task(hold.task),
        hold: this.#hold(hold.hold),
        gpus,
        missingMib,
        nearVersion,
      })
    }
  }

  #recallTimers(): void {
    const c = this.#c
    for (const [task, timer] of this.#m.probes) {
      const placement = this.#placementOf(task)
      c.probes.set(
        placement,
        this.#wake(timer, (now) => runProbe(c, placement, now)),
      )
    }
    for (const [number, timer] of this.#m.startTimers) {
      const task = this.#task(number)
      c.startTimers.set(
        task,
        this.#wake(timer, (now) => nextTry(c, task, now)),
      )
    }
    for (const [task, timer] of this.#m.runtimeLimits) {
      const placement = this.#placementOf(task)
      c.runtimeLimits.set(
        placement,
        this.#wake(timer, (now) => overrun(c, placement, now)),
      )
    }
  }

  #recallRest(): void {
    const [c, m] = [this.#c, this.#m]
    for (const number of m.avoiders) c.avoiders.add(this.#task(number))
    for (const number of m.refusedTasks) c.refusedTasks.add(this.#task(number))
    c.ripening.recall(
      m.ripening.map(([at, task, number]) => [
        at,
        task === null ? endedPlacement(number) : this.#placementOf(task),
      ]),
    )
    const { nodes, keptFor } = m.eagerLooks
    c.eagerLooks.recall({
      nodes: nodes.map((number) => this.#node(number)),
      keptFor: keptFor.map(
        ([task, kept]) => [this.#task(task), kept.map((number) => this.#node(number))] as const,
      ),
    })
    for (const [task, renewedAt] of m.leases) c.leases.renew(this.#task(task), renewedAt)
    c.submissionKeys.restore(m.submissionKeys)
    Object.assign(c.finished, m.finished)
    Object.assign(c.swapTotals, m.swapTotals)
    c.activity.recall(m.activity)
    c.changes = m.changes
    c.queueChanges = m.queueChanges
    c.queueChangesSeen = m.queueChangesSeen
    c.holdsLook = m.holdsLook
    c.freeze = { ...m.freeze, released: new Set(m.freeze.released) }
    c.broker = m.broker
    recallStanding(c, m.standing, this.#wake)
    c.nextTaskSeq = m.nextTaskSeq
    c.nextNodeOrdinal = m.nextNodeOrdinal
    c.waiting.queueUs = m.queueUs
    c.queuedEntries = this.#nodes.reduce((sum, { queue }) => sum + queue.length, 0)
    const { touchedNodes, staleGpus, ...flags } = m.upkeep
    c.recallUpkeep({
      ...flags,
      touchedNodes: touchedNodes.map((number) => this.#node(number)),
      staleGpus: staleGpus.map((number) => this.#gpu(number)),
    })
  }
}

/** With its GPUs, which have nothing on them yet. */
function bareNode(memory: NodeMemory): LiveNode {
  const { boot, word } = memory
  const record = {
    ...memory,
    bootCounter: boot.counter,
    bootRandom: boot.random,
    leaseMs: word.leaseMs,
    wasReset: word.wasReset,
    gpus: [],
  }
  const node: LiveNode = Object.assign(nodeOf(record, 0), fieldsOf(memory, NODE_FIELDS))
  node.gpus = memory.gpus.map((gpu) => {
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

/** It waits to ripen until its time comes, and nothing comes of it. */
function endedPlacement(submissionNumber: number): LivePlacement {
  const task = { placement: null } as LiveTask
  return { task, submissionNumber, ripensAt: null } as LivePlacement
}
