/**
 * A world that begins with tasks: the content of the controller's store, and of each server's disk and GPUs,
 * as if all of them had just been restarted with nothing in progress. Production code does the rest:
 * recovery, hello, adoption (R4, R6).
 */
import type { StoredState, TaskRecord, PlacementRecord, NodeRecord } from '../../controller/ports/store.ts'
import { EMPTY_STATE } from '../../controller/adapters/memory-store.ts'
import { DEFAULT_CONFIG } from '../../controller/model/config.ts'
import { byCodeUnits } from '../../controller/structures/order.ts'
import { residentCapacityMib } from '../../controller/model/vram.ts'
import type { AttemptStart } from '../../gpu-server/core/attempt-start.ts'
import { EMPTY_NODE_STATE } from '../../gpu-server/core/storage.ts'
import type { KeptAttempt, NodeState } from '../../gpu-server/core/storage.ts'
import type { Instant, Mib } from '../../protocol/units.ts'
import { featuresOf } from '../fleet/simulated-server.ts'
import type { InitialNodeState } from '../fleet/node-host.ts'
import type { InitialProcess } from '../fleet/simulated-process.ts'
import { idOfNode } from '../scenario/node-id.ts'
import type { StartTask } from '../scenario/generate.ts'
import type { PlacedStart, Scenario, ScenarioNode } from '../scenario/scenario.ts'
import { specOfRequest, swapMethodIn } from '../../protocol/task-body.ts'

export interface WorldStart {
  readonly stored: StoredState
  nodeStateOf(nodeId: string): InitialNodeState
}

/** Number of residency changes so far on both sides: an adopting server adds one. */
const GENERATION = 2

export function worldStart(
  plan: Pick<Scenario, 'clock' | 'nodes' | 'config'>,
  tasks: readonly StartTask[],
): WorldStart {
  const at = plan.clock.startMs
  const nodes = new Map(plan.nodes.map((node) => [node.name, node]))
  const reserveMib = plan.config.safety_reserve_mib ?? DEFAULT_CONFIG.safety_reserve_mib
  const initialProcesses = new Map<string, InitialProcess[]>()
  const records = numbered(tasks).map(({ task, seq }): TaskRecord => {
    const { placed } = task.state
    const node = placed === null ? undefined : nodes.get(placed.node)
    if (placed === null || node === undefined) return recordOf(task, seq, null, at)
    const nodeId = idOfNode(node)
    const demandMib = placed.demandMib > 0 ? placed.demandMib : wholeGpuMib(node, placed, reserveMib)
    const initialProcess = initialProcessOf(task, placed, node, demandMib, at)
    initialProcesses.set(nodeId, [...(initialProcesses.get(nodeId) ?? []), initialProcess])
    return recordOf(task, seq, placementOf(placed, nodeId, demandMib, at), at)
  })
  return {
    stored: {
      ...EMPTY_STATE,
      openTasks: records,
      nodes: plan.nodes.map((node, ordinal) => nodeRecord(node, ordinal, at)),
      groups: groupsOf(plan.nodes),
      marks: {
        epoch: 0,
        nextTaskSeq: lastSeq(records) + 1,
        nextEventSeq: 1,
        nextDecision: lastDecision(tasks) + 1,
      },
    },
    nodeStateOf: (nodeId) => nodeStateWith(initialProcesses.get(nodeId) ?? []),
  }
}

/** The groups that the nodes name, each with its members. */
export function groupsOf(nodes: readonly ScenarioNode[]): StoredState['groups'] {
  const members = new Map<string, string[]>()
  for (const node of nodes)
    for (const group of node.groups) members.set(group, [...(members.get(group) ?? []), idOfNode(node)])
  return [...members].map(([id, nodeIds]) => ({ id, description: '', nodeIds: nodeIds.sort(byCodeUnits) }))
}

/**
 * In the order of submission: by number; a task without a number comes after the task before it in the file.
 */
