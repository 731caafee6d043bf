/**
 * A submission, as the simulator makes it. Field for field what the controller's
 * `engine/commands/commands.ts` takes: the simulator's parts may not import the engine (import rules), so a
 * test holds the two equal.
 */
import type { GpuMode, Mib, NoSwap, OnNodeLoss, Priority } from '../../protocol/units.ts'

export interface SimTaskRequest {
  /** Unique in the run. */
  readonly id: string
  readonly name: string | null
  /** Per GPU; null for an exclusive task only. */
  readonly vramMib: Mib | null
  readonly gpuCount: number
  readonly gpuMode: GpuMode
  readonly noswap: NoSwap
  readonly priority: Priority
  readonly groups: readonly string[]
  readonly labels: Readonly<Record<string, string>>
  readonly owner: string | null
  readonly command: readonly string[] | null
  readonly maxRuntimeSeconds: number | null
  readonly stopGraceSeconds?: number | null
  readonly onNodeLoss: OnNodeLoss
  /** Null: no limit; left out: what the configuration says. */
  readonly maxRequeues?: number | null
}

export const TASK_DEFAULTS = {
  gpuCount: 1,
  gpuMode: 'shared',
  noswap: 0,
  priority: 2,
  onNodeLoss: 'wait',
} as const
