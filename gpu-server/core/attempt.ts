import type { Instant, Mib, NoSwap, OnNodeLoss } from '../../protocol/units.ts'
import type { StartCommand, TaskReport, WireResidency } from '../../protocol/messages.ts'

/** One attempt that lives on this server. */
export interface Attempt {
  readonly taskId: string
  readonly attempt: number
  readonly gpus: readonly number[]
  readonly onNodeLoss: OnNodeLoss
  vramMib: Mib
  noswap: NoSwap
  residency: WireResidency
  /** Counts residency changes that were completed; the start makes it 1. */
  generation: number
  wantsGpu: boolean
  lastUseAt: Instant
  isStartAcknowledged: boolean
  isStopping: boolean
  isFrozen: boolean
}

export function newAttempt(command: StartCommand, now: Instant): Attempt {
  return {
    taskId: command.task_id,
    attempt: command.attempt,
    gpus: command.gpus,
    onNodeLoss: command.on_node_loss,
    vramMib: command.vram_mib,
    noswap: command.noswap,
    residency: 'none',
    generation: 0,
    wantsGpu: false,
    lastUseAt: now,
    isStartAcknowledged: false,
    isStopping: false,
    isFrozen: false,
  }
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
  }
}