function numbered(tasks: readonly StartTask[]): { readonly task: StartTask; readonly seq: number }[] {
  let last = 0
  const placed = tasks.map((task, index) => {
    last = task.state.number ?? last
    return { task, after: last, isNumbered: task.state.number !== null, index }
  })
  placed.sort((a, b) => a.after - b.after || Number(b.isNumbered) - Number(a.isNumbered) || a.index - b.index)
  return placed.map(({ task }, index) => ({ task, seq: index + 1 }))
}

function lastSeq(records: readonly TaskRecord[]): number {
  return records.at(-1)?.seq ?? 0
}

function lastDecision(tasks: readonly StartTask[]): number {
  let last = 0
  for (const { state } of tasks)
    for (const mark of state.placed?.marks ?? []) last = Math.max(last, mark?.decision ?? 0)
  return last
}

/** VRAM of an exclusive task without a demand. */
function wholeGpuMib(node: ScenarioNode, { gpus }: PlacedStart, defaultReserveMib: Mib): Mib {
  const reserveMib = node.safetyReserveMib ?? defaultReserveMib
  return Math.min(
    ...gpus.map((gpu) => residentCapacityMib(node.gpu.vramMib, reserveMib, foreignAtStart(node, gpu))),
  )
}

function foreignAtStart({ foreign = [] }: ScenarioNode, gpu: number): Mib {
  return foreign.findLast(({ atMs, gpus }) => atMs === 0 && (gpus === null || gpus.includes(gpu)))?.mib ?? 0
}

// ── the controller's store ───────────────────────────────────────────────────

function recordOf(
  { request, state }: StartTask,
  seq: number,
  placement: PlacementRecord | null,
  at: Instant,
): TaskRecord {
  return {
    ...specOfRequest(
      { ...request, command: request.command ?? SIMULATED_COMMAND },
      request.id,
      seq,
      null,
      at - state.submittedAgoMs,
    ),
    state: placement === null ? 'pending' : 'running',
    isHeld: state.isHeld,
    attempt: state.attempt,
    pendingSince: at - state.waitedMs,
    firstStartedAt: state.firstStartedAgoMs === null ? null : at - state.firstStartedAgoMs,
    finishedAt: null,
    exitCode: null,
    endReason: null,
    swapOuts: state.swapOuts,
    lastNodeId: placement?.nodeId ?? null,
    counters: [0, 0, 0, 0, 0],
    clientWants: null,
    lastEventSeq: null,
    placement,
  }
}

function placementOf(placed: PlacedStart, nodeId: string, demandMib: Mib, at: Instant): PlacementRecord {
  const residentSince = at - placed.residentForMs
  return {
    nodeId,
    gpus: placed.gpus,
    demandMib,
    noswap: placed.noswap,
    residency: placed.residency,
    ...(placed.residualMib === 0 ? {} : { residualMib: placed.residualMib }),
    generation: GENERATION,
    assignedAt: at - placed.startedAgoMs,
    startedAt: at - placed.startedAgoMs,
    wantsGpu: placed.idleForMs === null,
    wantsSince: at - placed.wantsForMs,
    idleSince: placed.idleForMs === null ? residentSince : at - placed.idleForMs,
    residentSince,
    heldGrowth:
      placed.growth === null ? null : { mib: placed.growth.mib, askedAt: at - placed.growth.askedAgoMs },
    stopping: null,
    confirmed: { bootCounter: 0, seq: 0 },
    isInDoubt: false,
    isNoswapUntold: false,
    isCalledBack: placed.isCalledBack,
    ...(placed.isSentAway ? { isSentAway: true } : {}),
    ...(hasReturnedEagerly(placed) ? { isEager: true, idleFrom: at - (placed.idleForMs ?? 0) } : {}),
    ...(placed.outForMs === null ? {} : { outSince: at - placed.outForMs }),
    isProbed: isAskedByProbe(placed),
    ...(placed.askedAgoMs === null ? {} : { askedAt: at - placed.askedAgoMs }),
    backOffUntil: placed.backOffMs === 0 ? 0 : at + placed.backOffMs,
    // Rounds are only compared for equality: the current one is 1, all before it are 0.
    marks: placed.marks.map((mark) =>
      mark === null ? null : { round: mark.isThisRound ? 1 : 0, lastSwapOut: mark.decision },
    ),
  }
}

