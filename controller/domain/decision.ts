/**
 * What was decided, and from what: every placement, swap and growth with who was considered, by which keys,
 * who was chosen and by which rule. A decision has the number of the event that it is told by, so that either
 * leads to the other. Kept where the store keeps them; nothing is decided from them.
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

/** Events that tell of a decision; others are not looked for one. */
export const DECISION_EVENTS: readonly EventKind[] = [
  'task_placed',
  'swap_decided',
  'swap_in_decided',
  'growth_granted',
  'growth_refused',
]

/**
 * What decided. Placement: it fitted now, or its victims had left. Swap-out: victims cover what is missing;
 * they leave for the node's collector although they do not yet; an operator asked; a growth waited too long
 * and its task returns with it. Return and growth: the bytes are free. Return: nothing asked for it, and no
 * task waits for the VRAM. Refused growth: it waited too long, or is larger than its GPU.
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
] as const
export type DecisionRule = (typeof DECISION_RULES)[number]

/**
 * At most so many GPUs of a placement, and candidates of a swap-out, are recorded; the others are counted.
 */
export const MAX_CONSIDERED_GPUS = 5
export const MAX_CANDIDATES = 32
/** At most so many others that waited on the node are recorded. */
export const MAX_OTHERS = 8

/**
 * A GPU that admitted the task, in the order of preference: ascending keys, both MiB (scheduler/score.ts).
 */
export interface ConsideredGpu {
  readonly nodeId: string
  readonly nodeName: string
  readonly gpu: number
  /**
   * Now: what is physically free (spread: negative). After a swap: minus what is free for it once all that
   * moves has left.
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
  'p0_not_yet_swapped',
  'p0_swapped',
] as const
export type VictimLevel = (typeof VICTIM_LEVELS)[number]

/**
 * Why a candidate leaves: its whole level was needed, or it is among those longest not swapped that move the
 * fewest bytes.
 */
export const CHOICE_RULES = ['whole_level', 'oldest_then_fewest_bytes'] as const
export type ChoiceRule = (typeof CHOICE_RULES)[number]

/** A task that might leave, as it stood on the GPU that was short. */
export interface ConsideredVictim {
  readonly taskId: string
  /** Left out in what earlier versions have kept. */
  readonly taskName?: string
  readonly gpu: number
  readonly level: VictimLevel
  /** `swapNumber` of the decision that last chose it there; null: none did. */
  readonly lastSwapOut: number | null
  readonly mib: Mib
  readonly idleMs: DurationMs
  /** null: it stays. */
  readonly chosenBy: ChoiceRule | null
}

/** Somebody else who waits for bytes on the node. */
export interface OtherWaiting {
  readonly taskId: string
  readonly what: 'swap_in' | 'growth' | 'placement'
  readonly waitedMs: DurationMs
}

export interface Decision {
  /** Of the event that tells it. */
  readonly number: number
  readonly at: Instant
  readonly kind: DecisionKind
  readonly rule: DecisionRule
  /** Whom it is about: who is placed, returns or grows; of a swap-out, for whom others leave. */
  readonly taskId: string
  readonly taskName: string
  readonly nodeId: string
  readonly nodeName: string
  readonly gpus: readonly number[]
  /** One sentence for people. */
  readonly sentence: string
  /** The event that led to it. */
  readonly causedBy: number | null
  /** Of a placement; null else. */
  readonly strategy: PlacementStrategy | null
  /** GPUs that admitted the task, best first; the chosen are among them. */
  readonly gpusConsidered: readonly ConsideredGpu[]
  /** There were more. They are not counted: the scheduler did not look at them either. */
  readonly hasMoreGpus: boolean
  /** Of a swap-out: who leaves, all of them. */
  readonly victimIds: readonly string[]
  /** What was missing, GPU by GPU. */
  readonly missing: readonly { readonly gpu: number; readonly mib: Mib }[]
  readonly candidates: readonly ConsideredVictim[]
  readonly candidatesLeftOut: number
  /** The number by which rounds remember it (`decision` in the data of its event); null when it has none. */
  readonly swapNumber: number | null
  /** How long it had been waited for. */
  readonly waitedMs: DurationMs | null
  /** Of a return or growth: who else waits there, in the order in which they are served. */
  readonly others: readonly OtherWaiting[]
  readonly othersLeftOut: number
}
