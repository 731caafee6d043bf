/**
 * The figures that decide the shortfall of a waiting task on a GPU. Reservations are updated when they
 * change.
 */
import type { Gpu } from '../../model/placement.ts'
import {
  commitRoomMib,
  isPlaceable,
  largestEverMib,
  reservationRoomMib,
  NOTHING,
} from '../../policy/placement/feasible.ts'
import type { CapacityFigures } from '../facts.ts'

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
