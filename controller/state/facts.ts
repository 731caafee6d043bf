/**
 * The cluster as the engine changes it: the read-only types of the domain made writable, with the engine's
 * own state.
 */
import type { CancelTimer } from '../ports/clock.ts'
import type { Mutable } from '../../protocol/fields.ts'
import type { Boot } from '../../protocol/message-fields.ts'
import type { DurationMs, Instant, Mib, Microseconds, SwapMethod } from '../../protocol/units.ts'
import type { IndexEntry } from '../structures/ordered-index.ts'
import type { TaskSpec } from '../../protocol/task.ts'
import type {
  GivenUp,
  Placement,
  QueueEntry,
  Stopping,
  Task,
  Gpu,
  Reservation,
  Node,
} from '../model/placement.ts'
import type { GpuMeter, Sharer } from '../metrics/meter.ts'
import type { VictimClass } from '../model/victim-class.ts'
import type { GpuRounds } from '../policy/swap/rounds.ts'
import type { NodeContact } from './node-contact.ts'

export interface LiveTask extends Mutable<Task> {
  placement: LivePlacement | null
  placementEntry: LiveEntry | null
  /** The queue it waits in; null unless it is pending without reserved VRAM. */
  queue: TaskQueue | null
  queueEntry: IndexEntry<LiveTask> | null
  queueClass: number
  /** Its wait counts as demand: some node of its pool could take it. */
  isFeasible: boolean
  /** When its counted wait began; null while its wait is not counted. */
  waitCountedFrom: Instant | null
  queueUs: Microseconds
  swapUs: Microseconds
  servedUs: Microseconds
  computeUs: Microseconds
  /** Since when it wants the GPU without being resident; null otherwise. */
  awayFrom: Instant | null
  /**
   * For a lease: whether its client last reported that it wants the GPU; null before its first report. The
   * node does not have this information.
   */
  clientWants: boolean | null
  /** Attempts given up before their node reported how they ended; oldest first, at most `MAX_GIVEN_UP`. */
  givenUp: readonly GivenUp[]
  /** Number of its latest event: the cause of what follows. */
  lastEventSeq: number | null
  isDirty: boolean
}

/** The pending queue of a task, as its tasks use it. */
export interface TaskQueue {
  add(task: LiveTask): void
  remove(task: LiveTask): void
  setAside(task: LiveTask): void
  isSetAside(task: LiveTask): boolean
}

export interface LivePlacement extends Mutable<Placement>, Sharer {
  task: LiveTask
  node: LiveNode
  gpus: readonly LiveGpu[]
  leavesFor: LiveEntry | null
  entry: LiveEntry | null
  /** It is among the sharers of its GPUs. */
  isSharing: boolean
  /** The instant of its eligibility timer; null: none is set. */
  eligibilityTimerAt: Instant | null
  /** Since when its memory is outside VRAM, including failed swap-ins; null while resident. */
  swappedOutSince: Instant | null
  /** Start of the copy in progress, out or in; null: its memory is not being moved. */
  movingSince: Instant | null
  /** Its probe requests its return, until it is resident. */
  isProbed: boolean
  /** It is swapped out, and its server reports requests for it: no probe and no eager return is needed. */
  isWakeable: boolean
  residualMib: Mib
  /** How it was swapped out, as its server said; null: not said, or not out. */
  outBy: SwapMethod | null
  /** Why its server cannot swap it, in words; null: it can, or did not say. */
  whyNotSwappable: string | null
  /**
   * An operator requested its return: the request stays until it is resident, whether or not it wants the
   * GPU.
   */
  isSwapInRequested: boolean
  /** An operator swapped it out: it stays out until its return is requested. */
  isSwappedOutByOperator: boolean
  /** Its current or last return was eager: nothing had requested it, so its idle clock continues. */
  isEager: boolean
  /** Its last start or requested swap-in: the earliest instant from which it counts as idle. */
  idleFrom: Instant
  /** A stop was ordered and the node has not confirmed it: the task's next state. */
  stopping: Stopping | null
  /**
   * The message that confirmed that it runs: only its absence from later snapshots counts (R6). Null until
   * then.
   */
  confirmed: { readonly bootCounter: number; readonly seq: number } | null
  /**
   * Its server has lost its state: reports about this attempt are ignored unless they say that it is present
   * (R6).
   */
  isInDoubt: boolean
  /** The node has not acknowledged the noswap value under which the placement is accounted. */
  isNoswapUnacknowledged: boolean
  /**
   * An allocation that the server holds back: the task would take `mib` per GPU. Unanswered, or granted for
   * its return.
   */
  heldGrowth: { readonly mib: Mib; readonly askedAt: Instant } | null
}

export interface LiveEntry extends Mutable<QueueEntry> {
  task: LiveTask
  node: LiveNode
  gpus: readonly LiveGpu[]
  /** The state at its last failed attempt; null: try again in any case. */
  failedAttempt: FailedAttemptKey | null
}

/** An entry that reserves its GPUs, and the reservation. */
export interface EntryReservation {
  readonly entry: LiveEntry
  readonly reservation: Reservation
}

