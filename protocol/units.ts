/**
 * The units of all parts of Headroom. All are integers, so that arithmetic on them is exact. Source: design
 * rule "no floating point decides anything" (docs/architecture.md).
 */

/** VRAM or host memory in mebibytes. Whole numbers only. */
export type Mib = number

/** A percentage, 0..1000 for overcommit. Whole numbers only. */
export type Percent = number

/**
 * A point in time: milliseconds since the epoch of the clock in use (Unix epoch live, scenario start in a
 * simulation).
 */
export type Instant = number

/** A length of time in milliseconds. */
export type DurationMs = number

/** Microseconds: the unit of the utilization and starvation counters. */
export type Microseconds = number

/** Priority class: 0 is highest (written P0), 4 lowest. */
export type Priority = 0 | 1 | 2 | 3 | 4

/** 0: the task may be swapped out. 1: it stays in physical VRAM (specification 2.3). */
export type NoSwap = 0 | 1

export type GpuMode = 'shared' | 'exclusive'

/** What happens to a placed task whose node is silent for longer than its run lease. */
export type OnNodeLoss = 'wait' | 'fail' | 'requeue'

export type WireResidency = 'none' | 'resident' | 'swapping_out' | 'swapped_out' | 'swapping_in'
