/**
 * A submission of the simulator, with the fields of the controller's `engine/commands/commands.ts`. The
 * simulator may not import the engine (import rules), so a test compares the two.
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
  /** Null: no limit; absent: the configuration applies. */
  readonly maxRequeues?: number | null
}

export const TASK_DEFAULTS = {
  gpuCount: 1,
  gpuMode: 'shared',
  noswap: 0,
  priority: 2,
  onNodeLoss: 'wait',
} as const
