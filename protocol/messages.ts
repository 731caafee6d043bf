/**
 * Messages between the controller and GPU servers, version 1. Field names are those of the wire: snake_case,
 * MiB, milliseconds. `protocol/codec.ts` encodes them and checks input; a simulation passes them by
 * reference.
 */
import type { ClientBody, TaskAnswer } from './client-messages.ts'
import type { DurationMs, GpuMode, Mib, NoSwap, OnNodeLoss, Priority, WireResidency } from './units.ts'

export const PROTOCOL_VERSION = 1

/** One start of the sender: the counter is persisted and grows at every start (R6). */
export interface Boot {
  readonly counter: number
  readonly random: string
}

export interface Envelope<B extends Body = Body> {
  readonly v: typeof PROTOCOL_VERSION
  /** Equal on every retry. */
  readonly id: string
  /** The sender's monotonic milliseconds. */
  readonly sent_mono: number
  readonly boot: Boot
  /** Per (sender, boot). */
  readonly seq: number
  /**
   * The controller's fencing token. In messages of a node: the highest epoch that it has obeyed; 0 when it
   * knows none.
   */
  readonly epoch: number
  /**
   * Id of the controller process of this epoch; it changes at each start. Absent: not known, or the sender
   * predates the field.
   */
  readonly controller?: string
  /**
   * Sequence number of the last durable event of this epoch; from a node: the highest that it received.
   * Absent as `controller`.
   */
  readonly event_seq?: number
  readonly body: B
}

export type Body = NodeBody | ControllerBody | ClientBody
export type NodeBody = Hello | Heartbeat | NodeEvents | CommandResult | LogChunk | AttemptRecord | Refused
export type ControllerBody =
  Welcome | Lease | EventsAck | StateReset | Command | ReadLog | ReadAttempt | Leader | Refused | TaskAnswer

// ── node → controller ────────────────────────────────────────────────────────

export interface GpuReport {
  readonly index: number
  readonly model: string
  readonly physical_mib: Mib
  readonly foreign_mib: Mib
}

export type DeviceKind = 'nvidia' | 'process' | 'simulated'

/** One attempt that lives on the node. */
export interface TaskReport {
  readonly task_id: string
  readonly attempt: number
  readonly residency: WireResidency
  readonly generation: number
  readonly gpus: readonly number[]
  readonly vram_mib: Mib
  readonly wants_gpu: boolean
  /** Time since its last GPU work; 0 while it wants the GPU. */
  readonly idle_ms: DurationMs
}

/** An attempt that ended and whose `finished` is not acknowledged yet. */
export interface AttemptRef {
  readonly task_id: string
  readonly attempt: number
}

/**
 * `uid_per_attempt`: each attempt has its own user. `task_user`: one user for all tasks, different from the
 * server's. `root`: tasks run as root. `server_user`: tasks run as the server's user, which is not root.
 */
export type TaskIdentityKind = 'uid_per_attempt' | 'task_user' | 'root' | 'server_user'

export interface Hello {
  readonly op: 'hello'
  readonly node_id: string
  readonly name: string
  readonly address: string
  readonly gpus: readonly GpuReport[]
  readonly host_swap_mib: Mib
  /**
   * Total bandwidth of copies between the node's host memory and its GPUs, MiB/s. Absent: not configured.
   * Decisions do not use it; simulations of the node do.
   */
  readonly host_link_mib_per_s?: number
  /** Tasks can announce that they want the GPU; if not, the controller probes (swap_in_probe_seconds). */
  readonly signals_wanted: boolean
  /** The kind of its GPUs: real, declared in a file (tasks are plain processes), or simulated. */
  readonly device: DeviceKind
  /** The node runs commands; if not, only leases are placed on it. */
  readonly allow_exec: boolean
  /**
   * Maximum number of attempts at once: living ones, and ended ones whose `finished` is not acknowledged.
   * Absent from servers of earlier versions: the capacity of a snapshot.
   */
  readonly max_attempts?: number
  /** The users that its tasks run as. Absent from servers of earlier versions and from simulated ones. */
  readonly task_identity?: TaskIdentityKind
  readonly tasks: readonly TaskReport[]
  readonly finished_unacked: readonly AttemptRef[]
}

export interface Heartbeat {
  readonly op: 'heartbeat'
  readonly node_id: string
  readonly gpus: readonly GpuReport[]
  readonly tasks: readonly TaskReport[]
  readonly finished_unacked: readonly AttemptRef[]
}

