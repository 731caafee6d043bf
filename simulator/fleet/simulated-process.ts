import type { UseReport } from '../../gpu-server/core/device.ts'
import type { AttemptStart } from '../../gpu-server/core/attempt-start.ts'
import type { Instant, Mib } from '../../protocol/units.ts'
import type { SwappedTask } from '../../gpu-server/core/swap-steps.ts'
import type { SimTimer } from '../kernel/virtual-clock.ts'
import type { Runner } from './compute-sharing.ts'
import { WorkCursor } from './work-cursor.ts'
import type { WorkPlan } from './work-plan.ts'
import type { Work } from '../trace/trace-format.ts'

const NO_FAILURES: SwappedTask['hookFailures'] = []

/** One attempt on a simulated device. */
export interface SimulatedProcess extends Runner, SwappedTask {
  readonly start: AttemptStart
  readonly taskId: string
  readonly attempt: number
  readonly cursor: WorkCursor
  readonly startedAt: Instant
  /** End of a step without work. */
  stepEndsAt: Instant
  /** Receives its use reports; null: the device's listener does. */
  onUse: UseReport | null
  /** Timer for the end of its steps without work; null before the first. */
  idleTimer: SimTimer | null
  vramMib: Mib
  /** VRAM of the process on each GPU, as a driver would measure it. */
  usedMib: Mib
  /** Its hooks are at work. */
  isMoving: boolean
  isBusy: boolean
  /** It may run: it is in VRAM, and no swap-out is in progress. */
  isResident: boolean
  /** Where its bytes are; during a swap, where they come from. */
  isInVram: boolean
  /**
   * It is swapped out, or its swap-out copy has begun, and no step of its work begins before its return;
   * never if tasks can signal that they want the GPU.
   */
  isStill: boolean
  /** A step without work ended while it was paused. */
  isStepOver: boolean
  /** Grows with every swap, and when a new server adopts it: earlier swaps are ignored then. */
  moves: number
  /** The end of the run lease ends it. */
  isLeased: boolean
  lastUseAt: Instant
  /** The allocation that it waits for. */
  heldMib: Mib | null
  /** Stopped by an order of the server. */
  isFrozen: boolean
  /** By its guard, at the end of the run lease. */
  isSuspended: boolean
  /** It is being ended and never runs again. */
  isStopping: boolean
  /** It was ordered to stop, with a grace period; */
  hasGrace: boolean
  /** and has begun to handle SIGTERM. */
  isHandling: boolean
  /** It has ended completely. */
  isEnded: boolean
  /** It is among the tasks that share its GPUs. */
  isRunning: boolean
  growthTimer: SimTimer | null
  nextGrowth: number
  /** A growth step was due while it was not resident: it allocates after its return. */
  isGrowthDue: boolean
}

/** An attempt that is present at the start of the world. */
export interface InitialProcess {
  readonly start: AttemptStart
  readonly startedAt: Instant
  readonly isInVram: boolean
  /** What it keeps on each GPU while it is out. */
  readonly residualMib: Mib
  /** Its server knows that it wants the GPU, although it is paused. */
  readonly isKnownToWant: boolean
  readonly lastUseAt: Instant
  /** An allocation that waits for its answer. */
  readonly heldMib: Mib | null
  /** Completed part of the first step of its work, below 1000. */
  readonly doneUs: number
}

/** Remaining work of a process. */
export interface WorkLeft {
  readonly work: Work
  /** Completed part of its first step; below 1000. */
  readonly doneUs: number
}

/**
 * Resident and about to begin. The fields that every step reads come first, so that they share cache lines.
 */
export function newSimulatedProcess(
  start: AttemptStart,
  plan: WorkPlan,
  startedAt: Instant,
): SimulatedProcess {
  return {
    cursor: new WorkCursor(plan, startedAt),
    isBusy: false,
    isResident: true,
    isFrozen: false,
    isSuspended: false,
    isRunning: false,
    home: null,
    leftUs: 0,
    mark: 0,
    stepEndsAt: 0,
    lastUseAt: startedAt,
    gpus: start.gpus,
    timer: null,
    idleTimer: null,
    onUse: null,
    taskId: start.taskId,
    attempt: start.attempt,
    start,
    startedAt,
    vramMib: start.vramMib,
    usedMib: start.vramMib,
    isMoving: false,
    swappedOutBy: 'driver',
    residualMib: 0,
    mayBeSuspended: false,
    areHooksGivenUp: false,
    hookFailures: NO_FAILURES,
    toldAgainAt: null,
    isInVram: true,
    isStill: false,
    isStepOver: false,
    moves: 0,
    isLeased: true,
    heldMib: null,
    isStopping: false,
    hasGrace: false,
    isHandling: false,
    isEnded: false,
    growthTimer: null,
    nextGrowth: 0,
    isGrowthDue: false,
  }
}

/**
 * Its remaining work.
 * @param leftUs GPU work of its current step, if it is busy
 */
export function workLeftOf(
  { isBusy, cursor, stepEndsAt }: SimulatedProcess,
  now: Instant,
  leftUs: number,
): WorkLeft {
  if (!isBusy) return { work: cursor.workLeft(0, Math.max(0, stepEndsAt - now), now), doneUs: 0 }
  const leftMs = Math.ceil(leftUs / 1000)
  return { work: cursor.workLeft(leftMs, 0, now), doneUs: leftMs * 1000 - leftUs }
}
