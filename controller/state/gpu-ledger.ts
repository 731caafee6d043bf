/**
 * The ledger of one GPU: the only place that changes the figures of semantics section 1. Callers settle the
 * meter first where it matters.
 */
import type { Mib, Percent, Residency } from '../../protocol/units.ts'
import { removeAt } from '../structures/list-edit.ts'
import { movableMib } from '../model/placement.ts'
import { commitLimitMib, residentCapacityMib } from '../model/vram.ts'
import type { QuarantinedAttempt } from '../model/node.ts'
import { hostPromiseMib } from '../policy/placement/feasible.ts'
import { movingOutForMib } from '../policy/swap/bytes.ts'
import type { LiveEntry, LiveGpu, LiveNode, LivePlacement } from './facts.ts'

/** Recomputes the free VRAM. Called after every change below. */
export function rederive(gpu: LiveGpu): void {
  let kept = 0
  for (const claimant of gpu.claimants) kept += Math.max(0, claimant.needMib - movingOutForMib(gpu, claimant))
  gpu.freeMib = gpu.capacityMib - gpu.noswapResidentMib - gpu.swappableResidentMib - kept
}

/** Applies a new policy, override, reserve or foreign memory. */
export function setCapacity(gpu: LiveGpu, overcommitPercent: Percent, reserveMib: Mib): void {
  const promised = hostPromiseMib(gpu)
  gpu.overcommitPercent = overcommitPercent
  gpu.reserveMib = reserveMib
  gpu.capacityMib = residentCapacityMib(gpu.physicalMib, reserveMib, gpu.foreignMib)
  gpu.limitMib = commitLimitMib(gpu.physicalMib, overcommitPercent, gpu.capacityMib)
  gpu.node.hostPromisedMib += hostPromiseMib(gpu) - promised
  rederive(gpu)
}

/**
 * Adds a placement: its demand counts in N or S, and as resident from now on (semantics 1: a task starts
 * resident).
 */
export function addPlacement(gpu: LiveGpu, placement: LivePlacement): void {
  gpu.placements.push(placement)
  if (gpu === placement.gpus[0]) gpu.node.attemptCount += 1
  commitPlacement(gpu, placement, 1)
  if (placement.task.spec.gpuMode === 'exclusive') gpu.exclusiveTask = placement.task
  if (isInVram(placement)) addResident(gpu, placement, movableMib(placement))
  rederive(gpu)
}

export function removePlacement(gpu: LiveGpu, placement: LivePlacement): void {
  const at = gpu.placements.indexOf(placement)
  if (at < 0)
    throw new Error(
      `broken invariant: task ${placement.task.spec.id} is not on GPU ${gpu.index} of ${gpu.node.id}`,
    )
  removeAt(gpu.placements, at)
  if (gpu === placement.gpus[0]) gpu.node.attemptCount -= 1
  if (isInVram(placement)) addResident(gpu, placement, -movableMib(placement))
  if (placement.residency === 'swapping_out') gpu.movingOutMib -= movableMib(placement)
  if (gpu.exclusiveTask === placement.task) gpu.exclusiveTask = exclusiveOn(gpu)
  commitPlacement(gpu, placement, -1)
  rederive(gpu)
}

/** Residual VRAM counts in N; the rest counts as the task's noswap value says. */
function commitPlacement(gpu: LiveGpu, placement: LivePlacement, sign: 1 | -1): void {
  const change = sign === 1 ? commit : uncommit
  const { residualMib } = placement
  if (residualMib > 0) {
    change(gpu, residualMib, true)
    gpu.noswapResidentMib += sign * residualMib
  }
  change(gpu, movableMib(placement), placement.noswap === 1)
}

/**
 * Its server measured what it keeps in VRAM on each GPU while it is out: that moves between S and N. The
 * caller removes it from the eligible bytes first.
 */
export function changeResidual(placement: LivePlacement, residualMib: Mib): void {
  const { gpus, node, noswap, residency } = placement
  const before = placement.residualMib
  for (const gpu of gpus) {
    commitPlacement(gpu, placement, -1)
    if (isInVram(placement)) addResident(gpu, placement, before - residualMib)
    if (residency === 'swapping_out') gpu.movingOutMib += before - residualMib
  }
  if (noswap === 0 && isInHost(residency)) node.hostUsedMib += (before - residualMib) * gpus.length
  placement.residualMib = residualMib
  for (const gpu of gpus) {
    commitPlacement(gpu, placement, 1)
    refreshLargestSwappable(gpu)
    rederive(gpu)
  }
}

/** After a loss two exclusive tasks may be on one GPU: one by the store, one by the report of the node. */
function exclusiveOn({ placements }: LiveGpu): LiveGpu['exclusiveTask'] {
  return placements.find(({ task }) => task.spec.gpuMode === 'exclusive')?.task ?? null
}

/**
 * An attempt that the store does not know occupies its GPUs like a resident noswap task. @param sign -1
 * removes it
 */
export function countQuarantined(node: LiveNode, { gpus, vramMib }: QuarantinedAttempt, sign: 1 | -1): void {
  for (const index of gpus) {
    const gpu = node.gpus[index]
    if (gpu === undefined) continue
    gpu.quarantinedMib += sign * vramMib
    gpu.quarantinedCount += sign
    if (sign === 1) commit(gpu, vramMib, true)
    else uncommit(gpu, vramMib, true)
    gpu.noswapResidentMib += sign * vramMib
    rederive(gpu)
  }
}