/** Resent as a whole, oldest first, until acknowledged. */
export interface NodeEvents {
  readonly op: 'events'
  readonly node_id: string
  readonly entries: readonly NodeEvent[]
}

export type NodeEvent =
  StartedEvent | FinishedEvent | ResidencyEvent | UseEvent | AllocationWantedEvent | ReserveBreachedEvent

interface NodeEventBase {
  /** Position in the node's outbox; grows without limit within a boot counter. */
  readonly n: number
  readonly task_id: string
  readonly attempt: number
}

export interface StartedEvent extends NodeEventBase {
  readonly kind: 'started'
  readonly wants_gpu: boolean
}

export interface FinishedEvent extends NodeEventBase {
  readonly kind: 'finished'
  /**
   * completed: exit code 0. failed: another exit code, or a signal. stopped: on the controller's order.
   * lease_ended: R4. lost: the process disappeared.
   */
  readonly outcome: 'completed' | 'failed' | 'stopped' | 'lease_ended' | 'lost'
  readonly exit_code: number | null
  readonly detail: string | null
  /**
   * The start was refused and the attempt never ran. Has `outcome: failed`, which is what a controller reads
   * that does not know this field.
   */
  readonly start_refused?: StartRefused
}

export interface ResidencyEvent extends NodeEventBase {
  readonly kind: 'residency'
  readonly residency: WireResidency
  readonly generation: number
  /**
   * Null when the residency is as ordered; otherwise why the node ended up in it (`woke_while_locked`,
   * `copy_failed`, …).
   */
  readonly because: string | null
}

/** `gpu_wanted`: the task has GPU work. `gpu_used`: it became idle; its last GPU use was `idle_ms` ago. */
export interface UseEvent extends NodeEventBase {
  readonly kind: 'gpu_wanted' | 'gpu_used'
  readonly idle_ms: DurationMs
}

/** The server blocks an allocation that would raise the task to `mib` per GPU. */
export interface AllocationWantedEvent extends NodeEventBase {
  readonly kind: 'allocation_wanted'
  readonly mib: Mib
}

export interface ReserveBreachedEvent extends NodeEventBase {
  readonly kind: 'reserve_breached'
  readonly gpu: number
  readonly free_mib: Mib
}

/** The answer to a command: what the node knows about that attempt now (R7). */
export interface CommandResult {
  readonly op: 'result'
  readonly task_id: string
  readonly attempt: number
  readonly outcome: 'accepted' | 'refused' | 'running' | 'finished' | 'gone' | 'never_seen'
  /** Set when refused. */
  readonly reason: RefusalReason | null
  readonly residency: WireResidency
  readonly generation: number
  /** For a refused `start`. */
  readonly start_refused?: StartRefused
}

/**
 * Why an attempt was not started. `host`: any task would have been refused. `task`: this task is refused on
 * this host at every attempt. `passing`: neither; the next try may work at once.
 */
export interface StartRefused {
  readonly cause: 'host' | 'task' | 'passing'
  /** Shown and counted: letters, digits and `_`. */
  readonly code: string
}

export type RefusalReason =
  | 'stale_epoch'
  | 'other_boot'
  | 'expired'
  | 'no_lease'
  | 'old_attempt'
  | 'no_vram'
  | 'unknown_gpu'
  | 'stale_generation'
  | 'wants_gpu'
  | 'noswap'
  | 'contrary'
  | 'no_host_memory'
  | 'node_full'
  | 'exec_not_allowed'
  | 'device_failed'
  | 'disk_failed'

/** The answer to `read_log`. */
export interface LogChunk {
  readonly op: 'log'
  readonly task_id: string
  readonly attempt: number
  readonly stream: LogStream
  /** Start of `data`: the requested offset, or the oldest byte still kept when that is later. */
  readonly offset: number
  /** Bytes in base64; empty when the offset is at the end. */
  readonly data: string
  /** No more output will follow. */
  readonly is_ended: boolean
}

/**
 * The answer to `read_attempt`: the attempt as it was started. `name`, `owner` and `command` are null where
 * the start did not carry them.
 */
export interface AttemptRecord {
  readonly op: 'attempt'
  readonly task_id: string
  readonly attempt: number
  readonly name: string | null
  readonly owner: string | null
  readonly command: readonly string[] | null
  /** The attempt runs no command: its client keeps it alive. */
  readonly is_lease: boolean
  readonly gpu_mode: GpuMode
  readonly noswap: NoSwap
  readonly priority: Priority
  readonly on_node_loss: OnNodeLoss
}

