import { MAX_DETAIL_LENGTH } from '../../protocol/limits.ts'
import type { Mutable } from '../../protocol/fields.ts'
import { surroundingsIn } from '../../protocol/task-body.ts'
import type {
  DurationMs,
  GpuMode,
  Instant,
  Mib,
  NoSwap,
  OnNodeLoss,
  Priority,
  Residency,
  SwapMethod,
} from '../../protocol/units.ts'
import type { AttemptRecord, SwapCommand, TaskReport } from '../../protocol/messages.ts'
import type { StartCommand } from '../../protocol/start-command.ts'
import type { PortAddress } from './device.ts'
import type { AttemptStart } from './attempt-start.ts'
import type { EndsAs } from './finished.ts'
import type { AttemptDescription, KeptAttempt, Surroundings } from './storage.ts'

/** One attempt that lives on this server. */
export interface Attempt {
  readonly taskId: string
  readonly attempt: number
  readonly gpus: readonly number[]
  readonly gpuMode: GpuMode
  readonly priority: Priority
  readonly onNodeLoss: OnNodeLoss
  readonly isLease: boolean
  /** Time between SIGTERM and SIGKILL when this server ends its tasks. */
  readonly stopGraceMs: DurationMs
  /** Its demand per GPU: as started, or as granted since. */
  vramMib: Mib
  /**
   * VRAM that the ledger counts per GPU. It is less than the demand while a granted growth waits for the
   * return of the task.
   */
  residentMib: Mib
  /** Host memory that the ledger counts, summed over its GPUs. */
  hostMib: Mib
  /** The total per GPU that the blocked allocation would reach; null when no allocation is blocked. */
  heldMib: Mib | null
  noswap: NoSwap
  residency: Residency
  /** Number of completed residency changes; the start makes it 1. */
  generation: number
  /** Null: never swapped out. */
  lastSwapOutAt: Instant | null
  /** The last swap command that was obeyed. */
  lastSwap: Pick<SwapCommand, 'op' | 'generation'> | null
  wantsGpu: boolean
  /** The device has reported requests for it since its last swap-out. */
  isWakeable: boolean
  /** The requested method. */
  readonly swapMethod: SwapMethod
  /** It moved its bytes out itself, by hooks or as an engine, and runs; only while it is out. */
  isOutByHooks: boolean
  /** What it keeps in VRAM on each GPU; only while it is out. */
  residualMib: Mib
  lastUseAt: Instant
  isStartAcknowledged: boolean
  isFrozen: boolean
  /** The attempt is in the table of living attempts. */
  isHere: boolean
  /** Why this server is ending the attempt; null while it is not. */
  endsAs: EndsAs
  /** Stopping with a grace: the task may run, and return to VRAM, to handle SIGTERM. */
  hasGrace: boolean
}

export function newAttempt(start: AttemptStart, now: Instant): Attempt {
  return {
    taskId: start.taskId,
    attempt: start.attempt,
    gpus: start.gpus,
    gpuMode: start.gpuMode,
    priority: start.priority,
    onNodeLoss: start.onNodeLoss,
    isLease: start.isLease,
    stopGraceMs: start.stopGraceMs ?? 0,
    vramMib: start.vramMib,
    residentMib: 0,
    hostMib: 0,
    heldMib: null,
    noswap: start.noswap,
    residency: 'none',
    generation: 0,
    lastSwapOutAt: null,
    lastSwap: null,
    wantsGpu: false,
    isWakeable: false,
    swapMethod: start.swapMethod ?? 'driver',
    isOutByHooks: false,
    residualMib: 0,
    lastUseAt: now,
    isStartAcknowledged: false,
    isFrozen: false,
    isHere: false,
    endsAs: null,
    hasGrace: false,
  }
}

