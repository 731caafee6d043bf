/**
 * Actions of the engine on the outside world, performed once the decision is durable. The wire turns effects
 * into commands.
 */
import type { ResourceLimits } from '../../protocol/resource-limits.ts'
import type { SwapEngine, SwapHooks } from '../../protocol/message-fields.ts'
import type { TaskEnvironment, TaskPort } from '../../protocol/task.ts'
import type {
  DurationMs,
  GpuMode,
  Mib,
  NoSwap,
  OnNodeLoss,
  Priority,
  SwapMethod,
} from '../../protocol/units.ts'

export type Effect = StartEffect | PrepareEffect | StopEffect | SwapEffect | GrowthEffect | NoswapEffect

interface EffectBase {
  readonly nodeId: string
  readonly taskId: string
  readonly attempt: number
}

export interface StartEffect extends EffectBase {
  readonly kind: 'start'
  readonly gpus: readonly number[]
  readonly vramMib: Mib
  readonly gpuMode: GpuMode
  readonly noswap: NoSwap
  readonly priority: Priority
  readonly onNodeLoss: OnNodeLoss
  readonly command: readonly string[] | null
  readonly image: string | null
  /** Omitted: none declared. */
  readonly ports?: readonly TaskPort[]
  /** Omitted: not declared. */
  readonly wakeOnRequest?: boolean
  /** Omitted: the driver's. */
  readonly swapMethod?: SwapMethod
  /** Omitted: by messages on its control socket. */
  readonly swapHooks?: SwapHooks
  /** Omitted: another method. */
  readonly swapEngine?: SwapEngine
  readonly workdir: string | null
  readonly cwd: string | null
  /** Omitted: none. */
  readonly mounts?: readonly string[]
  readonly limits: ResourceLimits | null
  readonly environment: TaskEnvironment | null
  readonly name: string
  readonly owner: string | null
  readonly stopGraceMs: DurationMs
}

export interface PrepareEffect extends EffectBase {
  readonly kind: 'prepare'
  readonly image: string | null
  readonly workdir: string | null
}

export interface StopEffect extends EffectBase {
  readonly kind: 'stop'
  readonly reason: string
  readonly graceMs: DurationMs
}

export interface SwapEffect extends EffectBase {
  readonly kind: 'swap_out' | 'swap_in'
  readonly generation: number
  /** The victim may be active: max_residency requires it (R12). */
  readonly forceActive: boolean
}

export interface GrowthEffect extends EffectBase {
  readonly kind: 'grant' | 'refuse_growth'
  /** grant: the new demand per GPU. */
  readonly mib: Mib
  readonly reason: string | null
}

export interface NoswapEffect extends EffectBase {
  readonly kind: 'set_noswap'
  readonly noswap: NoSwap
}
