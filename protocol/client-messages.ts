/**
 * Messages between clients and the controller. The REST API has the same meaning. Every field is present; it
 * is null where REST leaves it out.
 */
import type { DurationMs, GpuMode, Mib, NoSwap, OnNodeLoss, Priority, WireResidency } from './units.ts'

export type ClientBody = SubmitTask | CancelTask | GetTask | KeepTask

export interface Label {
  readonly name: string
  readonly value: string
}

/** Requests GPU time. The same message id requests the same task; use a UUID. */
export interface SubmitTask {
  readonly op: 'submit'
  /** Null: the task id. */
  readonly name: string | null
  /** Per GPU. Null only with gpu_mode exclusive: the whole VRAM of each GPU. */
  readonly vram_mib: Mib | null
  readonly gpu_count: number
  readonly gpu_mode: GpuMode
  readonly noswap: NoSwap
  readonly priority: Priority
  /** The task may run in any of these groups. Empty: the common pool. */
  readonly groups: readonly string[]
  readonly labels: readonly Label[]
  /** Command line for the GPU server. Null: a lease. */
  readonly command: readonly string[] | null
  /** Null: no limit. */
  readonly max_runtime_seconds: number | null
  readonly on_node_loss: OnNodeLoss
  /** Null: no limit. Absent: the configured limit. */
  readonly max_requeues?: number | null
  /** Time between SIGTERM and SIGKILL. Null or absent: the cluster's setting. */
  readonly stop_grace_seconds?: number | null
}

/** Cancels a pending task at once; the GPU server stops a placed task. */
export interface CancelTask {
  readonly op: 'cancel'
  readonly task_id: string
  /** Skips the stop grace, also for a task that is already stopping. */
  readonly now?: boolean
}

export interface GetTask {
  readonly op: 'get'
  readonly task_id: string
}

/**
 * Extends a lease (a task without a command) and states whether it wants the GPU. A lease without keepalives
 * is cancelled.
 */
export interface KeepTask {
  readonly op: 'keepalive'
  readonly task_id: string
  readonly busy: boolean
}

export type WireTaskState =
  'pending' | 'assigned' | 'running' | 'unreachable' | 'completed' | 'failed' | 'cancelled' | 'lost'

/**
 * The answer to every client request: the current state of the task. A task of another owner is answered like
 * a task that does not exist.
 */
export interface TaskAnswer {
  readonly op: 'task'
  readonly task_id: string
  readonly name: string
  readonly state: WireTaskState
  readonly residency: WireResidency
  readonly attempt: number
  readonly swap_outs: number
  /** The node of the placement; null while the task is pending or final. */
  readonly node_id: string | null
  readonly gpus: readonly number[]
  readonly exit_code: number | null
  /** Why the task ended, or why it waits; null when there is no reason. */
  readonly reason: string | null
  /**
   * In the answer to a keepalive: time until the lease ends without another keepalive. Null: the lease does
   * not expire, or the request was not a keepalive.
   */
  readonly expires_in_ms: DurationMs | null
}
