/**
 * Nodes under other settings: copies that the pure deciders read, while the live cluster is only read. Each
 * question concerns one pending task alone, without tasks ahead of it and entries of the nodes' queues;
 * callers must say so.
 */
import type { Instant, Mib, Percent } from '../../../protocol/units.ts'
import type { Policy } from '../../model/config.ts'
import type { Node } from '../../model/placement.ts'
import type { Placement, Task } from '../../model/placement.ts'
import { commitLimitMib, residentCapacityMib, resolveOvercommit } from '../../model/vram.ts'
import { hostPromiseMib, isPlaceable, isClosedTo } from '../../policy/placement/feasible.ts'
import type { Queued } from '../../policy/placement/queue.ts'
import { gpusOnNode } from '../../policy/placement/schedule.ts'
import type { PlacementTiming } from '../../policy/placement/score.ts'
import type { Shape } from '../../policy/placement/shape.ts'
import { movingOutForMib } from '../../policy/swap/bytes.ts'
import type { SwapGpu } from '../../policy/swap/eligible.ts'
import { eligibleFrom } from '../../policy/swap/eligible.ts'
import { coversPlacement } from '../../policy/swap/swap.ts'
import type { LiveGpu, LiveNode } from '../../state/facts.ts'

/** The settings in effect on a node, whatever their source. */
export interface NodeSettings {
  readonly overcommitPercent: Percent
  /** Per GPU. */
  readonly reserveMib: Mib
}

/** What differs from the present; omitted fields are unchanged. */
export interface Hypothesis {
  readonly settings?: NodeSettings
  readonly isCordoned?: boolean
  /** This task has ended on the node. */
  readonly withoutTask?: Task
  /** Eligibility is decided by this policy at this instant, assuming that no task uses a GPU until then. */
  readonly eligibility?: { readonly policy: Policy; readonly at: Instant }
}

/** A copy of a node. */
export interface NodeCopy extends Node {
  readonly gpus: readonly SwapGpu[]
}

type Writable<T> = { -readonly [K in keyof T]: T[K] }

/** Returns a copy of the node under the hypothesis, without the reservations of pending heads. */
export function nodeUnder(node: LiveNode, hypothesis: Hypothesis = {}): NodeCopy {
  const gone = placementsOf(node, hypothesis.withoutTask)
  const copy: Writable<NodeCopy> = {
    ...node,
    isCordoned: hypothesis.isCordoned ?? node.isCordoned,
    hostUsedMib: node.hostUsedMib - inHostMib(gone),
    attemptCount: node.attemptCount - gone.size,
    hostPromisedMib: 0,
    gpus: [],
  }
  const gpus = node.gpus.map((gpu) => gpuUnder(gpu, copy, hypothesis, gone))
  copy.gpus = gpus
  for (const gpu of gpus) copy.hostPromisedMib += hostPromiseMib(gpu)
  return copy
}

/** Returns the settings of a node under these global values, including its overrides. */
export function settingsOn(
  node: Pick<Node, 'overcommitOverride' | 'reserveOverrideMib'>,
  { overcommitPercent, safetyReserveMib }: Pick<Policy, 'overcommitPercent' | 'safetyReserveMib'>,
): NodeSettings {
  return {
    overcommitPercent: resolveOvercommit(overcommitPercent, node.overcommitOverride).percent,
    reserveMib: node.reserveOverrideMib ?? safetyReserveMib,
  }
}

/** Returns when a pending task would be placed on this node if no other task waited; null if it would not. */
export function whenPlacedOn(
  node: NodeCopy,
  queued: Queued,
  shape: Shape,
  policy: Policy,
  now: Instant,
): PlacementTiming | null {
  const { task } = queued
  if (!isPlaceable(node) || isClosedTo(task, node)) return null
  if (gpusOnNode(node, queued, shape, 'now', policy) !== null) return 'now'
  if (shape.kind === 'exclusive') return null
  const gpus = gpusOnNode(node, queued, shape, 'after_swap', policy)
  return gpus !== null && coversPlacement(task, node, gpus as readonly SwapGpu[], now) ? 'after_swap' : null
}

