/**
 * The cluster as the engine changes it: the domain's read-only types made writable, with the engine's own
 * bookkeeping. Nothing outside `engine/` imports this file (import rule `live-state-only-in-engine`).
 */
import type { CancelTimer } from '../ports/clock.ts'
import type { Boot } from '../../protocol/messages.ts'
import type { DurationMs, Instant, Mib, Microseconds } from '../../protocol/units.ts'
import type { Gpu, Reservation, Node } from '../domain/node.ts'
import type { IndexEntry } from '../domain/ordered-index.ts'
import type { EndCode } from '../domain/end-reason.ts'
import { NO_TROUBLE } from '../domain/start-refusal.ts'
import type { Placement, QueueEntry, Task, TaskSpec } from '../domain/task.ts'
import type { GpuMeter, Sharer } from '../metrics/meter.ts'
import { newGpuMeter } from '../metrics/meter.ts'
import type { GpuRounds } from '../swap/rounds.ts'
import { newGpuRounds } from '../swap/rounds.ts'
import type { NodeContact, ClockSample } from './node/node-contact.ts'
import type { CapacityFigures } from './pool/capacity-figures.ts'
import { newFigures } from './pool/capacity-figures.ts'
import type { PendingQueue } from './pool/pending-queue.ts'
import type { Pool } from './pool/pool.ts'
import type { PoolMember } from './pool/pool-members.ts'

type Mutable<T> = { -readonly [K in keyof T]: T[K] }

export interface LiveTask extends Mutable<Task> {
  placement: LivePlacement | null
  placementEntry: LiveEntry | null
  /** Where it waits; null unless it is pending and not claimed. */
  queue: PendingQueue | null
  queueEntry: IndexEntry<LiveTask> | null
  queueClass: number
  /** Its wait counts as demand: it could be placed on some node of its pool. */
  isFeasible: boolean
  /** Since when its wait is counted; null while it is not. */
  waitCountedFrom: Instant | null
  queueUs: Microseconds
  swapUs: Microseconds
  servedUs: Microseconds
  computeUs: Microseconds
  /** Since when it has been wanting the GPU without being resident; null while it is not. */
  awayFrom: Instant | null
  /**
   * Of a lease: whether its client said last that it wants the GPU; null while it has said nothing. The node
   * knows less.
   */
  clientWants: boolean | null
  /**
   * Attempts that were given up before their node said how they ended; the oldest first, at most
   * `MAX_GIVEN_UP`.
   */
  givenUp: readonly GivenUp[]
  /** Its latest event: the cause of what follows from it. */
  lastEventSeq: number | null
  isDirty: boolean
}

/** An attempt whose result may still arrive (R8). */
export interface GivenUp {
  readonly attempt: number
  readonly nodeId: string
  /** A later attempt has started: the result no longer ends the task. */
  readonly isOvertaken: boolean
}

export interface LivePlacement extends Mutable<Placement>, Sharer {
  task: LiveTask
  node: LiveNode
  gpus: readonly LiveGpu[]
  leavesFor: LiveEntry | null
  entry: LiveEntry | null
  /** It is among its GPUs' sharers. */
  isSharing: boolean
  /** The instant for which it stands in the ripening heap; null: it does not. */
  eligibilityTimerAt: Instant | null
  /** Since when its bytes are away, a way back that failed included; null while they are not. */
  swappedOutSince: Instant | null
  /** Its probe asks for its return, until it is resident. */
  isProbed: boolean
  /** An operator wants it back: it asks to return until it is resident, whatever it says itself. */
  isSwapInRequested: boolean
  /** An operator swapped it out: it stays out until something asks for its return. */
  isSwappedOutByOperator: boolean
  /** It returns, or has returned last, although nothing had asked for it: its idle clock goes on. */
  isEager: boolean
  /**
   * Its last start, or swap-in that something had asked for: it counts as idle from then on at the earliest.
   */
  idleFrom: Instant
  /** A stop was ordered, the node's word is awaited: what becomes of the task then. */
  stopping: Stopping | null
  /** The message that said that it runs: absence counts in later snapshots only (R6). Null until then. */
  confirmed: { readonly bootCounter: number; readonly seq: number } | null
  /**
   * Its server has lost its state: what it says about this attempt counts for nothing, unless it says that it
   * is there (R6).
   */
  isInDoubt: boolean
  /** The node has not acknowledged the noswap value that it is accounted under. */
  isNoswapUnacknowledged: boolean
  /**
   * An allocation that the server holds: the task would take `mib` per GPU. Not answered yet, or granted for
   * its return.
   */
  heldGrowth: { readonly mib: Mib; readonly askedAt: Instant } | null
}