/** It has been idle for longer than it was resident: its idle clock continued. */
function hasReturnedEagerly({ residency, idleForMs, residentForMs }: PlacedStart): boolean {
  return residency === 'resident' && idleForMs !== null && idleForMs > residentForMs
}

/** It requests its return, but not because of its work, an operator or an allocation. */
function isAskedByProbe({ askedAgoMs, idleForMs, isCalledBack, growth }: PlacedStart): boolean {
  return askedAgoMs !== null && idleForMs !== null && !isCalledBack && growth === null
}

function nodeRecord(node: ScenarioNode, ordinal: number, at: Instant): NodeRecord {
  return {
    id: idOfNode(node),
    name: node.name,
    address: `${node.name}.sim`,
    ordinal,
    isCordoned: node.isCordoned ?? false,
    drain: null,
    overcommitOverride: node.overcommitPercent,
    reserveOverrideMib: node.safetyReserveMib,
    device: 'simulated',
    signalsWanted: node.signalsWanted ?? true,
    allowExec: true,
    features: featuresOf(node),
    ...(node.maxAttempts === undefined ? {} : { maxAttempts: node.maxAttempts }),
    hostSwapMib: node.hostSwapMib,
    hostLinkMibPerS: node.hostLinkMibPerS ?? null,
    registeredAt: at,
    lastSeenAt: at,
    bootCounter: 0,
    bootRandom: '',
    leaseMs: 0,
    wasReset: false,
    gpus: Array.from({ length: node.gpuCount }, (_, index) => ({
      index,
      model: node.gpu.model,
      physicalMib: node.gpu.vramMib,
      foreignMib: 0,
      roundNonP0: 1,
      roundP0: 1,
      roundNonP0Warm: 1,
      roundP0Warm: 1,
    })),
  }
}

// ── the servers ──────────────────────────────────────────────────────────────

function initialProcessOf(
  task: StartTask,
  placed: PlacedStart,
  node: ScenarioNode,
  vramMib: Mib,
  at: Instant,
): InitialProcess {
  const { request, state } = task
  const start: AttemptStart = {
    taskId: request.id,
    attempt: state.attempt,
    gpus: placed.gpus,
    vramMib,
    gpuMode: request.gpuMode,
    noswap: placed.noswap,
    priority: request.priority,
    onNodeLoss: request.onNodeLoss,
    isLease: false,
    ...swapMethodIn(request),
  }
  return {
    start,
    startedAt: at - placed.startedAgoMs,
    isInVram: placed.residency === 'resident',
    residualMib: placed.residency === 'resident' ? 0 : placed.residualMib,
    isKnownToWant: node.signalsWanted === false && placed.idleForMs === null,
    lastUseAt: at - (placed.idleForMs ?? 0),
    heldMib: placed.growth?.mib ?? null,
    doneUs: placed.doneUs,
  }
}

function nodeStateWith(initialProcesses: readonly InitialProcess[]): InitialNodeState {
  const state: NodeState = {
    ...EMPTY_NODE_STATE,
    attempts: new Map(initialProcesses.map(({ start }) => [start.taskId, start.attempt])),
    living: new Map(initialProcesses.map((each) => [each.start.taskId, keptOf(each)])),
  }
  return { state, initialProcesses }
}

function keptOf({ start, isInVram, isKnownToWant, residualMib }: InitialProcess): KeptAttempt {
  return {
    ...start,
    residency: isInVram ? 'resident' : 'swapped_out',
    generation: GENERATION - 1,
    isStartAcknowledged: true,
    wantsGpu: isKnownToWant,
    // How it was swapped out is not in a snapshot: whatever stays, its hooks have left.
    ...(residualMib > 0 ? { isOutByHooks: true, residualMib } : {}),
  }
}

/** A simulated task is not a lease: it runs until its work is done. */
export const SIMULATED_COMMAND: readonly string[] = ['simulated']
