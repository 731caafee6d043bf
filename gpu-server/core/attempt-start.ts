import type { DurationMs, GpuMode, Mib, NoSwap, OnNodeLoss, Priority } from '../../protocol/units.ts'

/**
 * What an attempt was started with; a device keeps it with what it runs, so that it is there after a restart
 * of the server.
 */
export interface AttemptStart {
  readonly taskId: string
  readonly attempt: number
  readonly gpus: readonly number[]
  readonly vramMib: Mib
  readonly gpuMode: GpuMode
  readonly noswap: NoSwap
  readonly priority: Priority
  readonly onNodeLoss: OnNodeLoss
  /** It has no process: it holds memory for a client elsewhere. */
  readonly isLease: boolean
  /** What it gets between SIGTERM and SIGKILL when its server ends its tasks. Left out: nothing. */
  readonly stopGraceMs?: DurationMs
}
