/** Converts between the engine's live objects and the records of the store. */
import type { Mutable } from '../../protocol/fields.ts'
import { MAX_ATTEMPTS_PER_NODE } from '../../protocol/limits.ts'
import type { Instant } from '../../protocol/units.ts'
import { isFinal } from '../model/task.ts'
import { endCodeOf } from '../model/end-reason.ts'
import { NO_TROUBLE } from '../model/start-refusal.ts'
import type { TaskSpec } from '../../protocol/task.ts'
import { STORED_PLACEMENT, STORED_TASK } from '../ports/store.ts'
import type { NodeRecord, PlacementRecord, TaskRecord } from '../ports/store.ts'
import { ROUND_FIELDS, VICTIM_CLASSES, victimClassOf } from '../model/victim-class.ts'
import { markOf } from '../policy/swap/rounds.ts'
import type { LiveGpu, LiveNode, LivePlacement, LiveTask } from './facts.ts'
import { countQuarantined } from './gpu-ledger.ts'
import { newNodeContact } from './node-contact.ts'
import { newLiveGpu, newLivePlacement, newLiveTask, newSwapTotals } from './new-facts.ts'
import { specOfRecord, withoutValues } from '../../protocol/task-body.ts'

export function recordOfTask(task: LiveTask): TaskRecord {
  const { spec, placement } = task
  const served = task.servedUs + (placement?.servedUs ?? 0)
  const compute = task.computeUs + (placement?.computeUs ?? 0)
  const own = {
    ...(isFinal(task.state) ? withoutValues(spec) : spec),
    clientWants: task.clientWants,
    lastEventSeq: task.lastEventSeq,
    lastNodeId: task.lastNodeId,
    counters: [served + compute + task.queueUs + task.swapUs, served, task.queueUs, task.swapUs, compute],
    placement: placement === null ? null : recordOfPlacement(placement),
  } as const
  const record: Mutable<TaskRecord> = withFields(own, task, STORED_TASK)
  if (task.endCode !== null) record.endCode = task.endCode
  if (task.givenUp.length > 0) record.givenUp = task.givenUp
  if (task.trouble !== NO_TROUBLE) record.trouble = task.trouble
  if (task.imageDigest !== null) record.imageDigest = task.imageDigest
  return record
}

function recordOfPlacement(p: LivePlacement): PlacementRecord {
  const own = {
    nodeId: p.node.id,
    gpus: p.gpus.map((gpu) => gpu.index),
    heldGrowth: p.heldGrowth,
    stopping: p.stopping,
    confirmed: p.confirmed,
    isInDoubt: p.isInDoubt,
    isNoswapUntold: p.isNoswapUnacknowledged,
    isCalledBack: p.isSwapInRequested,
    isProbed: p.isProbed,
    outSince: p.swappedOutSince,
    askedAt: p.entry?.kind === 'swap_in' ? p.entry.askedAt : null,
    backOffUntil: p.backOffUntil,
    marks: p.gpus.map((gpu) => {
      const mark = markOf(classRound(gpu, p.task.spec), p.task.spec.id)
      return mark.round < 0 ? null : { round: mark.round, lastSwapOut: mark.lastSwapOut }
    }),
  }
  const record: Mutable<PlacementRecord> = withFields(own, p, STORED_PLACEMENT)
  if (p.isWakeable) record.isWakeable = true
  if (p.residualMib !== 0) record.residualMib = p.residualMib
  if (p.outBy !== null) record.outBy = p.outBy
  if (p.whyNotSwappable !== null) record.whyNotSwappable = p.whyNotSwappable
  if (p.isSwappedOutByOperator) record.isSentAway = true
  if (p.isEager) {
    record.isEager = true
    record.idleFrom = p.idleFrom
  }
  return record
}

export function recordOfNode(node: LiveNode): NodeRecord {
  return {
    id: node.id,
    name: node.name,
    address: node.address,
    ordinal: node.ordinal,
    isCordoned: node.isCordoned,
    ...(node.autoCordon === null ? {} : { autoCordon: node.autoCordon }),
    drain: node.drain,
    overcommitOverride: node.overcommitOverride,
    reserveOverrideMib: node.reserveOverrideMib,
    device: node.device,
    signalsWanted: node.signalsWanted,
    allowExec: node.allowExec,
    ...(node.features.length === 0 ? {} : { features: node.features }),
    ...(node.taskIdentity === null ? {} : { taskIdentity: node.taskIdentity }),
    ...(node.maxAttempts === MAX_ATTEMPTS_PER_NODE ? {} : { maxAttempts: node.maxAttempts }),
    hostSwapMib: node.hostSwapMib,
    ...(node.hostLinkMibPerS === null ? {} : { hostLinkMibPerS: node.hostLinkMibPerS }),
    registeredAt: node.registeredAt,
    lastSeenAt: node.lastSeenAt,
    bootCounter: node.boot.counter,
    bootRandom: node.boot.random,
    leaseMs: node.contact.leaseMs,
    wasReset: node.contact.wasReset,
    status: node.status,
    ...(node.quarantine.length === 0 ? {} : { quarantine: node.quarantine }),
    gpus: node.gpus.map((gpu) => ({
      index: gpu.index,
      model: gpu.model,
      physicalMib: gpu.physicalMib,
      foreignMib: gpu.foreignMib,
      roundNonP0: gpu.rounds.non_p0.round,
      roundP0: gpu.rounds.p0.round,
      // Absent until a task that is kept warm was swapped out: records of other clusters stay as they were.
      ...(gpu.rounds.non_p0_warm.round === 0 ? {} : { roundNonP0Warm: gpu.rounds.non_p0_warm.round }),
      ...(gpu.rounds.p0_warm.round === 0 ? {} : { roundP0Warm: gpu.rounds.p0_warm.round }),
    })),
  }
}

