/**
 * Which tasks may be swapped out for a request, and when the next one may (specification 8, rules 2 to 4;
 * semantics 5).
 */
import type { DurationMs, Instant, Mib } from '../../../protocol/units.ts'
import type { Policy } from '../../model/config.ts'
import { victimClassOf } from '../../model/victim-class.ts'
import { isAboveRequest, movableMib } from '../../model/placement.ts'
import type { Gpu } from '../../model/placement.ts'
import type { Placement, Task } from '../../model/placement.ts'
import type { Candidate } from './order.ts'
import type { GpuRounds } from './rounds.ts'
import { markOf } from './rounds.ts'

/** A GPU with the state of its rounds. */
export interface SwapGpu extends Gpu {
  readonly rounds: GpuRounds
}

/**
 * The instant from which a placement may be a victim if nothing changes; null if it may not be one. Idle for
 * the idle period (inclusive), or, with max_residency, resident that long although active (never a P0 task).
 * Not before a back-off ends, and never once its server has ended it or has been told to stop it: its VRAM
 * becomes free anyway, and the server refuses to move it.
 */
export function eligibleFrom(placement: Placement, policy: Policy): Instant | null {
  if (placement.noswap === 1 || placement.residency !== 'resident') return null
  if (placement.isOver || isStopping(placement)) return null
  const byIdleness = placement.wantsGpu
    ? Infinity
    : placement.idleSince + idlePeriodOf(placement.task, policy)
  const isBounded = policy.maxResidencyMs !== null && placement.task.spec.priority !== 0
  const byResidency = isBounded ? placement.residentSince + (policy.maxResidencyMs ?? 0) : Infinity
  const at = Math.max(Math.min(byIdleness, byResidency), placement.backOffUntil)
  return at === Infinity ? null : at
}

/** Idle time after which the task may be a victim: its own, or that of the cluster. */
export function idlePeriodOf({ spec }: Pick<Task, 'spec'>, { idlePeriodMs }: Policy): DurationMs {
  const { idleSwapOutSeconds = null } = spec
  return idleSwapOutSeconds === null ? idlePeriodMs : idleSwapOutSeconds * 1000
}

function isStopping({ stopping = null }: Placement): boolean {
  return stopping !== null
}

/** A P0 task is a candidate only for a P0 requester; no task is a candidate for itself. */
export function mayTake(requester: Task, placement: Pick<Placement, 'task'>): boolean {
  if (placement.task === requester) return false
  return placement.task.spec.priority !== 0 || requester.spec.priority === 0
}

/**
 * The eligible victims on one GPU, in any order. `hostFreeMib` is the free host memory: tasks that do not fit
 * in it are not candidates.
 */
export function eligibleOn(gpu: SwapGpu, requester: Task, now: Instant, hostFreeMib: Mib): Candidate[] {
  const candidates: Candidate[] = []
  for (const placement of gpu.eligible) {
    if (!mayLeaveFor(placement, requester, hostFreeMib)) continue
    const { spec } = placement.task
    const victimClass = victimClassOf(spec)
    const state = gpu.rounds[victimClass]
    const mark = markOf(state, spec.id)
    candidates.push({
      id: spec.id,
      class: victimClass,
      isAboveRequest: isAboveRequest(placement),
      idleMs: placement.wantsGpu ? 0 : now - placement.idleSince,
      mib: movableMib(placement),
      isSwappedThisRound: mark.round === state.round,
      lastSwapOut: mark.lastSwapOut,
    })
  }
  return candidates
}

/** VRAM of all eligible victims together. */
export function eligibleVictimsMib(gpu: Gpu, requester: Task, hostFreeMib: Mib): Mib {
  let mib = 0
  for (const placement of gpu.eligible)
    if (mayLeaveFor(placement, requester, hostFreeMib)) mib += movableMib(placement)
  return mib
}

function mayLeaveFor(placement: Placement, requester: Task, hostFreeMib: Mib): boolean {
  return mayTake(requester, placement) && movableMib(placement) * placement.gpus.length <= hostFreeMib
}

/**
 * The earliest instant after `now` at which another task on these GPUs becomes eligible; null if none will.
 */
export function nextEligibleAt(
  gpus: readonly Gpu[],
  requester: Task,
  policy: Policy,
  now: Instant,
): Instant | null {
  let earliest: Instant | null = null
  for (const gpu of gpus) {
    for (const placement of gpu.placements) {
      if (placement.isEligible || !mayTake(requester, placement)) continue
      const at = eligibleFrom(placement, policy)
      if (at !== null && at > now && (earliest === null || at < earliest)) earliest = at
    }
  }
  return earliest
}

/** VRAM on a GPU that could ever leave for this requester, idle or not: what a collector may count on. */
export function couldLeaveMib(gpu: Gpu, requester: Task): Mib {
  let mib = 0
  for (const placement of gpu.placements) {
    if (placement.noswap === 0 && placement.residency === 'resident' && mayTake(requester, placement))
      mib += movableMib(placement)
  }
  return mib
}

/**
 * VRAM on a GPU that tasks are about to use, by swap-in or reservation, and could leave for this requester.
 */
export function arrivingMib(gpu: Gpu, requester: Task): Mib {
  let mib = 0
  for (const placement of gpu.placements)
    if (placement.residency === 'swapping_in' && mayTake(requester, placement)) mib += movableMib(placement)
  for (const claimant of gpu.claimants)
    if (claimant.task.spec.noswap === 0 && mayTake(requester, claimant)) mib += claimant.needMib
  return mib
}
