/** Which swapped-out tasks may return although nothing requests it, and when there is room (semantics 5). */
import type { Instant, Mib } from '../../protocol/units.ts'
import { movableMib } from '../model/placement.ts'
import type { Gpu, Node, Placement } from '../model/placement.ts'

/**
 * VRAM that stays free on a GPU after an eager return: this amount, or a tenth of the GPU if that is more.
 */
const LEAST_LEFT_MIB: Mib = 1024

/** A placement with what decides whether something requests its return, or forbids it. */
interface AbsentPlacement extends Placement {
  readonly swappedOutSince: Instant | null
  readonly submissionNumber: number
  readonly isSwappedOutByOperator: boolean
  readonly isWakeable: boolean
  readonly isInDoubt: boolean
}

/** The node is up, and neither an operator nor the controller has closed it. */
export function mayReturnOn({ status, isCordoned, autoCordon, drain }: Node): boolean {
  return status === 'up' && !isCordoned && autoCordon === null && drain === null
}

/**
 * Swapped-out tasks whose return nothing requests, in the order in which they return.
 * 1. Swapped out longest.
 * 2. Submission number.
 */
export function absentAmong<P extends AbsentPlacement>(placements: Iterable<P>): readonly P[] {
  const absent: P[] = []
  for (const placement of placements) {
    const { residency, entry, isSwappedOutByOperator, isWakeable, stopping, isOver, isInDoubt, task } =
      placement
    if (residency !== 'swapped_out' || entry !== null || isSwappedOutByOperator || isOver || isInDoubt)
      continue
    if (isWakeable) continue
    if (stopping === null && task.state === 'running') absent.push(placement)
  }
  return absent.sort(
    (a, b) => (a.swappedOutSince ?? 0) - (b.swappedOutSince ?? 0) || a.submissionNumber - b.submissionNumber,
  )
}

/**
 * Returns true if no entry waits on its GPUs, no task returns there, and enough stays free or the GPUs are
 * otherwise unused.
 */
export function hasRoomToReturn(placement: Placement): boolean {
  const { gpus, node } = placement
  const needMib = movableMib(placement)
  if (node.queue.some((entry) => entry.gpus.some((gpu) => gpus.includes(gpu)))) return false
  const isMoving = (gpu: Gpu) => gpu.placements.some(({ residency }) => residency === 'swapping_in')
  if (gpus.some((gpu) => gpu.freeMib < needMib || isMoving(gpu))) return false
  return gpus.every((gpu) => gpu.freeMib - needMib >= leastLeftMib(gpu)) || gpus.every(isDeserted)
}

function leastLeftMib({ physicalMib }: Gpu): Mib {
  return Math.max(LEAST_LEFT_MIB, Math.floor(physicalMib / 10))
}

/** Nothing is resident there or moving. */
function isDeserted({ placements, quarantinedCount }: Gpu): boolean {
  return quarantinedCount === 0 && placements.every(({ residency }) => residency === 'swapped_out')
}
