import type { SwapEngine, SwapHooks } from '../../protocol/message-fields.ts'
import type {
  DurationMs,
  GpuMode,
  Mib,
  NoSwap,
  OnNodeLoss,
  Priority,
  SwapMethod,
} from '../../protocol/units.ts'

/**
 * What an attempt was started with. A device keeps it with the process, so that it survives a restart of the
 * server.
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
  /** The attempt has no process: it holds memory for a client elsewhere. */
  readonly isLease: boolean
  /** Time between SIGTERM and SIGKILL when its server ends its tasks. Absent: none. */
  readonly stopGraceMs?: DurationMs
  /** Its ports whose requests wake it. Absent: all on which it listens. */
  readonly wakePorts?: readonly number[]
  /** Those of `wakePorts` that serve HTTP. Absent: none. */
  readonly httpPorts?: readonly number[]
  /** Whether requests wake it. Absent: not declared, and they do. */
  readonly wakeOnRequest?: boolean
  /** Absent: the driver's. */
  readonly swapMethod?: SwapMethod
  /** How it is told to move its data. Absent: on its control socket. */
  readonly swapHooks?: SwapHooks
  /** Absent: another method. */
  readonly swapEngine?: SwapEngine
  /** Its limit of memory, as requested. Absent: none. */
  readonly memoryMib?: Mib
  /** The most that it may use on each GPU. Absent: no limit. */
  readonly vramLimitMib?: Mib
}
