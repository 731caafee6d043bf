/**
 * A small controller for tests of the API: it keeps what commands give it, answers a moment later, and makes
 * no decisions (every task stays pending). Tests use it through `ApiWorld`, so that the real engine can
 * replace it.
 */
import { DEFAULT_CONFIG, type Config, type ConfigFields } from '../../controller/model/config.ts'
import { isEventWanted, type Event, type EventKind } from '../../controller/model/event.ts'
import { isDecisionWanted } from '../../controller/adapters/decision-pick.ts'
import type { Decision } from '../../controller/model/decision.ts'
import type { Group } from '../../controller/model/group.ts'
import {
  commitLimitMib,
  effectiveSchedulableMib,
  residentCapacityMib,
  resolveOvercommit,
} from '../../controller/model/vram.ts'
import { isFinal, isFoundBy } from '../../controller/model/task.ts'
import { type TaskSpec } from '../../protocol/task.ts'
import type { Placement, Task, Gpu, Node } from '../../controller/model/placement.ts'
import type { Adoption, Answer, AnswerTo, Commands, Refusal } from '../../controller/model/command.ts'
import { overridesAfter, plannedConfig } from '../../controller/engine/inputs/commands/cluster-commands.ts'
import type { Impact } from '../../controller/query/preview/impact.ts'
import { DurableEvents } from '../../controller/engine/durable-events.ts'
import type { GroupPreview } from '../../controller/query/preview/group-preview.ts'
import type { Prediction } from '../../controller/query/preview/prediction.ts'
import { newLiveTask } from '../../controller/state/new-facts.ts'
import { NOT_FROZEN } from '../../controller/model/controller-status.ts'
import type { ClusterTotals, SwapCounts, TaskCounts, Views } from '../../controller/query/views.ts'
import { ZERO_COUNTERS, type Counters } from '../../controller/metrics/counters.ts'
import type { ConfigRecord, TaskRecord } from '../../controller/ports/store.ts'
import type { WaitExplanation } from '../../controller/query/explain/explain.ts'

export interface ApiWorld {
  readonly commands: Commands
  readonly views: Views
  /** Registers a node that is up; resolves when the views contain it. */
  addNode(node: { readonly id: string; readonly gpus: number; readonly physicalMib: number }): Promise<void>
  /** Everything that a write can change, as one text. */
  snapshot(): string
}

export const NODE_ID = '5f0c9a52-1d3e-4b7a-9c11-000000000001'

const NOT_PREDICTED: Prediction = { when: null, node: null, gpus: [], demandMib: 0, victims: [], wait: null }
const NO_NODES = { nodes: 0, nodeIds: [], gpus: 0, physicalMib: 0, effectiveSchedulableMib: 0 }
const NO_TASKS = { tasks: 0, taskIds: [] }
const NO_PREVIEW: GroupPreview = {
  joining: NO_NODES,
  leaving: NO_NODES,
  leavesCommonPool: NO_NODES,
  returnsToCommonPool: NO_NODES,
  finishing: NO_TASKS,
  becomeFeasible: NO_TASKS,
  becomeInfeasible: NO_TASKS,
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] }

const NO_FIGURES = {
  effectiveSchedulableMib: 0,
  commitLimitMib: 0,
  overCommittedMib: 0,
  reserveDeficitMib: 0,
}
const NOBODY = { count: 0, named: [] }

const NO_IMPACT: Impact = {
  total: { before: NO_FIGURES, after: NO_FIGURES },
  nodes: NOBODY,
  gpusOver: NOBODY,
  residencyImpossible: NOBODY,
  pending: { wouldFit: 0, wouldFitIds: [], infeasible: 0, infeasibleIds: [], lookedAt: 0, of: 0 },
  nextCycle: null,
}

/** 2026-01-02T03:04:05.678Z */
const START = Date.UTC(2026, 0, 2, 3, 4, 5, 678)

const NO_SWAPS = { swapOuts: 0, swapIns: 0, swappedOutMib: 0, swappedInMib: 0 }