export interface Stopping {
  readonly then: 'cancelled' | 'completed' | 'failed' | 'pending'
  /** Why, in words. */
  readonly reason: string
  /** What the record of the ended task says; null: what the node says. */
  readonly endReason: string | null
  /** Why the task ends, unless it is pending again. Absent in records that are older than the field. */
  readonly code?: EndCode
  /** What an earlier attempt returned, whose result ends the task (R8). */
  readonly exitCode?: number | null
  /**
   * When it was ordered, and what the task gets from then on. Absent in records that are older than the
   * fields: it has no grace.
   */
  readonly since?: Instant
  readonly graceMs?: DurationMs
}

export interface LiveEntry extends Mutable<QueueEntry> {
  task: LiveTask
  node: LiveNode
  gpus: readonly LiveGpu[]
  /** When it was last looked at in vain; null when it is to be looked at again whatever happened. */
  failedAttempt: FailedAttemptKey | null
}

/** An entry that holds its GPUs, and the hold. */
export interface EntryReservation {
  readonly entry: LiveEntry
  readonly reservation: Reservation
}

/**
 * All that a look at an entry depends on, whether it owns its bytes included: as long as it stays, the answer
 * does.
 */
export interface FailedAttemptKey {
  readonly ledgerVersion: number
  readonly hostUsedMib: Mib
  readonly collector: LiveEntry | null
  readonly spec: TaskSpec
}

/** Swaps that have ended, and the bytes they moved; grow only. */
export interface SwapTotals {
  swapOuts: number
  swapIns: number
  swappedOutMib: Mib
  swappedInMib: Mib
}

export function newSwapTotals(): SwapTotals {
  return { swapOuts: 0, swapIns: 0, swappedOutMib: 0, swappedInMib: 0 }
}

export interface LiveGpu extends Mutable<Gpu> {
  node: LiveNode
  placements: LivePlacement[]
  pendingClaimants: LiveEntry[]
  claimants: LiveEntry[]
  reservations: Reservation[]
  exclusiveTask: LiveTask | null
  rounds: GpuRounds
  meter: GpuMeter
  /** Of its tasks, one on several GPUs included: each GPU sees its swap, and its own bytes. */
  readonly swaps: SwapTotals
  /** Its two classes in the book of fairness. */
  readonly fairnessScopes: { readonly p0: string; readonly nonP0: string }
  /** How often its books, or what stands in them, changed. */
  ledgerVersion: number
  /** Pools have to be told that it changed: */
  isStale: boolean
  /** its books, and not only who may leave. */
  isLedgerStale: boolean
  /** What its pools compare. */
  figures: CapacityFigures
  /** One in each of its node's pools. */
  poolMembers: PoolMember[]
}

export interface LiveNode extends Mutable<Node> {
  gpus: readonly LiveGpu[]
  queue: LiveEntry[]
  collector: LiveEntry | null
  boot: Boot
  /** Number of its last snapshot (heartbeat or hello) in this boot. */
  snapshotSeq: number
  contact: NodeContact
  /** What commands to it rely on, kept by `wire/`; null until that has heard from it. */
  clockSample: ClockSample | null
  /**
   * Attempts that its last snapshot named and that the store does not know: stopped when the next one names
   * them too.
   */
  unknown: readonly UnknownAttempt[]
  /**
   * Attempts that its last snapshot named and that are no task's current one, as keys: they count towards
   * `maxAttempts`.
   */
  otherAttempts: readonly string[]
  /** What its last snapshot named while placements were paused: what it lacked is settled afterwards. */
  deferred: DeferredSnapshot | null
  pools: Pool[]
  readonly swaps: SwapTotals
  /** Its tasks could be promised more host memory than it has. */
  isHostTight: boolean
  /** Aged entries of its queue hold some of its GPUs. */
  hasEntryReservations: boolean
  /** Which, and how, as its GPUs know it; empty when that is not known. */
  entryReservations: readonly EntryReservation[]
  /** Its queue has to be looked at in the next cycle. */
  isTouched: boolean
  /** Runs when a drain begins to move tasks; null when none is going to. */
  cancelDrain: CancelTimer | null
  /** When starts were refused there lately, for reasons of the host. */
  hostRefusals: readonly Instant[]
  /** Runs when a node that was closed waits for its trial start; null when none is due. */
  cancelTrial: CancelTimer | null
  /** When its queue is looked at again for time's sake alone. */
  wakeAt: Instant | null
  cancelWake: CancelTimer | null
  /**
   * Runs when a task that is swapped out there has been out for long enough to return eagerly; null when none
   * is going to.
   */
  cancelEager: CancelTimer | null
  isDirty: boolean
}