export function nodeOf(record: NodeRecord, now: Instant): LiveNode {
  const node: LiveNode = {
    id: record.id,
    name: record.name,
    address: record.address,
    // Not heard since the start: no placements before its first message.
    status: 'suspect',
    isCordoned: record.isCordoned,
    autoCordon: record.autoCordon ?? null,
    isCordonDenied: false,
    hostRefusals: [],
    cancelTrial: null,
    drain: record.drain,
    gpus: [],
    groups: [],
    overcommitOverride: record.overcommitOverride,
    reserveOverrideMib: record.reserveOverrideMib,
    device: record.device,
    signalsWanted: record.signalsWanted,
    allowExec: record.allowExec,
    features: record.features ?? [],
    images: [],
    requests: null,
    preparationCount: 0,
    taskIdentity: record.taskIdentity ?? null,
    maxAttempts: record.maxAttempts ?? MAX_ATTEMPTS_PER_NODE,
    attemptCount: 0,
    otherAttempts: [],
    hostSwapMib: record.hostSwapMib,
    hostLinkMibPerS: record.hostLinkMibPerS ?? null,
    hostUsedMib: 0,
    hostPromisedMib: 0,
    queue: [],
    collector: null,
    quarantine: record.quarantine ?? [],
    unknown: [],
    deferred: null,
    registeredAt: record.registeredAt,
    lastSeenAt: record.lastSeenAt,
    ordinal: record.ordinal,
    rank: 0,
    boot: { counter: record.bootCounter, random: record.bootRandom },
    snapshotSeq: 0,
    contact: newNodeContact(record.leaseMs, record.wasReset, now),
    pools: [],
    swaps: newSwapTotals(),
    isHostTight: false,
    hasEntryReservations: false,
    entryReservations: [],
    isTouched: false,
    cancelDrain: null,
    wakeAt: null,
    cancelWake: null,
    cancelEager: null,
    isDirty: false,
  }
  node.gpus = record.gpus.map((gpu) => {
    const live = newLiveGpu(node, gpu.index, gpu.model, gpu.physicalMib, gpu.foreignMib, now)
    for (const each of VICTIM_CLASSES) live.rounds[each].round = gpu[ROUND_FIELDS[each]] ?? 0
    for (const { taskId, class: victimClass, round, lastSwapOut } of gpu.marks ?? [])
      live.rounds[victimClass].marks.set(taskId, { round, lastSwapOut })
    return live
  })
  for (const attempt of node.quarantine) countQuarantined(node, attempt, 1)
  return node
}

/** Returns the task without its placement; `placementOf` adds it once its node is known. */
export function taskOf(record: TaskRecord): LiveTask {
  const task = newLiveTask(specOfRecord(record), record.pendingSince)
  Object.assign(task, pick(record, STORED_TASK) satisfies Partial<LiveTask>)
  task.clientWants = record.clientWants
  task.lastEventSeq = record.lastEventSeq
  task.endCode = endCodeOf(record)
  task.trouble = record.trouble ?? NO_TROUBLE
  task.imageDigest = record.imageDigest ?? null
  task.lastNodeId = record.lastNodeId ?? record.placement?.nodeId ?? null
  task.givenUp = record.givenUp ?? task.givenUp
  const [, served, queue, swap, compute] = record.counters
  task.servedUs = served
  task.queueUs = queue
  task.swapUs = swap
  task.computeUs = compute
  return task
}

export function placementOf(
  task: LiveTask,
  record: PlacementRecord,
  gpus: readonly LiveGpu[],
): LivePlacement {
  const placement = newLivePlacement(task, gpus, record.demandMib, record.assignedAt)
  Object.assign(placement, pick(record, STORED_PLACEMENT) satisfies Partial<LivePlacement>)
  placement.heldGrowth = record.heldGrowth
  placement.stopping = record.stopping
  placement.confirmed = record.confirmed
  placement.isInDoubt = record.isInDoubt
  placement.isNoswapUnacknowledged = record.isNoswapUntold
  placement.isSwapInRequested = record.isCalledBack
  placement.isProbed = record.isProbed ?? false
  placement.isWakeable = record.isWakeable ?? false
  placement.residualMib = record.residualMib ?? 0
  placement.outBy = record.outBy ?? null
  placement.whyNotSwappable = record.whyNotSwappable ?? null
  placement.isSwappedOutByOperator = record.isSentAway ?? false
  placement.isEager = record.isEager ?? false
  placement.idleFrom = record.idleFrom ?? record.residentSince
  placement.swappedOutSince = record.outSince ?? null
  placement.backOffUntil = record.backOffUntil ?? 0
  record.marks.forEach((mark, i) => {
    const gpu = gpus[i]
    if (mark !== null && gpu !== undefined) classRound(gpu, task.spec).marks.set(task.spec.id, mark)
  })
  return placement
}

function classRound(gpu: LiveGpu, spec: TaskSpec): LiveGpu['rounds']['p0'] {
  return gpu.rounds[victimClassOf(spec)]
}

function pick<T, K extends keyof T>(from: T, names: readonly K[]): Pick<T, K> {
  return withFields({}, from, names)
}

/** Adds these fields to the record. */
function withFields<R extends object, T, K extends keyof T>(
  record: R,
  from: T,
  names: readonly K[],
): R & Pick<T, K> {
  const whole = record as R & Mutable<Pick<T, K>>
  for (const name of names) whole[name] = from[name] as (typeof whole)[K]
  return whole
}
