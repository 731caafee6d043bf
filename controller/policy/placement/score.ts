/** Which of several GPUs that admit a task is chosen (semantics 1, "Admission"). */
import type { PlacementStrategy } from '../../model/config.ts'
import type { Gpu, Node } from '../../model/placement.ts'
import type { Mib } from '../../../protocol/units.ts'
import { afterMovesMib, commitRoomMib } from './feasible.ts'

/** Fits now, or fits after a swap. The first is always preferred. */
export type PlacementTiming = 'now' | 'after_swap'

/** The two keys that order GPUs, and nodes for a task on several GPUs: ascending, both MiB. */
export interface Score {
  readonly key1: number
  readonly key2: number
}

/**
 * Order of GPUs where a task fits now.
 * 1. best_fit and fifo: least physical VRAM left free; spread: most.
 * 2. best_fit and fifo: least commit room left; spread: most.
 * 3. Node id.
 * 4. GPU index. Order where it fits after a swap: least to be swapped out, then rules 2 to 4. Where enough is
 *    already moving out nothing more has to leave: a surplus there is no advantage (docs/decisions/0097).
 */
export function scoreOf(gpu: Gpu, when: PlacementTiming, strategy: PlacementStrategy, demandMib: Mib): Score {
  const key1 = key1Of(gpu, when, strategy)
  return { key1: when === 'after_swap' ? Math.max(key1, -demandMib) : key1, key2: key2Of(gpu, strategy) }
}

/** The order of `scoreOf`. */
export function byScore(
  a: Gpu,
  b: Gpu,
  when: PlacementTiming,
  strategy: PlacementStrategy,
  demandMib: Mib,
): number {
  const left = scoreOf(a, when, strategy, demandMib)
  const right = scoreOf(b, when, strategy, demandMib)
  return left.key1 - right.key1 || left.key2 - right.key2 || byGpuId(a, b)
}

/** Returns true if the VRAM that already moves out suffices for a task that fits after a swap. */
export function isEnoughLeaving(gpu: Gpu, demandMib: Mib): boolean {
  return afterMovesMib(gpu) >= demandMib
}

export function key1Of(gpu: Gpu, when: PlacementTiming, strategy: PlacementStrategy): number {
  if (when === 'after_swap') return -afterMovesMib(gpu)
  return strategy === 'spread' ? -gpu.freeMib : gpu.freeMib
}

export function key2Of(gpu: Gpu, strategy: PlacementStrategy): number {
  const room = commitRoomMib(gpu)
  return strategy === 'spread' ? -room : room
}

/** A node's score for a task on several GPUs: sums over all its GPUs, including a surplus. */
export function nodeScoreOf(node: Node, when: PlacementTiming, strategy: PlacementStrategy): Score {
  let key1 = 0
  let key2 = 0
  for (const gpu of node.gpus) {
    key1 += key1Of(gpu, when, strategy)
    key2 += key2Of(gpu, strategy)
  }
  return { key1, key2 }
}

/** Breaks ties of equal scores: node id, then GPU index. */
export function byGpuId(a: Gpu, b: Gpu): number {
  return a.node.rank - b.node.rank || a.index - b.index
}

export function byNodeId(a: Node, b: Node): number {
  return a.rank - b.rank
}
