/** Which of several GPUs that admit a task is taken (semantics 1, "Admission"). */
import type { PlacementStrategy } from '../domain/config.ts'
import type { Gpu, Node } from '../domain/node.ts'
import { afterMovesMib, commitRoomMib } from './feasible.ts'

/** Fits now, or fits after a swap. The first is always preferred. */
export type When = 'now' | 'after_swap'

/** The two keys by which GPUs, and nodes for a multi-GPU task, are ordered: ascending, both MiB. */
export interface Score {
  readonly key1: number
  readonly key2: number
}

/**
 * Order of GPUs where a task fits now.
 * best_fit and fifo: 1. least physical free left; 2. least commit room left; 3. node id; 4. GPU index.
 * spread: the opposite of the first two.
 * Order where it fits after a swap: 1. least to be swapped out; 2. and on as above.
 */
export function scoreOf(gpu: Gpu, when: When, strategy: PlacementStrategy): Score {
  return { key1: key1Of(gpu, when, strategy), key2: key2Of(gpu, strategy) }
}

export function key1Of(gpu: Gpu, when: When, strategy: PlacementStrategy): number {
  if (when === 'after_swap') return -afterMovesMib(gpu)
  return strategy === 'spread' ? -gpu.freeMib : gpu.freeMib
}

export function key2Of(gpu: Gpu, strategy: PlacementStrategy): number {
  const room = commitRoomMib(gpu)
  return strategy === 'spread' ? -room : room
}

/** A node's score for a task on several of its GPUs: the sums over all its GPUs. */
export function nodeScoreOf(node: Node, when: When, strategy: PlacementStrategy): Score {
  let key1 = 0
  let key2 = 0
  for (const gpu of node.gpus) {
    const score = scoreOf(gpu, when, strategy)
    key1 += score.key1
    key2 += score.key2
  }
  return { key1, key2 }
}

/** Ties between equal scores: node id, then GPU index. */
export function byGpuId(a: Gpu, b: Gpu): number {
  return a.node.rank - b.node.rank || a.index - b.index
}

export function byNodeId(a: Node, b: Node): number {
  return a.rank - b.rank
}
