/**
 * Decisions and their inputs: every placement, swap and growth with the candidates, their keys, the choice
 * and its rule. A decision has the number of its event, so that each leads to the other. Kept where the store
 * keeps decisions; nothing is decided from them.
 */
import type { DurationMs, Instant, Mib } from '../../protocol/units.ts'
import type { PlacementStrategy } from './config.ts'
import type { EventKind } from './event.ts'

export const DECISION_KINDS = [
  'placement',
  'swap_out',
  'swap_in',
  'growth_granted',
  'growth_refused',
] as const
export type DecisionKind = (typeof DECISION_KINDS)[number]

/** Events that have a decision. */
export const DECISION_EVENTS: readonly EventKind[] = [
  'task_placed',
  'swap_decided',
  'swap_in_decided',
  'growth_granted',
  'growth_refused',
]

/**
 * The rule that decided. Placement: it fitted now, or its victims had left. Swap-out: victims cover the
 * shortage; victims leave for the node's collector before they cover it; an operator requested it; a growth
 * waited too long and its task returns with it. Return and growth: the VRAM is free. Eager return: nothing
 * requested it, and no task waits for the VRAM. Refused growth: it waited too long, or is larger than its
 * GPU.
 */
export const DECISION_RULES = [
  'fits_now',
  'victims_left',
  'victims_cover',
  'collector',
  'operator',
  'return_grown',
  'bytes_free',
  'eager_return',
  'waited_too_long',
  'larger_than_gpu',
  'above_vram_limit',
] as const
export type DecisionRule = (typeof DECISION_RULES)[number]

/** Maximum number of recorded GPUs of a placement and of candidates of a swap-out; the others are counted. */
export const MAX_CONSIDERED_GPUS = 5
export const MAX_CANDIDATES = 32
/** Maximum number of recorded other entries that waited on the node. */
export const MAX_OTHERS = 8

/**
 * A GPU that admitted the task, in the order of preference: ascending keys, both MiB (scheduler/score.ts).
 */
export interface ConsideredGpu {
  readonly nodeId: string
  readonly nodeName: string
  readonly gpu: number
  /**
   * Now: physical VRAM that is free (spread: negative). After a swap: minus the VRAM free for it once all
   * that moves has left.
   */
  readonly key1: number
  /** Commit room left (spread: negative). */
  readonly key2: number
  readonly isChosen: boolean
}

/** The levels of semantics 5, in the order in which they are used up. */
export const VICTIM_LEVELS = [
  'non_p0_not_yet_swapped',
  'non_p0_swapped',
  'non_p0_warm_not_yet_swapped',
  'non_p0_warm_swapped',
  'p0_not_yet_swapped',
  'p0_swapped',
  'p0_warm_not_yet_swapped',
  'p0_warm_swapped',
] as const
export type VictimLevel = (typeof VICTIM_LEVELS)[number]

/**
 * Why a candidate leaves: its whole level was needed, or it is among the longest not swapped that move the
 * least VRAM.
 */
export const CHOICE_RULES = ['whole_level', 'oldest_then_fewest_bytes'] as const
export type ChoiceRule = (typeof CHOICE_RULES)[number]

/** A candidate on the GPU that was short. */
export interface ConsideredVictim {
  readonly taskId: string
  /** Absent in records of earlier versions. */
  readonly taskName?: string
  readonly gpu: number
  readonly level: VictimLevel
  /** It used more VRAM than it requested, and so came first in its level. Absent: no. */
  readonly isAboveRequest?: boolean
  /** `swapNumber` of the decision that last chose it there; null: none. */
  readonly lastSwapOut: number | null
  readonly mib: Mib
  readonly idleMs: DurationMs
  /** Null: it stays. */
  readonly chosenBy: ChoiceRule | null
}

/** Another entry that waits for VRAM on the node. */
export interface OtherWaiting {
  readonly taskId: string
  readonly what: 'swap_in' | 'growth' | 'placement'
  readonly waitedMs: DurationMs
}

export interface Decision {
  /** The number of its event. */
  readonly number: number
  readonly at: Instant
  readonly kind: DecisionKind
  readonly rule: DecisionRule
  /** The task that is placed, returns or grows; for a swap-out, the task for which others leave. */
  readonly taskId: string
  readonly taskName: string
  readonly nodeId: string
  readonly nodeName: string
  readonly gpus: readonly number[]
  /** One sentence for people. */
  readonly sentence: string
  /** The event that led to it. */
  readonly causedBy: number | null
  /** For a placement; otherwise null. */
  readonly strategy: PlacementStrategy | null
  /** GPUs that admitted the task, best first, including the chosen ones. */
  readonly gpusConsidered: readonly ConsideredGpu[]
  /** There were more; they are not counted, because the scheduler did not examine them. */
  readonly hasMoreGpus: boolean
  /** For a swap-out: all victims. */
  readonly victimIds: readonly string[]
  /** The shortage of each GPU. */
  readonly missing: readonly { readonly gpu: number; readonly mib: Mib }[]
  readonly candidates: readonly ConsideredVictim[]
  readonly candidatesLeftOut: number
  /** The number under which rounds remember it (`decision` in the data of its event); null if it has none. */
  readonly swapNumber: number | null
  /** How long the request had waited. */
  readonly waitedMs: DurationMs | null
  /** For a return or growth: other entries that wait there, in the order in which they are served. */
  readonly others: readonly OtherWaiting[]
  readonly othersLeftOut: number
}
