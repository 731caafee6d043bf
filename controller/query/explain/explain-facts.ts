/** Inputs of an explanation; gathered by the engine (`engine/explain/explain-task.ts`). */
import type { Instant, Mib } from '../../../protocol/units.ts'
import type { Policy } from '../../model/config.ts'
import type { Gpu, Node, QueueEntry } from '../../model/placement.ts'
import type { Survey } from './explain-survey.ts'
import type { Queued } from '../../policy/placement/queue.ts'
import type { Plan } from '../../policy/placement/schedule.ts'
import type { Shape } from '../../policy/placement/shape.ts'

/** A pending task without reserved VRAM. */
export interface PendingFacts {
  readonly queued: Queued
  readonly shape: Shape
  readonly policy: Policy
  readonly now: Instant
  /** Groups it targets that do not exist, and groups without nodes. */
  readonly missingGroups: readonly string[]
  readonly emptyGroups: readonly string[]
  /** Obstacles of its demand on each node of its pool (`explain-survey.ts`). */
  readonly survey: Survey
  /** The plan of the scheduler if no other task waited (`schedule.ts`). */
  readonly plan: Plan | null
  /** The plan needs no swap, or the eligible victims cover it. */
  readonly isPlanCovered: boolean
  /** Returns the earliest instant at which another victim for it becomes eligible on one of these nodes. */
  readonly retryAtOn: (nodes: readonly Node[]) => Instant | null
  /** From 1, among the tasks of its pool that could ever be placed; null while it is on hold. */
  readonly queuePosition: number | null
  /** Returns the number of entries of the node's queue that are served before it. */
  readonly servedBeforeOn: (node: Node) => number
  /** Why no task, or this task, is placed for now; null: it may be placed. */
  readonly pause: 'STORE_BEHIND' | 'RECOVERY' | 'AWAITING_NODES' | null
  /** GPUs that tasks of its owner use, and the limit; null while the limit leaves room for it. */
  readonly ownerLimit: { readonly placedGpus: number; readonly maxGpus: number } | null
}

/**
 * An entry of a node's queue: a return, a growth, or a placement with reserved VRAM. The figures are those of
 * the GPU with the largest shortage.
 */
export interface EntryFacts {
  readonly entry: QueueEntry
  readonly now: Instant
  /**
   * `impossible`: noswap tasks and foreign memory leave too little. `covered`: free, leaving and eligible
   * VRAM suffice.
   */
  readonly verdict: 'impossible' | 'not_covered' | 'covered'
  /** The growth would promise more host memory than there is. */
  readonly lacksHostMemory: boolean
  /** A return that failed lately is not tried before this instant; null: it may be tried. */
  readonly backsOffUntil: Instant | null
  readonly gpu: Gpu
  /** The total it needs there; for a growth, the demand after it. */
  readonly needMib: Mib
  /** The most it could ever have there, next to noswap tasks and foreign memory. */
  readonly attainableMib: Mib
  /**
   * VRAM that is free for the task now, and after all current swap-outs and those of every eligible victim.
   */
  readonly freeMib: Mib
  readonly reachMib: Mib
  /** Reserved there for earlier claimants. */
  readonly keptMib: Mib
  readonly keptFor: QueueEntry | null
  /** The earliest instant at which another victim for it becomes eligible. */
  readonly retryAt: Instant | null
  /** Entries of its node's queue that are served before it. */
  readonly servedBefore: number
}
