import type { UseReport } from '../../gpu-server/core/device.ts'
import type { AttemptStart } from '../../gpu-server/core/attempt-start.ts'
import type { Instant, Mib } from '../../protocol/units.ts'
import type { SimTimer } from '../kernel/virtual-clock.ts'
import type { Runner } from './compute-sharing.ts'
import { WorkCursor } from './work-cursor.ts'
import type { WorkPlan } from './work-plan.ts'
import type { Work } from '../trace/trace-format.ts'

/** One attempt on a simulated device. */
export interface SimulatedProcess extends Runner {
  readonly start: AttemptStart
  readonly taskId: string
  readonly attempt: number
  readonly cursor: WorkCursor
  readonly startedAt: Instant
  /** Of a step without work. */
  stepEndsAt: Instant
  /** Whoever launched it hears of its use; null: the device's listener does. */
  onUse: UseReport | null
  /** Ends its steps without work; null before the first. */
  idleTimer: SimTimer | null
  vramMib: Mib
  isBusy: boolean
  /** It may run: it is in VRAM, and not on its way out. */
  isResident: boolean
  /** Where its bytes are; while they move, where they move from. */
  isInVram: boolean
  /**
   * It is out, or its copy to there has begun, and no step of its work begins before it is back; where tasks
   * can say that they want the GPU: never.
   */
  isStill: boolean
  /** A step without work that was over while it stood still. */
  isStepOver: boolean
  /** Grows with every swap, and when a new server takes it over: a swap of before is of no account then. */
  moves: number
  /** The end of the run lease ends it. */
  isLeased: boolean
  lastUseAt: Instant
  /** The allocation that it waits for. */
  heldMib: Mib | null
  /** By order of the server. */
  isFrozen: boolean
  /** By its guard, at the end of the run lease. */
  isSuspended: boolean
  /** It is being ended: it never runs again. */
  isStopping: boolean
  /** It was told to stop, with a grace; */
  hasGrace: boolean
  /** and has begun to handle SIGTERM. */
  isHandling: boolean
  /** Nothing of it is left. */
  isGone: boolean
  /** It is among those that share its GPUs. */
  isRunning: boolean
  growthTimer: SimTimer | null
  nextGrowth: number
  /** A step of growth that came due while it was not resident: it allocates once it is back. */
  isGrowthDue: boolean
}

/** An attempt that is there when the world begins. */
export interface InitialProcess {
  readonly start: AttemptStart
  readonly startedAt: Instant
  readonly isInVram: boolean
  /** Its server knows that it wants the GPU, though it stands still. */
  readonly isKnownToWant: boolean
  readonly lastUseAt: Instant
  /** An allocation that waits for its answer. */
  readonly heldMib: Mib | null
  /** Of the first step of its work, below 1000. */
  readonly doneUs: number
}

/** What is left of a process's work. */
export interface WorkLeft {
  readonly work: Work
  /** Of its first step, done already; below 1000. */
  readonly doneUs: number
}

/** Resident, and about to begin. What every step of its work looks at comes first: it lies together. */
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
    isInVram: true,
    isStill: false,
    isStepOver: false,
    moves: 0,
    isLeased: true,
    heldMib: null,
    isStopping: false,
    hasGrace: false,
    isHandling: false,
    isGone: false,
    growthTimer: null,
    nextGrowth: 0,
    isGrowthDue: false,
  }
}

/** What it has left to do. @param leftUs of GPU work of its present step, when it is busy */
export function workLeftOf(
  { isBusy, cursor, stepEndsAt }: SimulatedProcess,
  now: Instant,
  leftUs: number,
): WorkLeft {
  if (!isBusy) return { work: cursor.workLeft(0, Math.max(0, stepEndsAt - now), now), doneUs: 0 }
  const leftMs = Math.ceil(leftUs / 1000)
  return { work: cursor.workLeft(leftMs, 0, now), doneUs: leftMs * 1000 - leftUs }
}
