/**
 * What controller and GPU servers say to each other, version 1. Field names are those of the wire:
 * snake_case, MiB, milliseconds. `protocol/codec.ts` turns them into bytes and checks what comes in; in a
 * simulation they travel by reference.
 */
import type { ClientBody, TaskAnswer } from './client-messages.ts'
import type { DurationMs, GpuMode, Mib, NoSwap, OnNodeLoss, Priority, WireResidency } from './units.ts'

export const PROTOCOL_VERSION = 1

/** The sender's start: the counter is persisted and grows at every start (R6). */
export interface Boot {
  readonly counter: number
  readonly random: string
}

export interface Envelope<B extends Body = Body> {
  readonly v: typeof PROTOCOL_VERSION
  /** The same on every retry. */
  readonly id: string
  /** The sender's monotonic milliseconds. */
  readonly sent_mono: number
  readonly boot: Boot
  /** Per (sender, boot). */
  readonly seq: number
  /**
   * The controller's fencing token. In messages of a node: the highest that it has obeyed; 0 when it knows
   * none yet.
   */
  readonly epoch: number
  /**
   * Id of the controller process that has this epoch, another one after each start. Absent: not known, or the
   * sender is older than the field.
   */
  readonly controller?: string
  /**
   * Sequence number of the last event that is durable in this epoch; from a node: the highest that it heard
   * of. Absent as `controller`.
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
  /** How long it has been without GPU work; 0 while it wants the GPU. */
  readonly idle_ms: DurationMs
}

/** An attempt that ended and whose `finished` is not acknowledged yet. */
export interface AttemptRef {
  readonly task_id: string
  readonly attempt: number
}

/**
 * `uid_per_attempt`: each attempt has a user of its own. `task_user`: one user for all tasks, not that of the
 * server. `root`: tasks are root. `server_user`: tasks run as the user of the server, who is not root.
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
   * What all copies of the node together move through its host memory, MiB/s; left out: nobody has said. No
   * decision rests on it: simulations of the node do.
   */
  readonly host_link_mib_per_s?: number
  /** Tasks can announce that they want the GPU; otherwise the controller probes (swap_in_probe_seconds). */
  readonly signals_wanted: boolean
  /** What its GPUs are: real ones, none (declared in a file, tasks are plain processes), or a model. */
  readonly device: DeviceKind
  /** It runs commands; otherwise only leases are placed here. */
  readonly allow_exec: boolean
  /**
   * Attempts that it holds at once: those that live there, and those that ended and whose `finished` is not
   * acknowledged. Missing from servers of earlier versions: as many as a snapshot holds.
   */
  readonly max_attempts?: number
  /** The users that its tasks run as; missing from servers of earlier versions and from simulated ones. */
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

/** Resent whole, oldest first, until acknowledged. */
export interface NodeEvents {
  readonly op: 'events'
  readonly node_id: string
  readonly entries: readonly NodeEvent[]
}

export type NodeEvent =
  StartedEvent | FinishedEvent | ResidencyEvent | UseEvent | AllocationWantedEvent | ReserveBreachedEvent

interface NodeEventBase {
  /** Position in the node's outbox; grows for ever within a boot counter. */
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
   * completed: exit code 0. failed: another, or a signal. stopped: the controller asked. lease_ended: R4.
   * lost: the process went away.
   */
  readonly outcome: 'completed' | 'failed' | 'stopped' | 'lease_ended' | 'lost'
  readonly exit_code: number | null
  readonly detail: string | null
  /**
   * It never ran: the start was refused, and why. With `outcome: failed`, which is all that a controller
   * knows of it that does not know the field.
   */
  readonly start_refused?: StartRefused
}

export interface ResidencyEvent extends NodeEventBase {
  readonly kind: 'residency'
  readonly residency: WireResidency
  readonly generation: number
  /**
   * Null when it went as ordered; otherwise why the node ended up in this residency (`woke_while_locked`,
   * `copy_failed`, …).
   */
  readonly because: string | null
}

/**
 * `gpu_wanted`: work is routed to it. `gpu_used`: it has just run dry, its last GPU use was `idle_ms` ago.
 */
export interface UseEvent extends NodeEventBase {
  readonly kind: 'gpu_wanted' | 'gpu_used'
  readonly idle_ms: DurationMs
}

/** The server holds an allocation that would take the task to `mib` per GPU. */
export interface AllocationWantedEvent extends NodeEventBase {
  readonly kind: 'allocation_wanted'
  readonly mib: Mib
}

export interface ReserveBreachedEvent extends NodeEventBase {
  readonly kind: 'reserve_breached'
  readonly gpu: number
  readonly free_mib: Mib
}