export class FakeController implements ApiWorld {
  now = START
  /** Of the cluster. */
  counters: Counters = ZERO_COUNTERS
  /** Of the first node. */
  swaps: SwapCounts = NO_SWAPS
  config: Config = { fields: DEFAULT_CONFIG, source: 'environment', revision: 0 }
  /** Newest first. */
  readonly decisions: Decision[] = []
  /** Newest first. */
  readonly configs: ConfigRecord[] = []
  readonly nodes = new Map<string, Mutable<Node>>()
  readonly groups = new Map<string, Group>()
  readonly keys = new Map<string, { readonly body: string; readonly taskId: string }>()
  readonly open = new Map<string, Mutable<Task>>()
  readonly final: TaskRecord[] = []
  readonly events: Event[] = []
  /** The source of event streams. */
  readonly durable = new DurableEvents()
  /** The refusal of the next command, which is then not carried out. */
  nextRefusal: Refusal | null = null
  explained = 0
  /** The reason of every pending task. */
  waitReason: WaitExplanation['primary']['reason'] = 'WAITING_VRAM'
  /** The received keepalives, in order. */
  readonly kept: (boolean | null)[] = []
  readonly adoptions: Adoption[] = []
  leaseMs = 60_000
  #seq = 0

  readonly commands: { -readonly [K in keyof Commands]: Commands[K] } = {
    submitTask: (request, answer) =>
      this.#carryOut(answer, () => {
        const task = newLiveTask(this.#nextSpec(request), this.now)
        this.open.set(task.spec.id, task)
        return task
      }),
    submitOnce: (request, { key, body }, answer) =>
      this.#carryOut(answer, () => {
        const known = this.keys.get(key)
        if (known !== undefined && known.body !== body) return { code: 'key_reused', taskId: known.taskId }
        if (known !== undefined) return { taskId: known.taskId, isReplay: true }
        const task = newLiveTask(this.#nextSpec(request), this.now)
        this.open.set(task.spec.id, task)
        this.keys.set(key, { body, taskId: task.spec.id })
        return { taskId: task.spec.id, isReplay: false }
      }),
    updateTask: (id, change, _by, answer) =>
      this.#carryOut(answer, () => {
        const task = this.open.get(id)
        if (task === undefined) return { code: 'not_found', what: 'task', id }
        task.spec = { ...task.spec, ...change }
        return task
      }),
    cancelTask: (id, by, answer) =>
      this.#carryOut(answer, () => {
        const task = this.open.get(id)
        if (task === undefined) return { code: 'not_found', what: 'task', id }
        this.finish(id, 'cancelled', `cancelled by ${by}`)
        return task
      }),
    cancelTaskNow: (id, by, answer) => this.commands.cancelTask(id, by, answer),
    putConfig: (change, author, answer) =>
      this.#carryOut(answer, () => {
        this.config = {
          fields: { ...this.config.fields, ...change },
          source: 'persisted',
          revision: this.config.revision + 1,
        }
        this.configs.unshift({
          revision: this.config.revision,
          at: this.now,
          author,
          fields: this.config.fields,
        })
        return this.config
      }),
    putNodeConfig: (nodeId, change, _by, answer) =>
      this.#carryOut(answer, () => {
        const node = this.nodes.get(nodeId)
        if (node === undefined) return { code: 'not_found', what: 'node', id: nodeId }
        if (change.overcommitPercent !== undefined) node.overcommitOverride = change.overcommitPercent
        if (change.reserveMib !== undefined) node.reserveOverrideMib = change.reserveMib
        return node
      }),
    putGroup: (group, ifAbsent, _by, answer) =>
      this.#carryOut(answer, () => {
        if (ifAbsent && this.groups.has(group.id))
          return { code: 'conflict', detail: `Group "${group.id}" exists.` }
        this.groups.set(group.id, group)
        return group
      }),
    deleteGroup: (id, force, _by, answer) =>
      this.#carryOut(answer, () => {
        if (!this.groups.has(id)) return { code: 'not_found', what: 'group', id }
        const targeted = [...this.open.values()].some((task) => task.spec.groups.includes(id))
        if (targeted && !force) return { code: 'conflict', detail: `Pending tasks target group "${id}".` }
        this.groups.delete(id)
        return null
      }),
    setCordon: (nodeId, isCordoned, _by, answer) =>
      this.#carryOut(answer, () => {
        const node = this.nodes.get(nodeId)
        if (node === undefined) return { code: 'not_found', what: 'node', id: nodeId }
        node.isCordoned = isCordoned
        if (!isCordoned) node.drain = null
        return node
      }),
    holdTask: (id, _by, answer) => this.#carryOut(answer, () => this.#held(id, true)),
    releaseTask: (id, _by, answer) => this.#carryOut(answer, () => this.#held(id, false)),
    swapOutTask: (id, _by, answer) =>
      this.#carryOut(answer, () => this.open.get(id) ?? { code: 'not_found', what: 'task', id }),
    swapInTask: (id, _by, answer) =>
      this.#carryOut(answer, () => this.open.get(id) ?? { code: 'not_found', what: 'task', id }),
    drainNode: (nodeId, moveAfterMs, by, answer) =>
      this.#carryOut(answer, () => {
        const node = this.nodes.get(nodeId)
        if (node === undefined) return { code: 'not_found', what: 'node', id: nodeId }
        node.isCordoned = true
        node.drain = {
          since: this.now,
          movesAt: moveAfterMs === null ? null : this.now + moveAfterMs,
          by,
          event: 3,
        }
        return node
      }),
    requeueTask: (id, _confirmFenced, _by, answer) =>
      this.#carryOut(answer, () => this.open.get(id) ?? { code: 'not_found', what: 'task', id }),
    keepalive: (id, busy, answer) =>
      this.#carryOut(answer, () => {
        const task = this.open.get(id)
        if (task === undefined) return { code: 'not_found', what: 'task', id }
        if (task.spec.command !== null) return { code: 'conflict', detail: 'It runs a command.' }
        this.kept.push(busy)
        return { task, expiresAt: this.now + this.leaseMs }
      }),
    forgetNode: (nodeId, _by, answer) =>
      this.#carryOut(answer, () =>
        this.nodes.delete(nodeId) ? null : { code: 'not_found', what: 'node', id: nodeId },
      ),
    finishRecovery: (_by, answer) => this.#carryOut(answer, () => null),
    adoptAttempt: (adoption, _by, answer) =>
      this.#carryOut(answer, () => {
        this.adoptions.push(adoption)
        return { code: 'not_found', what: 'attempt', id: adoption.taskId }
      }),
    stopAttempt: ({ taskId }, _by, answer) =>
      this.#carryOut(answer, () => ({ code: 'not_found', what: 'attempt', id: taskId })),
    releaseRequeueFreeze: (_by, answer) => this.#carryOut(answer, () => NOT_FROZEN),
  }

  readonly views: Views = {
    alarms: () => [],
    stoppingCount: () => 0,
    recovery: () => ({
      ...{
        pause: null,
        recovery: null,
        awaitedSinceStart: [],
        aheadNodes: [],
        contacts: 0,
        resultUnknown: [],
      },
      ownMark: { epoch: 1, controller: 'fake', lastEventSeq: this.#seq },
    }),
    activityRuns: () => ({ wantingMs: [], idleMs: [] }),
    snapshot: () => ({
      at: this.now,
      config: this.config.fields,
      nodes: [],
      groups: [...this.groups.values()],
      tasks: [],
    }),
    now: () => this.now,
    config: () => this.config,
    nodes: () => this.nodes.values(),
    node: (id) => this.nodes.get(id),
    lastHeardAt: ({ lastSeenAt }) => lastSeenAt,
    groups: () => this.groups.values(),
    group: (id) => this.groups.get(id),
    openTasks: () => this.open.values(),
    openTasksBefore: (seq) => [...this.open.values()].filter((task) => task.spec.seq < seq).reverse(),
    placedTasks: () => [...this.open.values()].filter((task) => task.state !== 'pending'),
    openTask: (id) => this.open.get(id),
    counts: () => this.#counts(),
    totals: () => this.#totals(),
    explain: (task) => this.#explain(task),
    predict: () => ({ ok: true, value: NOT_PREDICTED }),
    previewGroup: () => NO_PREVIEW,
    explainFully: (task) => ({ wait: this.#explain(task), nodes: null, wouldFitIf: null, victim: null }),
    planConfig: (change) => {
      const planned = plannedConfig(this.config, change)
      return planned.ok ? { ok: true, value: { value: planned.value, impact: NO_IMPACT } } : planned
    },
    planNodeConfig: (nodeId, change) => {
      const node = this.nodes.get(nodeId)
      if (node === undefined) return { ok: false, refusal: { code: 'not_found', what: 'node', id: nodeId } }
      return { ok: true, value: { value: { ...node, ...overridesAfter(node, change) }, impact: NO_IMPACT } }
    },
    over: () => ({ gpuCount: 0, overCommittedMib: 0, reserveDeficitMib: 0 }),
    clusterCounters: () => this.counters,
    swapJain: () => null,
    lastEventSeq: () => this.events.at(-1)?.seq ?? 0,
    nodeCounters: () => ZERO_COUNTERS,
    gpuCounters: ({ node, index }) =>
      node.ordinal === 0 && index === 0 ? withoutQueue(this.counters) : ZERO_COUNTERS,
    pendingCount: () => this.#counts().pending,
    waits: () => ({ tasks: 0, queueUs: this.counters.queue }),
    nodeSwaps: ({ ordinal }) => (ordinal === 0 ? this.swaps : NO_SWAPS),
    gpuSwaps: () => NO_SWAPS,
    gpuCopyMs: () => 0,
    taskCounters: () => ZERO_COUNTERS,
    stored: {
      task: async (id) => this.final.find((record) => record.id === id) ?? null,
      finishedTasks: async ({
        states,
        owner,
        nameContains,
        nodeId,
        beforeSeq,
        afterSeq,
        isOldestFirst,
        limit,
      }) =>
        [...this.final]
          .sort((a, b) => (isOldestFirst ? a.seq - b.seq : b.seq - a.seq))
          .filter(
            (record) =>
              states.includes(record.state) &&
              (owner === null || record.owner === owner) &&
              (nameContains === null || isFoundBy(nameContains, record)) &&
              (nodeId === null || record.lastNodeId === nodeId) &&
              (afterSeq === null || record.seq > afterSeq) &&
              (beforeSeq === null || record.seq < beforeSeq),
          )
          .slice(0, limit),
      events: async ({
        afterSeq,
        beforeSeq = null,
        fromAt = null,
        untilAt = null,
        isNewestFirst = false,
        limit,
        ...filter
      }) => {
        const found = this.events
          .filter(
            (e) => e.seq > afterSeq && (beforeSeq === null || e.seq < beforeSeq) && isEventWanted(filter, e),
          )
          .filter((e) => (fromAt === null || e.at >= fromAt) && (untilAt === null || e.at < untilAt))
        return (isNewestFirst ? found.reverse() : found).slice(0, limit)
      },
      eventRange: async () => ({
        firstSeq: this.events[0]?.seq ?? this.views.lastEventSeq() + 1,
        lastSeq: this.views.lastEventSeq(),
      }),
      audits: async () => [],
      decision: async (number) => this.decisions.find((decision) => decision.number === number) ?? null,
      decisions: async (query) =>
        this.decisions.filter((decision) => isDecisionWanted(query, decision)).slice(0, query.limit),
      configRevisions: async ({ before, limit }) =>
        this.configs.filter(({ revision }) => before === null || revision < before).slice(0, limit),
    },
  }

  async addNode({ id, gpus, physicalMib }: { id: string; gpus: number; physicalMib: number }): Promise<void> {
    const node = emptyNode(id, this.nodes.size, this.now)
    const { percent } = resolveOvercommit(this.config.fields.default_vram_overcommit_percent, null)
    node.gpus = Array.from({ length: gpus }, (_, index) =>
      emptyGpu(node, index, physicalMib, percent, this.config.fields),
    )
    this.nodes.set(id, node)
  }

  /** Places an open task on the GPUs of a node, resident; its figures follow. */
  place(
    id: string,
    nodeId: string,
    gpuIndexes: readonly number[] = [0],
    over: Partial<Placement> = {},
  ): void {
    const task = this.open.get(id)
    const node = this.nodes.get(nodeId)
    if (task === undefined || node === undefined) throw new Error('place needs an open task and a node')
    const gpus = gpuIndexes.map((index) => node.gpus[index] as Mutable<Gpu>)
    const placement = placementOf(task, node, gpus, this.now, over)
    task.state = 'running'
    task.placement = placement
    task.lastNodeId = nodeId
    for (const gpu of gpus) {
      gpu.placements = [...gpu.placements, placement]
      gpu.swappableMib += placement.demandMib
      if (placement.residency !== 'swapped_out') gpu.swappableResidentMib += placement.demandMib
      gpu.freeMib = gpu.capacityMib - gpu.swappableResidentMib
    }
  }

  finish(
    id: string,
    state: 'completed' | 'failed' | 'cancelled' | 'lost',
    endReason: string | null = null,
  ): void {
    const task = this.open.get(id)
    if (task === undefined) throw new Error(`no open task ${id}`)
    Object.assign(task, { state, placement: null, finishedAt: this.now, endReason })
    this.open.delete(id)
    this.final.push(recordOf(task))
  }

  /** Adds an event that is durable and not yet published. */
  addEvent(kind: EventKind, over: Partial<Event> = {}): Event {
    const seq = (this.events.at(-1)?.seq ?? 0) + 1
    const event: Event = {
      seq,
      at: this.now,
      kind,
      taskId: null,
      nodeId: null,
      causedBy: null,
      by: null,
      data: {},
      ...over,
    }
    this.events.push(event)
    return event
  }

  /** Adds events that become durable together, and publishes them. */
  happen(...kinds: readonly (EventKind | readonly [EventKind, Partial<Event>])[]): void {
    this.durable.publish(
      kinds.map((each) => (typeof each === 'string' ? this.addEvent(each) : this.addEvent(...each))),
    )
  }

  snapshot(): string {
    const nodes = [...this.nodes.values()].map(
      ({ id, isCordoned, overcommitOverride, reserveOverrideMib }) => ({
        id,
        isCordoned,
        overcommitOverride,
        reserveOverrideMib,
      }),
    )
    const open = [...this.open.values()].map(({ spec, state }) => ({ spec, state }))
    return JSON.stringify({
      config: this.config,
      nodes,
      groups: [...this.groups.values()],
      open,
      final: this.final,
    })
  }

  /** Carries out a command at once and answers a moment later, as the engine does when it is durable. */
  #carryOut<T>(answer: AnswerTo<T>, act: () => T | Refusal): void {
    const outcome = this.nextRefusal ?? act()
    this.nextRefusal = null
    const reply: Answer<T> = isRefusal(outcome)
      ? { ok: false, refusal: outcome }
      : { ok: true, value: outcome }
    queueMicrotask(() => answer(reply))
  }

  #held(id: string, isHeld: boolean): Task | Refusal {
    const task = this.open.get(id)
    if (task === undefined) return { code: 'not_found', what: 'task', id }
    task.isHeld = isHeld
    return task
  }

  #nextSpec(request: Parameters<Commands['submitTask']>[0]): TaskSpec {
    this.#seq += 1
    const { id, name, maxRuntimeSeconds, vramMib, maxRequeues = 5, ...rest } = request
    return {
      ...rest,
      id: id ?? `00000000-0000-4000-8000-${String(this.#seq).padStart(12, '0')}`,
      seq: this.#seq,
      name: name ?? `task-${this.#seq}`,
      vramMib: vramMib ?? 0,
      maxRequeues,
      maxRuntimeMs: maxRuntimeSeconds === null ? null : maxRuntimeSeconds * 1000,
      submittedAt: this.now,
    }
  }

  #explain(task: Task): WaitExplanation | null {
    this.explained += 1
    if (task.state !== 'pending') return null
    const primary = {
      reason: this.waitReason,
      nodeIds: [NODE_ID],
      nodeCount: 1,
      haveMib: 10,
      needMib: task.spec.vramMib,
    } as const
    return {
      primary,
      secondary: [],
      sentence: `It needs ${task.spec.vramMib} MiB.`,
      retryAt: null,
      queuePosition: 1,
      servedBefore: null,
    }
  }

  #counts(): TaskCounts {
    const counts = {
      pending: 0,
      assigned: 0,
      running: 0,
      unreachable: 0,
      completed: 0,
      failed: 0,
      cancelled: 0,
      lost: 0,
    }
    for (const { state } of [...this.open.values(), ...this.final]) counts[state] += 1
    return counts
  }

  #totals(): ClusterTotals {
    const gpus = [...this.nodes.values()].flatMap((node) => node.gpus)
    const sum = (of: (gpu: Gpu) => number) => gpus.reduce((total, gpu) => total + of(gpu), 0)
    const percent = this.config.fields.default_vram_overcommit_percent
    return {
      nodes: this.nodes.size,
      nodesUp: this.nodes.size,
      gpus: gpus.length,
      gpusUp: gpus.length,
      physicalMib: sum((gpu) => gpu.physicalMib),
      effectiveSchedulableMib: sum((gpu) => effectiveSchedulableMib(gpu.physicalMib, percent)),
      commitLimitMib: sum((gpu) => gpu.limitMib),
      residentMib: sum((gpu) => gpu.swappableResidentMib),
      committedMib: sum((gpu) => gpu.swappableMib),
      swappedMib: sum((gpu) => gpu.swappableMib - gpu.swappableResidentMib),
      foreignMib: 0,
      swapOuts: 0,
      swapIns: 0,
      swappedOutMibTotal: 0,
      swappedInMibTotal: 0,
    }
  }
}