export interface UnknownAttempt {
  readonly taskId: string
  readonly attempt: number
  /** It was told to stop. */
  readonly isStopped: boolean
}

/** Attempts that were there, as `attemptKey` names them. */
export interface DeferredSnapshot {
  readonly present: readonly string[]
  readonly isAfterLoss: boolean
}

export function attemptKey(taskId: string, attempt: number): string {
  return `${taskId}/${attempt}`
}

export function newLiveTask(spec: TaskSpec, now: Instant): LiveTask {
  return {
    spec,
    state: 'pending',
    isHeld: false,
    attempt: 0,
    pendingSince: now,
    placement: null,
    placementEntry: null,
    refusedBy: null,
    trouble: NO_TROUBLE,
    avoidedNow: null,
    firstStartedAt: null,
    finishedAt: null,
    exitCode: null,
    endCode: null,
    endReason: null,
    swapOuts: 0,
    queue: null,
    queueEntry: null,
    queueClass: spec.priority,
    isFeasible: false,
    waitCountedFrom: null,
    queueUs: 0,
    swapUs: 0,
    servedUs: 0,
    computeUs: 0,
    awayFrom: null,
    clientWants: null,
    lastNodeId: null,
    givenUp: [],
    lastEventSeq: null,
    isDirty: false,
  }
}

export function newLivePlacement(
  task: LiveTask,
  gpus: readonly LiveGpu[],
  demandMib: Mib,
  now: Instant,
): LivePlacement {
  return {
    task,
    node: (gpus[0] as LiveGpu).node,
    gpus,
    attempt: task.attempt,
    demandMib,
    noswap: task.spec.noswap,
    residency: 'none',
    generation: 0,
    assignedAt: now,
    startedAt: null,
    wantsGpu: false,
    wantsSince: now,
    idleSince: now,
    residentSince: now,
    isEligible: false,
    isOver: false,
    backOffUntil: 0,
    leavesFor: null,
    entry: null,
    submissionNumber: task.spec.seq,
    servedUs: 0,
    computeUs: 0,
    isSharing: false,
    eligibilityTimerAt: null,
    swappedOutSince: null,
    isProbed: false,
    isSwapInRequested: false,
    isSwappedOutByOperator: false,
    isEager: false,
    idleFrom: now,
    stopping: null,
    confirmed: null,
    isInDoubt: false,
    isNoswapUnacknowledged: false,
    heldGrowth: null,
  }
}

export function newLiveGpu(
  node: LiveNode,
  index: number,
  model: string,
  physicalMib: Mib,
  foreignMib: Mib,
  now: Instant,
): LiveGpu {
  return {
    node,
    index,
    model,
    physicalMib,
    foreignMib,
    overcommitPercent: 0,
    reserveMib: 0,
    capacityMib: 0,
    limitMib: 0,
    noswapMib: 0,
    swappableMib: 0,
    freeMib: 0,
    largestSwappableMib: 0,
    noswapResidentMib: 0,
    swappableResidentMib: 0,
    movingOutMib: 0,
    eligibleMib: 0,
    eligibleP0Mib: 0,
    placements: [],
    quarantinedMib: 0,
    quarantinedCount: 0,
    pendingClaimants: [],
    claimants: [],
    reservations: [],
    exclusiveTask: null,
    rounds: newGpuRounds(),
    meter: newGpuMeter(now),
    swaps: newSwapTotals(),
    fairnessScopes: { p0: `${node.id}/${index}/p0`, nonP0: `${node.id}/${index}/non_p0` },
    ledgerVersion: 0,
    isStale: false,
    isLedgerStale: false,
    figures: newFigures(),
    poolMembers: [],
  }
}