/** The answer to a command: what the node knows of that attempt now (R7). */
export interface CommandResult {
  readonly op: 'result'
  readonly task_id: string
  readonly attempt: number
  readonly outcome: 'accepted' | 'refused' | 'running' | 'finished' | 'gone' | 'never_seen'
  /** Set when refused. */
  readonly reason: RefusalReason | null
  readonly residency: WireResidency
  readonly generation: number
  /** Of a `start` that was refused. */
  readonly start_refused?: StartRefused
}

/**
 * Whose fault it is that an attempt was not started. `host`: any task would have been refused; `task`: this
 * one is refused here whenever it is tried; `passing`: neither, another try may work at once.
 */
export interface StartRefused {
  readonly cause: 'host' | 'task' | 'passing'
  /** For people and for counting: letters, digits and `_`. */
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
  /** Where `data` begins: what was asked for, or the oldest byte still kept when that is later. */
  readonly offset: number
  /** Bytes in base64; empty when there is nothing from there on. */
  readonly data: string
  /** Nothing will be written after what has been written by now. */
  readonly is_ended: boolean
}

/**
 * The answer to `read_attempt`: as it was started. `name`, `owner` and `command` are null where the start did
 * not say.
 */
export interface AttemptRecord {
  readonly op: 'attempt'
  readonly task_id: string
  readonly attempt: number
  readonly name: string | null
  readonly owner: string | null
  readonly command: readonly string[] | null
  /** It runs no command: its client keeps it alive. */
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
  /** Attempts that the node must end: the controller has given them up. */
  readonly stop: readonly AttemptRef[]
  /** Attempts that no task has: they must end when the next snapshot names them as well. Absent: none. */
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
  /** Entries up to here are durable at the controller. */
  readonly up_to: number
}

/** The node's boot counter is unknown or contradictory: start again above this one (R6). */
export interface StateReset {
  readonly op: 'state_reset'
  readonly counter_above: number
}

/** Not acceptable as sent: the other side stays as it was. */
export interface Refused {
  readonly op: 'refused'
  readonly reason: string
}

export type Command = StartCommand | StopCommand | SwapCommand | GrantCommand

interface CommandBase {
  readonly task_id: string
  readonly attempt: number
  /** The node's own clock and boot: past it, or for another boot, the command is dead (R3). */
  readonly valid_until_mono: number
  readonly node_boot: Boot
  /**
   * The safety reserve that it was decided with: it holds from then on, as the one of a lease. Absent from
   * older controllers.
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
   * For the server's record alone: what an administrator is shown of an attempt that the store has lost.
   * Absent from older controllers.
   */
  readonly name?: string
  readonly owner?: string | null
  /**
   * What the attempt gets between SIGTERM and SIGKILL when its server is told to end its tasks. Left out:
   * nothing.
   */
  readonly stop_grace_ms?: DurationMs
}

export interface StopCommand extends CommandBase {
  readonly op: 'stop'
  readonly reason: string
  /**
   * Between SIGTERM and SIGKILL. Left out, or unknown to the server: it is killed at once. A later stop can
   * only bring the end nearer.
   */
  readonly grace_ms?: DurationMs
}

export interface SwapCommand extends CommandBase {
  readonly op: 'swap_out' | 'swap_in'
  /** The residency generation the controller decided on. */
  readonly generation: number
  /** swap_out only: true when max_residency asked, so that a task that wants the GPU leaves all the same. */
  readonly force_active: boolean
}

/** The answer to allocation_wanted, and a change of noswap on a placed task. */
export interface GrantCommand extends CommandBase {
  readonly op: 'grant' | 'refuse_growth' | 'set_noswap'
  /** grant: the new demand per GPU. */
  readonly mib: Mib
  readonly noswap: NoSwap
  readonly reason: string | null
}

/** Who leads, published every 2 s to whoever listens. */
export interface Leader {
  readonly op: 'leader'
  /** The fencing token that it has made durable. */
  readonly epoch: number
  /** Of its process: another one after each start. */
  readonly id: string
}

/**
 * What the server recorded of an attempt that lives there. It changes nothing, as `read_log`; answered by
 * `attempt`, or `refused` when unknown.
 */
export interface ReadAttempt {
  readonly op: 'read_attempt'
  readonly task_id: string
  readonly attempt: number
}

/**
 * What a task has written. It changes nothing, so that nothing of R3 applies to it; answered by `log`, or
 * `refused` for an attempt unknown.
 */
export interface ReadLog {
  readonly op: 'read_log'
  readonly task_id: string
  readonly attempt: number
  readonly stream: LogStream
  /** Bytes since the attempt began. */
  readonly offset: number
  readonly max_bytes: number
}
