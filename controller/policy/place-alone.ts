/** Whether a pending task would be placed on one node if no other task waited. */
import type { Instant } from '../../protocol/units.ts'
import type { Policy } from '../model/config.ts'
import type { Node } from '../model/placement.ts'
import { isClosedTo, isPlaceable } from './placement/feasible.ts'
import type { Queued } from './placement/queue.ts'
import { gpusOnNode } from './placement/schedule.ts'
import type { PlacementTiming } from './placement/score.ts'
import type { Shape } from './placement/shape.ts'
import type { SwapGpu } from './swap/eligible.ts'
import { coversPlacement } from './swap/swap.ts'

/** A node with the state of its rounds. */
export interface SwapNode extends Node {
  readonly gpus: readonly SwapGpu[]
}

/** Returns when it would be placed; null if it would not. */
export function whenPlacedOn(
  node: SwapNode,
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
