/**
 * The figures that decide the shortfall of a waiting task on a GPU. Reservations are updated when they
 * change.
 */
import type { Mib } from '../../../protocol/units.ts'
import type { Gpu } from '../../model/node.ts'
import {
  commitRoomMib,
  isPlaceable,
  largestEverMib,
  reservationRoomMib,
  NOTHING,
} from '../../policy/placement/feasible.ts'

export interface CapacityFigures {
  /** Commit room, room for a noswap task, placed demand, and the largest demand the GPU could ever take. */
  roomMib: Mib
  noswapRoomMib: Mib
  placedMib: Mib
  everMib: Mib
}

export function newFigures(): CapacityFigures {
  return { roomMib: 0, noswapRoomMib: 0, placedMib: 0, everMib: NOTHING }
}

/** Recomputes the figures; returns true if they changed. */
export function deriveFigures(figures: CapacityFigures, gpu: Gpu): boolean {
  const roomMib = commitRoomMib(gpu)
  const noswapRoomMib = reservationRoomMib(gpu, 'noswap')
  const placedMib = gpu.noswapMib + gpu.swappableMib
  const everMib = isPlaceable(gpu.node) ? largestEverMib(gpu) : NOTHING
  const isSameRoom = figures.roomMib === roomMib && figures.noswapRoomMib === noswapRoomMib
  if (isSameRoom && figures.placedMib === placedMib && figures.everMib === everMib) return false
  figures.roomMib = roomMib
  figures.noswapRoomMib = noswapRoomMib
  figures.placedMib = placedMib
  figures.everMib = everMib
  return true
}
