/**
 * A copy of one node for the ledger to try a change on. Its queue, tasks and entries are the live ones and must
 * not be changed.
 */
import type { Instant } from '../../../protocol/units.ts'
import type { Policy } from '../../model/config.ts'
import type { NodeSettings } from '../../model/vram.ts'
import type { LiveGpu, LiveNode, LivePlacement, LiveTask } from '../facts.ts'
import { countHostMemory, removePlacement, setCapacity } from '../gpu-ledger.ts'
import { EligibilityTimers, setEligible } from '../index/eligibility-timers.ts'
import { placementsOn } from '../placements-on.ts'

/** Returns the node as it is, without the reservations of pending heads. It is in no pool. */
export function forkNode(node: LiveNode): LiveNode {
  const fork: LiveNode = { ...node, pools: [] }
  const gpus = node.gpus.map((gpu): LiveGpu => ({
    ...gpu,
    node: fork,
    claimants: [...gpu.claimants],
    pendingClaimants: [...gpu.pendingClaimants],
    reservations: gpu.reservations.filter(({ by }) => by === 'entry'),
    figures: { ...gpu.figures },
    indexes: [],
  }))
  fork.gpus = gpus
  const copies = new Map<LivePlacement, LivePlacement>()
  for (const placement of placementsOn(node))
    copies.set(placement, {
      ...placement,
      node: fork,
      gpus: placement.gpus.map(({ index }) => gpus[index] as LiveGpu),
    })
  for (const gpu of gpus) gpu.placements = gpu.placements.map((each) => copies.get(each) as LivePlacement)
  return fork
}

export function applySettings({ gpus }: LiveNode, { overcommitPercent, reserveMib }: NodeSettings): void {
  for (const gpu of gpus) setCapacity(gpu, overcommitPercent, reserveMib)
}

/** Decides eligibility by this policy at this instant, assuming that no task uses a GPU until then. */
export function applyEligibility(fork: LiveNode, policy: Policy, at: Instant): void {
  const timers = new EligibilityTimers()
  for (const placement of placementsOn(fork)) timers.update({ ...UNHEARD, policy }, placement, at)
}

/** Removes a placed task, what it reserves, and what it waits for. */
export function endTaskOn(fork: LiveNode, task: LiveTask, policy: Policy): void {
  for (const gpu of fork.gpus) {
    gpu.claimants = gpu.claimants.filter((claimant) => claimant.task !== task)
    gpu.reservations = gpu.reservations.filter((reservation) => reservation.task !== task)
  }
  for (const placement of placementsOn(fork)) {
    if (placement.task !== task) continue
    if (placement.isEligible) setEligible({ ...UNHEARD, policy }, placement, false)
    countHostMemory(placement, placement.residency, 'none')
    for (const gpu of placement.gpus) removePlacement(gpu, placement)
  }
}

const UNHEARD = { eligibleBytesChanged: (): void => {} }