export type LogStream = 'stdout' | 'stderr'

// ── controller → node ────────────────────────────────────────────────────────

export interface NodeSettings {
  readonly heartbeat_ms: DurationMs
  readonly run_lease_ms: DurationMs
  readonly safety_reserve_mib: Mib
}

export interface Welcome {
  readonly op: 'welcome'
  readonly settings: NodeSettings
  /** Attempts that the controller has given up and the node must end. */
  readonly stop: readonly AttemptRef[]
  /**
   * Attempts without a task: the node must end them when its next snapshot names them as well. Absent: none.
   */
  readonly unknown?: readonly AttemptRef[]
}

export interface Lease {
  readonly op: 'lease'
  readonly settings: NodeSettings
  readonly stop: readonly AttemptRef[]
  /** As in welcome. */
  readonly unknown?: readonly AttemptRef[]
}

export interface EventsAck {
  readonly op: 'events_ack'
  /** Entries up to this number are durable at the controller. */
  readonly up_to: number
}

/** The node's boot counter is unknown or contradictory: start again with a counter above this one (R6). */
export interface StateReset {
  readonly op: 'state_reset'
  readonly counter_above: number
}

/** The message is not acceptable; the receiver changed nothing. */
export interface Refused {
  readonly op: 'refused'
  readonly reason: string
}

export type Command = StartCommand | StopCommand | SwapCommand | GrantCommand

interface CommandBase {
  readonly task_id: string
  readonly attempt: number
  /** The command expires at this time of the node's own clock, or when the node has another boot (R3). */
  readonly valid_until_mono: number
  readonly node_boot: Boot
  /**
   * The safety reserve on which the decision was based. The node applies it from then on, like the reserve of
   * a lease. Absent from older controllers.
   */
  readonly safety_reserve_mib?: Mib
}

export interface StartCommand extends CommandBase {
  readonly op: 'start'
  readonly gpus: readonly number[]
  readonly vram_mib: Mib
  readonly gpu_mode: GpuMode
  readonly noswap: NoSwap
  readonly priority: Priority
  readonly on_node_loss: OnNodeLoss
  readonly command: readonly string[] | null
  /**
   * For the server's record only: shown to an administrator when the store has lost the attempt. Absent from
   * older controllers.
   */
  readonly name?: string
  readonly owner?: string | null
  /** Time between SIGTERM and SIGKILL when its server has to end its tasks. Absent: none. */
  readonly stop_grace_ms?: DurationMs
}

export interface StopCommand extends CommandBase {
  readonly op: 'stop'
  readonly reason: string
  /**
   * Time between SIGTERM and SIGKILL. Absent, or not known to the server: SIGKILL at once. A later stop can
   * only shorten the time.
   */
  readonly grace_ms?: DurationMs
}

export interface SwapCommand extends CommandBase {
  readonly op: 'swap_out' | 'swap_in'
  /** The residency generation that the decision was based on. */
  readonly generation: number
  /**
   * swap_out only: true when the cause is max_residency, so that a task that wants the GPU is swapped out
   * too.
   */
  readonly force_active: boolean
}

/** The answer to allocation_wanted, or a change of noswap on a placed task. */
export interface GrantCommand extends CommandBase {
  readonly op: 'grant' | 'refuse_growth' | 'set_noswap'
  /** grant: the new demand per GPU. */
  readonly mib: Mib
  readonly noswap: NoSwap
  readonly reason: string | null
}

/** The leading controller, published every 2 s. */
export interface Leader {
  readonly op: 'leader'
  /** The fencing token that the controller has made durable. */
  readonly epoch: number
  /** Id of the controller process; it changes at each start. */
  readonly id: string
}

/**
 * Reads what the server recorded about an attempt that lives there. Read only, like `read_log`; answered by
 * `attempt`, or by `refused` when unknown.
 */
export interface ReadAttempt {
  readonly op: 'read_attempt'
  readonly task_id: string
  readonly attempt: number
}

/**
 * Reads the output of a task. Read only, so R3 does not apply; answered by `log`, or by `refused` for an
 * unknown attempt.
 */
export interface ReadLog {
  readonly op: 'read_log'
  readonly task_id: string
  readonly attempt: number
  readonly stream: LogStream
  /** Bytes since the start of the attempt. */
  readonly offset: number
  readonly max_bytes: number
}