/** All running tasks are counted on the first GPU. */
function withoutQueue(counters: Counters): Counters {
  return { ...counters, demand: counters.demand - counters.queue, queue: 0 }
}

function isRefusal(value: unknown): value is Refusal {
  return typeof value === 'object' && value !== null && 'code' in value
}

function emptyNode(id: string, ordinal: number, now: number): Mutable<Node> {
  return {
    id,
    name: `node-${ordinal + 1}`,
    address: '127.0.0.1',
    status: 'up',
    isCordoned: false,
    autoCordon: null,
    isCordonDenied: false,
    ...{ requests: null, drain: null },
    quarantine: [],
    gpus: [],
    groups: [],
    overcommitOverride: null,
    reserveOverrideMib: null,
    device: 'simulated',
    hostLinkMibPerS: null,
    signalsWanted: true,
    allowExec: true,
    taskIdentity: null,
    features: [],
    images: [],
    preparationCount: 0,
    maxAttempts: 1024,
    attemptCount: 0,
    hostSwapMib: 131_072,
    hostUsedMib: 0,
    hostPromisedMib: 0,
    queue: [],
    collector: null,
    registeredAt: now,
    lastSeenAt: now,
    ordinal,
    rank: ordinal,
  }
}

/** Only the fields that the API shows. */
function emptyGpu(
  node: Node,
  index: number,
  physicalMib: number,
  percent: number,
  fields: ConfigFields,
): Gpu {
  const capacityMib = residentCapacityMib(physicalMib, fields.safety_reserve_mib, 0)
  const gpu: Partial<Gpu> = {
    node,
    index,
    model: 'Fake GPU',
    physicalMib,
    reserveMib: fields.safety_reserve_mib,
    capacityMib,
    overcommitPercent: percent,
    limitMib: commitLimitMib(physicalMib, percent, capacityMib),
    noswapMib: 0,
    swappableMib: 0,
    freeMib: capacityMib,
    foreignMib: 0,
    placements: [],
    eligible: [],
    exclusiveTask: null,
    noswapResidentMib: 0,
    swappableResidentMib: 0,
  }
  return gpu as Gpu
}

/** Only the fields that the API shows. */
function placementOf(
  task: Task,
  node: Node,
  gpus: readonly Gpu[],
  now: number,
  over: Partial<Placement>,
): Placement {
  const placement: Partial<Placement> = {
    task,
    node,
    gpus,
    demandMib: task.spec.vramMib,
    residualMib: 0,
    residency: 'resident',
    assignedAt: now,
    startedAt: now,
    wantsGpu: true,
    idleSince: now,
    ...over,
  }
  return placement as Placement
}

function recordOf(task: Task): TaskRecord {
  if (!isFinal(task.state)) throw new Error('only a final task goes to the store here')
  const { placementEntry: _claim, refusedBy: _refusedBy, spec, placement: _placement, ...rest } = task
  const { preparations: _preparations, imageDigest, ...course } = rest
  return {
    ...spec,
    ...course,
    ...(imageDigest === null ? {} : { imageDigest }),
    clientWants: null,
    lastEventSeq: null,
    counters: [100, 60, 30, 10, 0],
    placement: null,
  }
}
