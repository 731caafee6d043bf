/**
 * Converts the live cluster to a scenario that starts in its state (docs/twin.md). What a scenario cannot
 * express is omitted or settled, and counted: nodes that are not up are omitted with their tasks; swaps and
 * starts in progress count as complete.
 */
import type { ClusterSnapshot, SnapshotNode } from '../../controller/ports/twin.ts'
import type { PlacementRecord, TaskRecord } from '../../controller/ports/store.ts'
import type { ConfigFields } from '../../controller/model/config.ts'
import type { DurationMs, Instant, Mib } from '../../protocol/units.ts'
import { ROUND_FIELDS, victimClassOf } from '../../controller/model/victim-class.ts'
import { SWAP_PROFILES } from '../scenario/swap-profiles.ts'
import type { WorkLeft } from '../fleet/simulated-process.ts'
import type {
  AllocSteps,
  GpuModel,
  PlacedStart,
  ScenarioNode,
  TaskItem,
  TaskStart,
} from '../scenario/scenario.ts'
import { nodeNames } from './node-names.ts'
import { requestOfSpec } from '../../protocol/task-body.ts'

/** Facts that the cluster snapshot does not contain. */
export interface SnapshotModel {
  /** The remaining work of the task. */
  workLeftOf(task: TaskRecord): WorkLeft
  allocStepsOf?(task: TaskRecord): AllocSteps
  /** Since the start of the snapshot; null: never cancelled. */
  cancelAtOf?(task: TaskRecord): DurationMs | null
  /** How its GPUs swap and share, and how processes start; absent: stock driver, time slices, at once. */
  gpuModelOf?(node: SnapshotNode): Partial<GpuModel> & Pick<GpuModel, 'swap' | 'efficiencyPermille'>
}

export interface Snapshot<Tasks extends Iterable<TaskItem> = readonly TaskItem[]> {
  readonly startMs: Instant
  readonly config: ConfigFields
  readonly nodes: readonly ScenarioNode[]
  /** All have a `state`: placed tasks by submission, then pending tasks in queue order. */
  readonly tasks: Tasks
  readonly leftOut: LeftOut
}

export interface LeftOut {
  /** Nodes that are not up or have no VRAM, and the tasks on them. */
  readonly nodes: number
  readonly tasks: number
  /** Swaps in progress that count as complete. */
  readonly swapsSettled: number
}

export function snapshotOf(image: ClusterSnapshot, model: SnapshotModel): Snapshot {
  const snapshot = lazySnapshotOf(image, model)
  return { ...snapshot, tasks: [...snapshot.tasks] }
}

/** The same, with tasks created on demand, so that a large snapshot can be written in parts. */
export function lazySnapshotOf(image: ClusterSnapshot, model: SnapshotModel): Snapshot<Iterable<TaskItem>> {
  const up = image.nodes.filter((node) => node.status === 'up' && largestMib(node) > 0)
  const names = nodeNames(up)
  const place = { at: image.at, names, rounds: new Map(up.map((node) => [node.id, node.gpus])) }
  const leftOut = { nodes: image.nodes.length - up.length, tasks: 0, swapsSettled: 0 }
  for (const task of image.tasks) {
    const residency = task.placement?.residency
    if (!isIn(task, names)) leftOut.tasks += 1
    else if (residency === 'swapping_in' || residency === 'swapping_out') leftOut.swapsSettled += 1
  }
  return {
    startMs: image.at,
    config: image.config,
    nodes: up.map((node) => nodeOf(node, image, names.get(node.id) as string, model)),
    tasks: itemsOf(image, model, place),
    leftOut,
  }
}

function* itemsOf({ tasks }: ClusterSnapshot, model: SnapshotModel, place: Place): Generator<TaskItem, void> {
  for (const task of tasks) if (isIn(task, place.names)) yield itemOf(task, model, place)
}

function isIn({ placement, state }: TaskRecord, names: ReadonlyMap<string, string>): boolean {
  return (
    placement === null ||
    (names.has(placement.nodeId) && placement.stopping === null && state !== 'unreachable')
  )
}

interface Place {
  readonly at: Instant
  readonly names: ReadonlyMap<string, string>
  readonly rounds: ReadonlyMap<string, SnapshotNode['gpus']>
}

// ── nodes ────────────────────────────────────────────────────────────────────

/**
 * All GPUs of a node are alike in a scenario: if they differ, all count as the largest, and the difference as
 * VRAM used by others.
 */
