/** What an explanation is made from; the engine gathers it (`engine/explain/explain-task.ts`). */
import type { Instant, Mib } from '../../protocol/units.ts'
import type { Policy } from '../domain/config.ts'
import type { Gpu, Node } from '../domain/node.ts'
import type { QueueEntry } from '../domain/task.ts'
import type { Survey } from './explain-survey.ts'
import type { Queued } from './queue.ts'
import type { Plan } from './schedule.ts'
import type { Shape } from './shape.ts'

/** A pending task that owns no bytes yet. */
export interface PendingFacts {
  readonly queued: Queued
  readonly shape: Shape
  readonly policy: Policy
  readonly now: Instant
  /** Of the groups it targets: those that do not exist, and those that name no node. */
  readonly missingGroups: readonly string[]
  readonly emptyGroups: readonly string[]
  /** What keeps its demand out of each node of its pool (`explain-survey.ts`). */
  readonly survey: Survey
  /** Where the scheduler would put it now if it waited alone (`explain-place.ts`). */
  readonly plan: Plan | null
  /** The plan needs no swap, or the eligible victims cover it. */
  readonly isPlanCovered: boolean
  /** The earliest instant at which one more victim for it becomes eligible on one of these nodes. */
  readonly retryAtOn: (nodes: readonly Node[]) => Instant | null
  /** From 1, among the tasks of its pool that could ever be placed; null while it is held. */
  readonly queuePosition: number | null
  /** Entries of the node's queue that are served before it there. */
  readonly servedBeforeOn: (node: Node) => number
  /** Nothing is placed for now, or this task is not; null: it may be. */
  readonly pause: 'STORE_BEHIND' | 'RECOVERY' | 'AWAITING_NODES' | null
  /** GPUs that tasks of its owner take, and may take; null while there is room for it. */
  readonly ownerLimit: { readonly placedGpus: number; readonly maxGpus: number } | null
}

/**
 * An entry of a node's queue: a return, a growth, or a placement that owns its bytes. The figures are of the
 * GPU where it misses most.
 */
export interface EntryFacts {
  readonly entry: QueueEntry
  readonly now: Instant
  /**
   * `impossible`: noswap tasks and foreign memory leave too little. `covered`: what is free, on its way out
   * or eligible suffices.
   */
  readonly verdict: 'impossible' | 'not_covered' | 'covered'
  /** A growth that would promise more host memory than there is. */
  readonly lacksHostMemory: boolean
  /** A return that failed lately is not tried before this instant; null: it may be tried. */
  readonly backsOffUntil: Instant | null
  readonly gpu: Gpu
  /** What it must have there in all; of a growth, the demand it would grow to. */
  readonly needMib: Mib
  /** What could ever be there for it, beside noswap tasks and foreign memory. */
  readonly attainableMib: Mib
  /** What it would have there now; and once everything on its way out and every eligible victim has left. */
  readonly freeMib: Mib
  readonly reachMib: Mib
  /** Kept there for entries that owned bytes before it. */
  readonly keptMib: Mib
  readonly keptFor: QueueEntry | null
  /** The earliest instant at which one more victim for it becomes eligible. */
  readonly retryAt: Instant | null
  /** Entries of its node's queue that are served before it. */
  readonly servedBefore: number
}