/**
 * Everything that an attempt to serve an entry depends on, including whether it has VRAM reserved: while the
 * key is unchanged, so is the outcome.
 */
export interface FailedAttemptKey {
  readonly ledgerVersion: number
  readonly hostUsedMib: Mib
  readonly collector: LiveEntry | null
  readonly spec: TaskSpec
}

/** The current reservation of a pool's head. */
export interface PoolReservation {
  readonly task: LiveTask
  readonly reservation: Reservation
  readonly gpus: readonly LiveGpu[]
  /** Its shortfall on the worst of them at the last update. */
  readonly missingMib: Mib
  readonly shortfallVersion: number
}

/** Completed swaps and the MiB they moved; never decrease. */
export interface SwapTotals {
  swapOuts: number
  swapIns: number
  swappedOutMib: Mib
  swappedInMib: Mib
}

export interface LiveGpu extends Mutable<Gpu> {
  node: LiveNode
  placements: LivePlacement[]
  /** Edited in place, as `placements`: a fork copies both before it changes a placement (node-fork.ts). */
  eligible: LivePlacement[]
  pendingClaimants: LiveEntry[]
  claimants: LiveEntry[]
  reservations: Reservation[]
  exclusiveTask: LiveTask | null
  rounds: GpuRounds
  meter: GpuMeter
  /** Swaps of its tasks. A swap of a task on several GPUs counts on each, with that GPU's MiB. */
  readonly swaps: SwapTotals
  /** Duration of all ended copies, out and in; a cancelled one counts too. Never decreases. */
  copyMs: DurationMs
  /** Keys of its two classes in the fairness tracker. */
  readonly fairnessScopes: Readonly<Record<VictimClass, string>>
  /** Grows with every change of its ledger or of what the ledger covers. */
  ledgerVersion: number
  /** Its pools must be updated: */
  isStale: boolean
  /** its ledger changed, not only its eligible bytes. */
  isLedgerStale: boolean
  /** The figures that its pools compare. */
  figures: CapacityFigures
  /** One for each pool of its node. */
  indexes: GpuIndex[]
}

/** An index of GPUs. */
export interface GpuIndex {
  /** The GPU's ledger, node or reservations changed, and possibly its figures. */
  ledgerChanged(areFiguresChanged: boolean): void
  /** Its eligible bytes changed: demands that fit now are unaffected. */
  eligibleBytesChanged(): void
}

/** The figures that decide the shortfall of a waiting task on a GPU. */
export interface CapacityFigures {
  /** Commit room, room for a noswap task, placed demand, and the largest demand the GPU could ever take. */
  roomMib: Mib
  noswapRoomMib: Mib
  placedMib: Mib
  everMib: Mib
}

export interface LiveNode extends Mutable<Node> {
  gpus: readonly LiveGpu[]
  queue: LiveEntry[]
  collector: LiveEntry | null
  boot: Boot
  /** Number of its last snapshot (heartbeat or hello) in this boot. */
  snapshotSeq: number
  contact: NodeContact
  /**
   * Attempts in its last snapshot that the store does not know: stopped if the next snapshot names them
   * again.
   */
  unknown: readonly UnknownAttempt[]
  /**
   * Attempts in its last snapshot that are no task's current one, as keys. They count towards `maxAttempts`.
   */
  otherAttempts: readonly string[]
  /** Its last snapshot while placements were paused; missing attempts are settled after the pause. */
  deferred: DeferredSnapshot | null
  pools: NodePool[]
  readonly swaps: SwapTotals
  /** Its tasks could be promised more host memory than it has. */
  isHostTight: boolean
  /** Aged entries of its queue reserve some of its GPUs. */
  hasEntryReservations: boolean
  /** These reservations as last applied to its GPUs; empty when unknown. */
  entryReservations: readonly EntryReservation[]
  /** The next cycle must process its queue. */
  isTouched: boolean
  /** Cancels the timer with which a drain starts to move tasks; null: none is set. */
  cancelDrain: CancelTimer | null
  /** Recent refusals of starts for reasons of the host. */
  hostRefusals: readonly Instant[]
  /** Cancels the timer of the next trial start of a closed node; null: none is set. */
  cancelTrial: CancelTimer | null
  /** When its queue is processed again because of time alone. */
  wakeAt: Instant | null
  cancelWake: CancelTimer | null
  /** Cancels the timer of the next eager return check; null: none is set. */
  cancelEager: CancelTimer | null
  isDirty: boolean
}

/** A pool that a node is in. */
export interface NodePool {
  readonly key: string
  version: number
  /** A reserve changed. */
  reserveChanged(): void
  removeNode(node: LiveNode): void
}

export interface UnknownAttempt {
  readonly taskId: string
  readonly attempt: number
  readonly isStopped: boolean
}

/** Attempts that were present, as `attemptKey` names them. */
export interface DeferredSnapshot {
  readonly present: readonly string[]
  readonly isAfterLoss: boolean
}

export function attemptKey(taskId: string, attempt: number): string {
  return `${taskId}/${attempt}`
}
