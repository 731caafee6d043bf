/** What makes a GPU near to a task that misses commit room: whoever holds GPUs looks again when it changes. */
import type { Mib } from '../../../protocol/units.ts'
import type { Gpu } from '../../domain/node.ts'
import { commitRoomMib, isPlaceable, largestEverMib, NOTHING } from '../../scheduler/feasible.ts'

export interface Figures {
  /** That room, what is placed, and what it could ever take. */
  roomMib: Mib
  placedMib: Mib
  everMib: Mib
}

export function newFigures(): Figures {
  return { roomMib: 0, placedMib: 0, everMib: NOTHING }
}

/** Brings them up to date; says whether they changed. */
export function deriveFigures(figures: Figures, gpu: Gpu): boolean {
  const roomMib = commitRoomMib(gpu)
  const placedMib = gpu.noswapMib + gpu.swappableMib
  const everMib = isPlaceable(gpu.node) ? largestEverMib(gpu) : NOTHING
  if (figures.roomMib === roomMib && figures.placedMib === placedMib && figures.everMib === everMib) return false
  figures.roomMib = roomMib
  figures.placedMib = placedMib
  figures.everMib = everMib
  return true
}