export function startOf(command: StartCommand): AttemptStart {
  const { limits } = command
  const start: Mutable<AttemptStart> = {
    taskId: command.task_id,
    attempt: command.attempt,
    gpus: command.gpus,
    vramMib: command.vram_mib,
    gpuMode: command.gpu_mode,
    noswap: command.noswap,
    priority: command.priority,
    onNodeLoss: command.on_node_loss,
    isLease: command.command === null,
  }
  if (command.stop_grace_ms !== undefined) start.stopGraceMs = command.stop_grace_ms
  if (limits?.memory_mib !== undefined) start.memoryMib = limits.memory_mib
  if (limits?.vram_limit_mib !== undefined) start.vramLimitMib = limits.vram_limit_mib
  if (command.wake_on_request !== undefined) start.wakeOnRequest = command.wake_on_request
  if (command.swap_method !== undefined) start.swapMethod = command.swap_method
  if (command.swap_hooks !== undefined) start.swapHooks = command.swap_hooks
  if (command.swap_engine !== undefined) start.swapEngine = command.swap_engine
  const { ports = [] } = command
  if (ports.length > 0) start.wakePorts = ports.map(({ target }) => target)
  const http = ports.filter(({ protocol }) => protocol === 'http')
  if (http.length > 0) start.httpPorts = http.map(({ target }) => target)
  return start
}

/** Null: the controller predates these fields. */
export function descriptionOf(command: StartCommand): AttemptDescription | null {
  const { task_id, attempt, name, owner = null } = command
  if (name === undefined) return null
  const description = { taskId: task_id, attempt, name, owner, command: command.command }
  return Object.assign(description, runsIn(command))
}

export function recordOf(
  attempt: Attempt,
  description: AttemptDescription | null,
  addresses: readonly PortAddress[] = [],
): AttemptRecord {
  const { taskId, attempt: number, isLease, gpuMode, noswap, priority, onNodeLoss } = attempt
  const { name = null, owner = null, command = null } = description ?? {}
  const runs = { command, ...runsIn(description ?? {}) }
  const how = { is_lease: isLease, gpu_mode: gpuMode, noswap, priority, on_node_loss: onNodeLoss }
  const at = addresses.length === 0 ? {} : { port_addresses: addresses.map(withDetail) }
  return { op: 'attempt', task_id: taskId, attempt: number, name, owner, ...runs, ...how, ...at }
}

const oneLineOf = (text: string): string => text.replace(/\p{Cc}+/gu, ' ')

function withDetail({ target, address, detail }: PortAddress) {
  return { target, address, detail: detail === null ? null : oneLineOf(detail).slice(0, MAX_DETAIL_LENGTH) }
}

function runsIn(from: Partial<Pick<StartCommand, 'image' | 'workdir' | 'cwd' | 'mounts' | 'limits'>>) {
  const runs: Mutable<Surroundings> = surroundingsIn(from)
  if (from.limits !== undefined) runs.limits = from.limits
  return runs
}

/** Returns a copy of the current state. */
export function keptOf(attempt: Attempt): KeptAttempt {
  const { taskId, gpus, vramMib, gpuMode, noswap, priority, onNodeLoss, isLease } = attempt
  const { residency, generation, isStartAcknowledged, wantsGpu } = attempt
  const kept: Mutable<KeptAttempt> = {
    taskId,
    attempt: attempt.attempt,
    gpus,
    vramMib,
    gpuMode,
    noswap,
    priority,
    onNodeLoss,
    isLease,
    residency,
    generation,
    isStartAcknowledged,
    wantsGpu,
  }
  if (attempt.stopGraceMs !== 0) kept.stopGraceMs = attempt.stopGraceMs
  if (attempt.isWakeable) kept.isWakeable = true
  if (attempt.isOutByHooks) {
    kept.isOutByHooks = true
    kept.residualMib = attempt.residualMib
  }
  return kept
}

export function reportOf(attempt: Attempt, now: Instant): TaskReport {
  return {
    task_id: attempt.taskId,
    attempt: attempt.attempt,
    residency: attempt.residency,
    generation: attempt.generation,
    gpus: attempt.gpus,
    vram_mib: attempt.vramMib,
    wants_gpu: attempt.wantsGpu,
    idle_ms: attempt.wantsGpu ? 0 : now - attempt.lastUseAt,
    ...(attempt.isWakeable ? { wakeable: true } : {}),
    ...(attempt.residualMib > 0 ? { residual_mib: attempt.residualMib } : {}),
  }
}
