/**
 * A pool under other settings, queried repeatedly. One number per node excludes nodes that cannot take a
 * demand.
 */
import type { Instant, Mib } from '../../../protocol/units.ts'
import type { Policy } from '../../model/config.ts'
import { byNodeId } from '../../policy/placement/score.ts'
import { kthLargest } from '../explain/explain-survey.ts'
import { largestAfterSwapMib, largestNowMib } from '../../policy/placement/feasible.ts'
import type { Queued } from '../../policy/placement/queue.ts'
import type { Shape } from '../../policy/placement/shape.ts'
import { searchDemandMib } from '../../policy/placement/shape.ts'
import type { LiveNode } from '../../state/facts.ts'
import type { NodeCopy, Hypothesis } from './hypothesis.ts'
import { nodeUnder, whenPlacedOn } from './hypothesis.ts'

interface Bounded {
  readonly node: NodeCopy
  /** Upper bound of the demand of the shape admitted there, now or after a swap. */
  readonly mib: Mib
}

export class PoolCopy {
  readonly nodes: readonly NodeCopy[]
  /** Number of nodes examined so far, for callers that bound it. */
  looks = 0
  readonly #policy: Policy
  readonly #now: Instant
  readonly #bounds = new Map<string, readonly Bounded[]>()

  constructor(
    nodes: Iterable<LiveNode>,
    hypothesisOn: (node: LiveNode) => Hypothesis,
    policy: Policy,
    now: Instant,
  ) {
    this.nodes = Array.from(nodes, (node) => nodeUnder(node, hypothesisOn(node)))
    this.#policy = policy
    this.#now = now
  }

  /** Returns true if some node would take the task if no other task waited. */
  takes(queued: Queued, shape: Shape): boolean {
    const demandMib = searchDemandMib(queued.task.spec)
    for (const { node, mib } of this.#boundedFor(shape)) {
      if (mib < demandMib) return false
      this.looks += 1
      if (whenPlacedOn(node, queued, shape, this.#policy, this.#now) !== null) return true
    }
    return false
  }

  /** Nodes that take most come first. */
  #boundedFor(shape: Shape): readonly Bounded[] {
    let bounded = this.#bounds.get(shape.key)
    if (bounded === undefined) {
      bounded = this.nodes
        .map((node) => ({ node, mib: boundMib(node, shape, this.#policy) }))
        .sort(byLargestBound)
      this.looks += bounded.length
      this.#bounds.set(shape.key, bounded)
    }
    return bounded
  }
}

/** 1. Larger bound. 2. Node id. */
function byLargestBound(a: Bounded, b: Bounded): number {
  return b.mib - a.mib || byNodeId(a.node, b.node)
}

function boundMib({ gpus }: NodeCopy, shape: Shape, { maxTasksPerGpu }: Policy): Mib {
  const mibs = gpus.map((gpu) =>
    Math.max(
      largestNowMib(gpu, shape.kind, maxTasksPerGpu),
      largestAfterSwapMib(gpu, shape.kind, shape.isP0, maxTasksPerGpu),
    ),
  )
  return kthLargest(mibs, shape.gpuCount)
}