function gpuUnder(gpu: LiveGpu, node: Node, hypothesis: Hypothesis, gone: ReadonlySet<Placement>): SwapGpu {
  const copy: Writable<SwapGpu> = {
    ...gpu,
    node,
    reservations: gpu.reservations.filter(
      (hold) => hold.by === 'entry' && hold.task !== hypothesis.withoutTask,
    ),
  }
  if (hypothesis.settings !== undefined) settle(copy, hypothesis.settings)
  const leaving = gpu.placements.filter((placement) => gone.has(placement))
  if (leaving.length > 0 || hypothesis.eligibility !== undefined) takeAway(copy, leaving, hypothesis)
  return copy
}

function settle(copy: Writable<SwapGpu>, { overcommitPercent, reserveMib }: NodeSettings): void {
  const capacityMib = residentCapacityMib(copy.physicalMib, reserveMib, copy.foreignMib)
  copy.freeMib += capacityMib - copy.capacityMib
  copy.overcommitPercent = overcommitPercent
  copy.reserveMib = reserveMib
  copy.capacityMib = capacityMib
  copy.limitMib = commitLimitMib(copy.physicalMib, overcommitPercent, capacityMib)
}

/**
 * Removes placements from the copied ledger and recomputes the sums that `gpu-ledger.ts` and
 * `eligibility-timers.ts` keep.
 */
function takeAway(
  copy: Writable<SwapGpu>,
  leaving: readonly Placement[],
  { withoutTask, eligibility }: Hypothesis,
): void {
  for (const { demandMib, noswap, residency } of leaving) {
    if (noswap === 1) copy.noswapMib -= demandMib
    else copy.swappableMib -= demandMib
    if (residency === 'swapping_out') copy.movingOutMib -= demandMib
    if (residency === 'swapped_out') continue
    if (noswap === 1) copy.noswapResidentMib -= demandMib
    else copy.swappableResidentMib -= demandMib
  }
  const left = copy.placements.filter((placement) => !leaving.includes(placement))
  copy.placements =
    eligibility === undefined
      ? left
      : left.map((placement) => placementAt(placement, eligibility.policy, eligibility.at))
  copy.claimants = copy.claimants.filter(({ task }) => task !== withoutTask)
  if (copy.exclusiveTask === withoutTask) copy.exclusiveTask = null
  deriveSums(copy)
}

function deriveSums(copy: Writable<SwapGpu>): void {
  copy.eligibleMib = 0
  copy.eligibleP0Mib = 0
  copy.largestSwappableMib = 0
  for (const { task, demandMib, noswap, isEligible } of copy.placements) {
    if (noswap === 0 && demandMib > copy.largestSwappableMib) copy.largestSwappableMib = demandMib
    if (!isEligible) continue
    if (task.spec.priority === 0) copy.eligibleP0Mib += demandMib
    else copy.eligibleMib += demandMib
  }
  for (const { task, needMib } of copy.pendingClaimants) {
    if (task.spec.noswap === 0 && needMib > copy.largestSwappableMib) copy.largestSwappableMib = needMib
  }
  let keptMib = 0
  for (const claimant of copy.claimants)
    keptMib += Math.max(0, claimant.needMib - movingOutForMib(copy, claimant))
  copy.freeMib = copy.capacityMib - copy.noswapResidentMib - copy.swappableResidentMib - keptMib
}

function placementAt(placement: Placement, policy: Policy, at: Instant): Placement {
  const eligibleAt = eligibleFrom(placement, policy)
  const isEligible = eligibleAt !== null && eligibleAt <= at
  return isEligible === placement.isEligible ? placement : { ...placement, isEligible }
}

function placementsOf(node: LiveNode, task: Task | undefined): ReadonlySet<Placement> {
  const { placement } = task ?? { placement: null }
  return new Set(placement === null || placement.node !== node ? [] : [placement])
}

/** MiB in host memory, or moving there or back. */
function inHostMib(placements: ReadonlySet<Placement>): Mib {
  let mib = 0
  for (const { residency, demandMib, gpus } of placements) {
    if (residency !== 'resident' && residency !== 'none') mib += demandMib * gpus.length
  }
  return mib
}
