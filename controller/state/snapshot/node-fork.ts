/**
 * A copy of one node for the ledger to try a change on. Its queue, tasks and entries are the live ones and
 * must not be changed; so are its placements, until a change copies those that it concerns.
 */
import type { Instant } from '../../../protocol/units.ts'
import type { Policy } from '../../model/config.ts'
import type { NodeSettings } from '../../model/vram.ts'
import { eligibleFrom } from '../../policy/swap/eligible.ts'
import type { LiveEntry, LiveGpu, LiveNode, LivePlacement, LiveTask } from '../facts.ts'
import {
  countHostMemory,
  rederive,
  removePendingClaimant,
  removePlacement,
  setCapacity,
} from '../gpu-ledger.ts'
import { setEligible } from '../index/eligibility-timers.ts'
import { placementsOn } from '../placements-on.ts'

/** Returns the node as it is, without the reservations of pending heads. It is in no pool. */
export function forkNode(node: LiveNode): LiveNode {
  return forkWith(node, ({ by }) => by === 'entry')
}

/** As above, with all reservations. */
export function forkWithReservations(node: LiveNode): LiveNode {
  return forkWith(node, () => true)
}

function forkWith(
  node: LiveNode,
  keeps: (reservation: LiveGpu['reservations'][number]) => boolean,
): LiveNode {
  const fork: LiveNode = { ...node, pools: [] }
  fork.gpus = node.gpus.map((gpu) => ({
    ...gpu,
    node: fork,
    reservations: gpu.reservations.filter(keeps),
    indexes: [],
  }))
  return fork
}

export function applySettings({ gpus }: LiveNode, { overcommitPercent, reserveMib }: NodeSettings): void {
  for (const gpu of gpus) setCapacity(gpu, overcommitPercent, reserveMib)
}

/** Decides eligibility by this policy at this instant, assuming that no task uses a GPU until then. */
export function applyEligibility(fork: LiveNode, policy: Policy, at: Instant): void {
  for (const placement of placementsOn(fork)) {
    const eligibleAt = eligibleFrom(placement, policy)
    const isEligible = eligibleAt !== null && eligibleAt <= at
    if (isEligible !== placement.isEligible)
      setEligible({ ...UNHEARD, policy }, ownPlacement(fork, placement), isEligible)
  }
}

/** Removes a placed task, what it reserves, and what it waits for. */
export function endTaskOn(fork: LiveNode, task: LiveTask, policy: Policy): void {
  for (const gpu of fork.gpus) {
    gpu.claimants = gpu.claimants.filter((claimant) => claimant.task !== task)
    gpu.reservations = gpu.reservations.filter((reservation) => reservation.task !== task)
  }
  if (task.placement === null) return
  const placement = ownPlacement(fork, task.placement)
  if (placement.isEligible) setEligible({ ...UNHEARD, policy }, placement, false)
  countHostMemory(placement, placement.residency, 'none')
  for (const gpu of placement.gpus) removePlacement(gpu, placement)
}

/** Releases what an entry has reserved; the entry itself stays in the queue. */
export function releaseEntryOn(fork: LiveNode, entry: LiveEntry): void {
  for (const { index } of entry.gpus) {
    const gpu = fork.gpus[index] as LiveGpu
    gpu.claimants = gpu.claimants.filter((claimant) => claimant !== entry)
    gpu.pendingClaimants = [...gpu.pendingClaimants]
    removePendingClaimant(gpu, entry)
    rederive(gpu)
  }
}

const UNHEARD = { eligibleBytesChanged: (): void => {} }

/** Replaces a live placement of the node by a copy. */
function ownPlacement(fork: LiveNode, placement: LivePlacement): LivePlacement {
  const gpus = placement.gpus.map(({ index }) => fork.gpus[index] as LiveGpu)
  const copy: LivePlacement = { ...placement, node: fork, gpus }
  const replaced = (each: LivePlacement) => (each === placement ? copy : each)
  for (const gpu of gpus) {
    gpu.placements = gpu.placements.map(replaced)
    gpu.eligible = gpu.eligible.map(replaced)
  }
  return copy
}