/** Reserves VRAM for a pending task: it counts in N or S (semantics 1, last admission rule but three). */
export function addPendingClaimant(
  gpu: LiveGpu,
  entry: LiveEntry,
  place = gpu.pendingClaimants.length,
): void {
  gpu.pendingClaimants.splice(place, 0, entry)
  commit(gpu, entry.needMib, entry.task.spec.noswap === 1)
  if (gpu === entry.gpus[0]) gpu.node.attemptCount += 1
  rederive(gpu)
}

export function removePendingClaimant(gpu: LiveGpu, entry: LiveEntry): void {
  const at = gpu.pendingClaimants.indexOf(entry)
  if (at < 0) return
  gpu.pendingClaimants.splice(at, 1)
  uncommit(gpu, entry.needMib, entry.task.spec.noswap === 1)
  // A copy of the node has other GPUs with the same indexes.
  if (gpu.index === entry.gpus[0]?.index) gpu.node.attemptCount -= 1
  rederive(gpu)
}

/** Residency as the ledger sees it: in VRAM (resident, moving either way, or just placed), or swapped out. */
export function changeResidency(
  gpu: LiveGpu,
  placement: LivePlacement,
  from: LivePlacement['residency'],
  to: LivePlacement['residency'],
): void {
  const mib = movableMib(placement)
  if (from === 'swapped_out' && to !== 'swapped_out') addResident(gpu, placement, mib)
  if (from !== 'swapped_out' && to === 'swapped_out') addResident(gpu, placement, -mib)
  if (to === 'swapping_out') gpu.movingOutMib += mib
  if (from === 'swapping_out') gpu.movingOutMib -= mib
}

/** Host memory counts from the first byte that moves out until the last has moved in. */
export function countHostMemory(placement: LivePlacement, from: Residency, to: Residency): void {
  if (isInHost(from) === isInHost(to)) return
  const mib = movableMib(placement) * placement.gpus.length
  placement.node.hostUsedMib += isInHost(to) ? mib : -mib
}

/** Adds a granted growth to a placement, in VRAM or swapped out. */
export function growPlacement(gpu: LiveGpu, placement: LivePlacement, byMib: Mib): void {
  commit(gpu, byMib, placement.noswap === 1)
  if (isInVram(placement)) addResident(gpu, placement, byMib)
  if (placement.residency === 'swapping_out') gpu.movingOutMib += byMib
  gpu.largestSwappableMib = largestSwappable(gpu, placement, movableMib(placement) + byMib)
}

/** Moves the placement between N and S. */
export function changeNoswap(gpu: LiveGpu, placement: LivePlacement, noswap: 0 | 1): void {
  const mib = movableMib(placement)
  const sign = noswap === 1 ? 1 : -1
  const promised = hostPromiseMib(gpu)
  gpu.noswapMib += sign * mib
  gpu.swappableMib -= sign * mib
  if (isInVram(placement)) {
    gpu.noswapResidentMib += sign * mib
    gpu.swappableResidentMib -= sign * mib
  }
  gpu.node.hostPromisedMib += hostPromiseMib(gpu) - promised
}

/** Its memory is on the host, or moving there or back. */
export function isInHost(residency: Residency): boolean {
  return residency !== 'resident' && residency !== 'none'
}

function isInVram(placement: LivePlacement): boolean {
  return placement.residency !== 'swapped_out'
}

/** Recomputes the largest swappable demand after other changes of noswap, demand or membership. */
export function refreshLargestSwappable(gpu: LiveGpu): void {
  gpu.largestSwappableMib = largestSwappable(gpu, null, 0)
}

function commit(gpu: LiveGpu, mib: Mib, isNoswap: boolean): void {
  const promised = hostPromiseMib(gpu)
  if (isNoswap) gpu.noswapMib += mib
  else {
    gpu.swappableMib += mib
    if (mib > gpu.largestSwappableMib) gpu.largestSwappableMib = mib
  }
  gpu.node.hostPromisedMib += hostPromiseMib(gpu) - promised
}

function uncommit(gpu: LiveGpu, mib: Mib, isNoswap: boolean): void {
  const promised = hostPromiseMib(gpu)
  if (isNoswap) gpu.noswapMib -= mib
  else {
    gpu.swappableMib -= mib
    if (mib === gpu.largestSwappableMib) refreshLargestSwappable(gpu)
  }
  gpu.node.hostPromisedMib += hostPromiseMib(gpu) - promised
}

function addResident(gpu: LiveGpu, placement: LivePlacement, mib: Mib): void {
  if (placement.noswap === 1) gpu.noswapResidentMib += mib
  else gpu.swappableResidentMib += mib
}

function largestSwappable(gpu: LiveGpu, changed: LivePlacement | null, changedMib: Mib): Mib {
  let largest = changed?.noswap === 0 ? changedMib : 0
  for (const placement of gpu.placements)
    if (placement.noswap === 0 && movableMib(placement) > largest) largest = movableMib(placement)
  for (const claimant of gpu.pendingClaimants)
    if (claimant.task.spec.noswap === 0 && claimant.needMib > largest) largest = claimant.needMib
  return largest
}
