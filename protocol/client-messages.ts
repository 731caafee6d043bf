/**
 * What clients and controller say to each other; REST is the other way in, with the same meaning. Every field
 * is said, null where REST leaves it out.
 */
import type { DurationMs, GpuMode, Mib, NoSwap, OnNodeLoss, Priority, WireResidency } from './units.ts'

export type ClientBody = SubmitTask | CancelTask | GetTask | KeepTask

export interface Label {
  readonly name: string
  readonly value: string
}

/** Asks for GPU time. The same message id asks for the same task: it should be a UUID. */
export interface SubmitTask {
  readonly op: 'submit'
  /** Null: as its id. */
  readonly name: string | null
  /** On each GPU; null only with gpu_mode exclusive: all that a GPU has. */
  readonly vram_mib: Mib | null
  readonly gpu_count: number
  readonly gpu_mode: GpuMode
  readonly noswap: NoSwap
  readonly priority: Priority
  /** Any of them will do; none: the common pool. */
  readonly groups: readonly string[]
  readonly labels: readonly Label[]
  /** What the GPU server runs; null: a lease. */
  readonly command: readonly string[] | null
  /** Null: no limit. */
  readonly max_runtime_seconds: number | null
  readonly on_node_loss: OnNodeLoss
  /** Null: no limit; left out: what the configuration says. */
  readonly max_requeues?: number | null
  /** Between SIGTERM and SIGKILL; null or left out: what the cluster gives. */
  readonly stop_grace_seconds?: number | null
}

/** A pending task is cancelled at once; a placed one is stopped by its GPU server. */
export interface CancelTask {
  readonly op: 'cancel'
  readonly task_id: string
  /** Without the stop grace, also of a task that is being stopped. */
  readonly now?: boolean
}

export interface GetTask {
  readonly op: 'get'
  readonly task_id: string
}

/**
 * A lease (a task without a command) goes on, and wants the GPU or not. One that nobody keeps alive is
 * cancelled.
 */
export interface KeepTask {
  readonly op: 'keepalive'
  readonly task_id: string
  readonly busy: boolean
}

export type WireTaskState =
  'pending' | 'assigned' | 'running' | 'unreachable' | 'completed' | 'failed' | 'cancelled' | 'lost'

/** The answer to all of these: the task as it is. Others' tasks are answered like ones that do not exist. */
export interface TaskAnswer {
  readonly op: 'task'
  readonly task_id: string
  readonly name: string
  readonly state: WireTaskState
  readonly residency: WireResidency
  readonly attempt: number
  readonly swap_outs: number
  /** Where it sits; null while it is pending or final. */
  readonly node_id: string | null
  readonly gpus: readonly number[]
  readonly exit_code: number | null
  /** Why it ended, or why it waits; null when there is nothing to say. */
  readonly reason: string | null
  /** Answer to keepalive: it ends then unless it is kept alive again; null: never, or nobody asked. */
  readonly expires_in_ms: DurationMs | null
}
