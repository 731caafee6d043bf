/** What a client requests of a task, and the states that a task passes through. */
import type { DurationMs, GpuMode, Instant, Mib, NoSwap, OnNodeLoss, Priority } from '../../protocol/units.ts'

/**
 * `pending` has no placement; `assigned`, `running` and `unreachable` have one; the others are final and
 * never change.
 */
export type TaskState = 'pending' | 'assigned' | 'running' | 'unreachable' | FinalState
export type FinalState = 'completed' | 'failed' | 'cancelled' | 'lost'

/** The second axis: a swapped-out task is still running. `none`: not started on the node yet. */
export type Residency = 'none' | 'resident' | 'swapping_out' | 'swapped_out' | 'swapping_in'

/**
 * The client's request. `noswap`, `priority`, `labels`, and while pending `vramMib`, `groups` and
 * `onNodeLoss`, may be changed later.
 */
export interface TaskSpec {
  /** A UUID; in scenarios the given name. */
  readonly id: string
  /** Submission number: total order of arrival. */
  readonly seq: number
  readonly name: string
  /** Demand per GPU; 0 only for an exclusive task, which then takes a whole GPU. */
  readonly vramMib: Mib
  readonly gpuCount: number
  readonly gpuMode: GpuMode
  readonly noswap: NoSwap
  readonly priority: Priority
  /** Groups it may run in, any of them; empty means the common pool. */
  readonly groups: readonly string[]
  readonly labels: Readonly<Record<string, string>>
  readonly owner: string | null
  /** The command that the GPU server runs; null makes the task a lease. */
  readonly command: readonly string[] | null
  readonly maxRuntimeMs: DurationMs | null
  /** Grace period between SIGTERM and SIGKILL; null or omitted: the default of the cluster. */
  readonly stopGraceMs?: DurationMs | null
  readonly onNodeLoss: OnNodeLoss
  /** Maximum number of requeues after attempts that ended soon after their start; null: no limit. */
  readonly maxRequeues: number | null
  readonly submittedAt: Instant
}

export type EntryKind = 'swap_in' | 'growth' | 'placement'

export function isFinal(state: TaskState): state is FinalState {
  return state === 'completed' || state === 'failed' || state === 'cancelled' || state === 'lost'
}

/** The three lists of the specification (section 3). */
export function listOf(state: TaskState): 'running' | 'pending' | 'completed' {
  if (state === 'pending') return 'pending'
  return isFinal(state) ? 'completed' : 'running'
}
