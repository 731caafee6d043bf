/**
 * Whether a placed task could be swapped out now, and if not, why and until when (semantics 5, "Eligible").
 */
import { isAboveRequest, movableMib } from '../../model/placement.ts'
import { inMib, MOVERS, secondsUntil } from '../../model/words.ts'
import type { Instant } from '../../../protocol/units.ts'
import type { Policy } from '../../model/config.ts'
import { eligibleFrom, idlePeriodOf } from '../../policy/swap/eligible.ts'
import type { Cluster } from '../../state/cluster.ts'
import type { LivePlacement } from '../../state/facts.ts'

export const VICTIM_STANDINGS = [
  'ELIGIBLE',
  'ELIGIBLE_FOR_P0_ONLY',
  'NOT_STARTED',
  'NOSWAP',
  'NOT_RESIDENT',
  'OVER',
  'STOPPING',
  'SWAP_FAILED_LATELY',
  'WANTS_GPU',
  'NOT_IDLE_LONG_ENOUGH',
  'NO_HOST_MEMORY',
] as const
export type VictimStanding = (typeof VICTIM_STANDINGS)[number]

export interface VictimExplanation {
  readonly standing: VictimStanding
  /**
   * When the task becomes eligible if nothing changes; null: it is eligible, or time alone does not make it
   * so.
   */
  readonly eligibleAt: Instant | null
  readonly sentence: string
}

export function explainVictim(
  { policy }: Pick<Cluster, 'policy'>,
  placement: LivePlacement,
  now: Instant,
): VictimExplanation {
  const standing = standingOf(policy, placement, now)
  const at = eligibleFrom(placement, policy)
  const eligibleAt = at !== null && at > now ? at : null
  const sentence = inWords(standing, placement, policy, eligibleAt, now)
  const mayLeave = standing === 'ELIGIBLE' || standing === 'ELIGIBLE_FOR_P0_ONLY' || eligibleAt !== null
  return {
    standing,
    eligibleAt,
    sentence: mayLeave ? `${sentence} ${methodInWords(placement)}${firstInWords(placement)}` : sentence,
  }
}

function methodInWords({ task }: LivePlacement): string {
  return `${capitalized(MOVERS[task.spec.swapMethod ?? 'driver'])} would move its data out of VRAM.`
}

function firstInWords(placement: LivePlacement): string {
  if (!isAboveRequest(placement)) return ''
  const { demandMib, task } = placement
  const { vramMib } = task.spec
  return (
    ` It is swapped out before other tasks of the same level, because it uses ${inMib(demandMib)} on each ` +
    `GPU, but requested only ${inMib(vramMib)}.`
  )
}

/** Returns the first verdict that applies. */
function standingOf(policy: Policy, placement: LivePlacement, now: Instant): VictimStanding {
  const { startedAt, noswap, residency, isOver, stopping, backOffUntil, wantsGpu, node, gpus, task } =
    placement
  if (startedAt === null) return 'NOT_STARTED'
  if (noswap === 1) return 'NOSWAP'
  if (residency !== 'resident') return 'NOT_RESIDENT'
  if (isOver) return 'OVER'
  if (stopping !== null) return 'STOPPING'
  if (backOffUntil > now) return 'SWAP_FAILED_LATELY'
  const at = eligibleFrom(placement, policy)
  if (at === null || at > now) return wantsGpu ? 'WANTS_GPU' : 'NOT_IDLE_LONG_ENOUGH'
  if (movableMib(placement) * gpus.length > node.hostSwapMib - node.hostUsedMib) return 'NO_HOST_MEMORY'
  return task.spec.priority === 0 ? 'ELIGIBLE_FOR_P0_ONLY' : 'ELIGIBLE'
}

function inWords(
  standing: VictimStanding,
  placement: LivePlacement,
  policy: Policy,
  eligibleAt: Instant | null,
  now: Instant,
): string {
  const { residency, node, gpus, task } = placement
  const inSeconds = eligibleAt === null ? '' : ` in ${secondsUntil(eligibleAt, now)}`
  switch (standing) {
    case 'ELIGIBLE':
      return task.spec.keepWarm === true
        ? 'It is kept warm: it may be swapped out only if the other tasks below P0 do not free enough VRAM.'
        : 'It may be swapped out for any task that needs its VRAM.'
    case 'ELIGIBLE_FOR_P0_ONLY':
      return task.spec.keepWarm === true
        ? 'It is P0 and kept warm: it may be swapped out only for a P0 task, and only if the other tasks ' +
            'do not free enough VRAM.'
        : 'It is P0: it may be swapped out only for a P0 task, and only if the tasks below P0 do not ' +
            'free enough VRAM.'
    case 'NOT_STARTED':
      return 'It is not swapped out: its node has not confirmed the start.'
    case 'NOSWAP':
      if (task.spec.noswap === 1) return 'It is never swapped out: it is noswap.'
      return (
        `It is never swapped out: ${node.name} cannot swap it` +
        `${placement.whyNotSwappable === null ? '' : ` (${placement.whyNotSwappable})`}.`
      )
    case 'NOT_RESIDENT':
      return residency === 'swapped_out'
        ? outInWords(placement)
        : `It is being swapped ${residency === 'swapping_in' ? 'in' : 'out'}.`
    case 'OVER':
      return 'It is not swapped out: its node reports that it has ended.'
    case 'STOPPING':
      return 'It is not swapped out: it is being stopped, which frees its VRAM.'
    case 'SWAP_FAILED_LATELY':
      return (
        'Its last swap failed: ' +
        `it ${inSeconds === '' ? 'is not swapped out for now' : `may be swapped out again${inSeconds}`}.`
      )
    case 'WANTS_GPU': {
      if (eligibleAt === null) return 'It is not swapped out: it wants the GPU.'
      return (
        `It wants the GPU, but may be swapped out anyway${inSeconds}, because it will then have been ` +
        'resident for max_residency_seconds.'
      )
    }
    case 'NOT_IDLE_LONG_ENOUGH':
      return (
        `It may be swapped out${inSeconds}, once it has been idle for ` +
        `${idlePeriodOf(task, policy) / 1000} s.`
      )
    case 'NO_HOST_MEMORY':
      return (
        `It is not swapped out: ${node.name} has ${inMib(node.hostSwapMib - node.hostUsedMib)} ` +
        `of host memory left, and the task needs ${inMib(movableMib(placement) * gpus.length)}.`
      )
  }
}

/** A report without the method comes from a server that has restarted: the method of the task is likely. */
function outInWords({ residualMib, task, outBy }: LivePlacement): string {
  const by = MOVERS[outBy ?? (residualMib === 0 ? 'driver' : (task.spec.swapMethod ?? 'driver'))]
  const left = residualMib === 0 ? '' : `; ${inMib(residualMib)} stays in VRAM on each GPU`
  return `It has already been swapped out by ${by}${left}.`
}

function capitalized(words: string): string {
  return words.charAt(0).toUpperCase() + words.slice(1)
}