function nodeOf(
  node: SnapshotNode,
  { groups }: ClusterSnapshot,
  name: string,
  model: SnapshotModel,
): ScenarioNode {
  const modelled = model.gpuModelOf?.(node) ?? STOCK
  const { swap, swapMethods, driverSwaps, efficiencyPermille, startMs = 0 } = modelled
  const { hostLinkMibPerS = null } = node
  const vramMib = largestMib(node)
  const foreign = node.gpus.flatMap(({ index, foreignMib, physicalMib }) => {
    const mib = foreignMib + vramMib - physicalMib
    return mib === 0 ? [] : [{ atMs: 0, mib, gpus: [index] }]
  })
  return {
    name,
    id: node.id,
    gpuCount: node.gpus.length,
    gpu: {
      // A server may leave it empty, a scenario may not.
      model: node.gpus[0]?.model === '' ? 'generic' : (node.gpus[0]?.model ?? 'generic'),
      vramMib,
      swap,
      ...(swapMethods === undefined ? {} : { swapMethods }),
      ...(driverSwaps === undefined ? {} : { driverSwaps }),
      efficiencyPermille,
      ...(startMs === 0 ? {} : { startMs }),
    },
    groups: groups.filter(({ nodeIds }) => nodeIds.includes(node.id)).map(({ id }) => id),
    safetyReserveMib: node.reserveOverrideMib,
    overcommitPercent: node.overcommitOverride,
    hostSwapMib: node.hostSwapMib,
    ...(hostLinkMibPerS === null ? {} : { hostLinkMibPerS }),
    ...(node.maxAttempts === undefined ? {} : { maxAttempts: node.maxAttempts }),
    ...(node.signalsWanted ? {} : { signalsWanted: false }),
    ...(foreign.length === 0 ? {} : { foreign }),
    ...(node.isCordoned ? { isCordoned: true } : {}),
  }
}

const STOCK: ReturnType<NonNullable<SnapshotModel['gpuModelOf']>> = {
  swap: SWAP_PROFILES['stock-driver'],
  efficiencyPermille: [1000],
}

/** 0: it has no GPU that a scenario could express. */
function largestMib({ gpus }: SnapshotNode): Mib {
  return gpus.reduce((most, gpu) => Math.max(most, gpu.physicalMib), 0)
}

// ── tasks ────────────────────────────────────────────────────────────────────

function itemOf(task: TaskRecord, model: SnapshotModel, place: Place): TaskItem {
  const { work, doneUs } = model.workLeftOf(task)
  return {
    kind: 'task',
    atMs: 0,
    // Labels do not influence decisions, and may contain more than a file should.
    request: requestOfSpec(task),
    work,
    allocSteps: model.allocStepsOf?.(task) ?? [],
    cancelAtMs: model.cancelAtOf?.(task) ?? null,
    state: stateOf(task, doneUs, place),
  }
}

function stateOf(task: TaskRecord, doneUs: number, place: Place): TaskStart {
  const { at } = place
  const { placement } = task
  return {
    number: task.seq,
    submittedAgoMs: since(at, task.submittedAt),
    waitedMs: since(at, task.pendingSince),
    isHeld: task.isHeld,
    attempt: task.attempt,
    swapOuts: task.swapOuts,
    firstStartedAgoMs:
      task.firstStartedAt === null ? (placement === null ? null : 0) : since(at, task.firstStartedAt),
    placed: placement === null ? null : placedOf(placement, task, doneUs, place),
  }
}

function placedOf(
  p: PlacementRecord,
  task: TaskRecord,
  doneUs: number,
  { at, names, rounds }: Place,
): PlacedStart {
  const isOut = p.residency === 'swapped_out' || p.residency === 'swapping_out'
  const gpus = rounds.get(p.nodeId) ?? []
  const startedAgoMs = since(at, p.startedAt ?? at)
  return {
    node: names.get(p.nodeId) as string,
    gpus: p.gpus,
    demandMib: p.demandMib,
    noswap: p.noswap,
    residency: isOut ? 'swapped_out' : 'resident',
    residualMib: p.residualMib ?? 0,
    startedAgoMs,
    residentForMs: p.startedAt === null ? 0 : since(at, p.residentSince),
    idleForMs: p.wantsGpu || p.startedAt === null ? null : since(at, p.idleSince),
    wantsForMs: p.startedAt === null ? 0 : since(at, p.wantsSince),
    askedAgoMs: isOut && (p.askedAt ?? null) !== null ? since(at, p.askedAt as Instant) : null,
    isCalledBack: p.isCalledBack,
    outForMs:
      p.residency === 'swapped_out' && (p.outSince ?? null) !== null
        ? since(at, p.outSince as Instant)
        : null,
    isSentAway: isOut && p.isSentAway === true,
    growth:
      p.heldGrowth === null ? null : { mib: p.heldGrowth.mib, askedAgoMs: since(at, p.heldGrowth.askedAt) },
    backOffMs: Math.max(0, (p.backOffUntil ?? 0) - at),
    marks: p.marks.map((mark, index) => {
      const gpu = gpus[p.gpus[index] ?? -1]
      const round = gpu?.[ROUND_FIELDS[victimClassOf(task)]] ?? 0
      return mark === null ? null : { isThisRound: mark.round === round, decision: mark.lastSwapOut }
    }),
    doneUs,
  }
}

function since(at: Instant, then: Instant): DurationMs {
  return Math.max(0, at - then)
}
