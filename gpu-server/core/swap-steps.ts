/**
 * The rules by which a task leaves VRAM and returns, as steps that a device carries out: a real one waits for
 * promises, a simulated one for its clock. The driver copies the bytes of a stopped task; a task with hooks
 * moves them itself when told, and keeps running. What a task says is checked against the device: a suspend
 * that leaves too much has failed. A task whose hooks fail falls back to the driver.
 */
import type { DurationMs, Instant, Mib, SwapMethod } from '../../protocol/units.ts'
import type { SwapOutcome } from './device.ts'

/** A task as these rules see it. */
export interface SwappedTask {
  readonly start: { readonly swapMethod?: SwapMethod }
  readonly vramMib: Mib
  readonly isEnded: boolean
  /** How its bytes last left. */
  swappedOutBy: SwapMethod
  /** What it keeps in VRAM on each GPU while it is swapped out. */
  residualMib: Mib
  /** It was told to move its data out, and has not said since that the data is back. */
  mayBeSuspended: boolean
  /** Its hooks failed too often: the driver swaps it. */
  areHooksGivenUp: boolean
  /** When its hooks failed, within the time that counts. */
  hookFailures: readonly Instant[]
  /** When it was last told to suspend although it was out; null: never. */
  toldAgainAt: Instant | null
}

/** An order to a task that moves its data itself. */
export type HookOrder = 'suspend' | 'resume'

/** Its answer: done, or the reason of the failure. */
export type HookAnswer =
  | { readonly error: null; readonly residentMib: Mib | null }
  /** Late: it may do so yet. */
  | { readonly error: string; readonly isLate?: boolean }

export type Step =
  /** Tells the task; answered when it has answered, or the time is over. */
  | { readonly kind: 'order'; readonly order: HookOrder; readonly withinMs: DurationMs }
  /** Measures its current use: the maximum over its GPUs; null: unknown. */
  | { readonly kind: 'measure' }
  | { readonly kind: 'wait'; readonly ms: DurationMs }
  /** The driver moves its bytes. */
  | { readonly kind: 'driver_out' }
  | { readonly kind: 'driver_in' }
  /** Whether this much is free on each of its GPUs. */
  | { readonly kind: 'has_free'; readonly mib: Mib }

interface Answers {
  readonly order: HookAnswer
  readonly measure: Mib | null
  readonly wait: undefined
  readonly driver_out: SwapOutcome
  readonly driver_in: SwapOutcome
  readonly has_free: boolean
}

export type Answer = Answers[keyof Answers]
export type Steps<Result> = Generator<Step, Result, Answer>

/** The functions and values that the rules need in addition to steps. */
export interface SwapGround {
  /** Monotonic. */
  readonly now: () => Instant
  /** Records a problem and how it is handled. */
  readonly note: (why: string) => void
}

export interface Suspension {
  readonly outcome: SwapOutcome
  readonly method: SwapMethod
  /** What stays in VRAM on each GPU. */
  readonly residualMib: Mib
}

/** A suspend may leave the larger of these: CUDA's own share, or a part of the demand. */
const MAX_RESIDUAL_MIB: Mib = 1_024
const MAX_RESIDUAL_PERCENT = 10
/** Deadline of an order: a fixed part, and the time at a rate below any measured one. */
const DEADLINE_FIXED_MS: DurationMs = 10_000
const DEADLINE_MAX_MS: DurationMs = 120_000
const SLOW_MIB_PER_S = 700
/** A driver frees memory a moment after the call. */
const MEASURE_AGAIN_MS: DurationMs = 100
const MEASURE_FOR_MS: DurationMs = 3_000
/** Hooks that failed this often within an hour are not called again. */
const MAX_FAILURES = 2
const FAILURES_COUNT_FOR_MS: DurationMs = 3_600_000
/** Pause between two orders to suspend again, in addition to the time limit of the order. */
const TOLD_AGAIN_MS: DurationMs = 10_000

export function* suspendSteps(task: SwappedTask, ground: SwapGround): Steps<Suspension> {
  const areHooksUsed = staysRunning(task) && !task.areHooksGivenUp
  const byHooks = areHooksUsed ? yield* suspendByHooks(task, ground) : null
  const suspension: Suspension = byHooks ?? {
    outcome: yield* ask({ kind: 'driver_out' }),
    method: 'driver',
    residualMib: 0,
  }
  if (suspension.outcome === 'done') {
    task.swappedOutBy = suspension.method
    task.residualMib = suspension.residualMib
  }
  return suspension
}

/** After these steps the caller tells a task that may be suspended to resume. */
export function* resumeSteps(task: SwappedTask, ground: SwapGround): Steps<SwapOutcome> {
  if (task.swappedOutBy === 'driver') return yield* ask({ kind: 'driver_in' })
  const hasRoom = yield* ask({ kind: 'has_free', mib: task.vramMib - task.residualMib })
  if (!hasRoom) return 'no_vram'
  return (yield* resumeByHooks(task, ground)) ? 'done' : 'copy_failed'
}

/**
 * A found task is in VRAM as far as known. If the device says otherwise, a suspend whose end no server saw is
 * undone; a task that was not told to suspend is not told to resume, which some cannot bear. Returns false if
 * its data is there: a suspend may be in progress yet.
 */
export function* undoSteps(task: SwappedTask, ground: SwapGround): Steps<boolean> {
  const mib = yield* ask({ kind: 'measure' })
  if (mib === null || !hasMovedOut(task, mib)) return false
  yield* resumeByHooks(task, ground)
  return true
}

/** Returns true if what it uses on a GPU is no more than a suspend may leave. */
export function hasMovedOut(task: SwappedTask, usedMib: Mib): boolean {
  return usedMib <= mostResidualMib(task)
}

/**
 * Of a task that took its data back while it is out, as one does whose resume was given up: it is told to
 * suspend again. Otherwise its own VRAM, which counts as foreign, could keep it from returning for ever; so
 * could what it does not leave this time, which counts as its rest.
 */
export function mayTellAgain(task: SwappedTask, usedMib: Mib, now: Instant): boolean {
  const isBack = 2 * surplusMib(task, usedMib) > task.vramMib - task.residualMib
  return isBack && (task.toldAgainAt === null || now >= task.toldAgainAt + deadlineFor(task) + TOLD_AGAIN_MS)
}

/** @returns what it has on each GPU anyway, at least 1 MiB less than its demand; null: nothing more */
export function* suspendAgain(task: SwappedTask, { now, note }: SwapGround): Steps<Mib | null> {
  task.toldAgainAt = now()
  note('it took its VRAM back while it was swapped out: it is told to suspend again')
  const answer = yield* ask({ kind: 'order', order: 'suspend', withinMs: deadlineFor(task) })
  if (answer.error !== null && !task.isEnded) note(`its suspend hook failed: ${answer.error}`)
  const mib = yield* ask({ kind: 'measure' })
  const restMib = Math.min(mib ?? 0, task.vramMib - 1)
  return restMib > task.residualMib ? restMib : null
}

export function* resumeByHooks(task: SwappedTask, { note }: SwapGround): Steps<boolean> {
  const answer = yield* ask({ kind: 'order', order: 'resume', withinMs: deadlineFor(task) })
  if (answer.error === null) task.mayBeSuspended = false
  else if (!task.isEnded) note(`its resume hook failed: ${answer.error}`)
  return answer.error === null
}

/** Its processes run while its bytes are not in VRAM, unless its hooks fail; others are stopped. */
export function staysRunning({ start: { swapMethod = 'driver' } }: Pick<SwappedTask, 'start'>): boolean {
  return swapMethod !== 'driver'
}

/**
 * Returns the VRAM on a GPU that a swapped-out task still uses although it reported less. This VRAM counts as
 * foreign. The task must have no swap in progress.
 */
export function surplusMib({ swappedOutBy, residualMib }: SwappedTask, usedMib: Mib): Mib {
  return swappedOutBy === 'driver' ? 0 : Math.max(0, usedMib - residualMib)
}

/** Null: its hooks failed, and the driver may try. */
function* suspendByHooks(task: SwappedTask, ground: SwapGround): Steps<Suspension | null> {
  const answer = yield* ask({ kind: 'order', order: 'suspend', withinMs: deadlineFor(task) })
  task.mayBeSuspended = answer.error === null || answer.isLate === true
  const method = task.start.swapMethod ?? 'hooks'
  if (task.isEnded) return { outcome: 'copy_failed', method, residualMib: 0 }
  if (answer.error !== null) return failed(task, ground, `its suspend hook failed: ${answer.error}`)
  const residualMib = (yield* measureUntilSmall(task, ground)) ?? answer.residentMib ?? 0
  if (residualMib <= mostResidualMib(task)) return { outcome: 'done', method, residualMib }
  yield* resumeByHooks(task, ground)
  return failed(task, ground, `its suspend hook left ${residualMib} MiB of ${task.vramMib} in VRAM`)
}

function* measureUntilSmall(task: SwappedTask, { now }: SwapGround): Steps<Mib | null> {
  const until = now() + MEASURE_FOR_MS
  for (;;) {
    const mib = yield* ask({ kind: 'measure' })
    if (mib === null || mib <= mostResidualMib(task) || now() >= until) return mib
    yield* ask({ kind: 'wait', ms: MEASURE_AGAIN_MS })
  }
}

function failed(task: SwappedTask, { now, note }: SwapGround, why: string): null {
  const at = now()
  task.hookFailures = [...task.hookFailures, at].filter((time) => time > at - FAILURES_COUNT_FOR_MS)
  task.areHooksGivenUp = task.hookFailures.length >= MAX_FAILURES
  const next = task.areHooksGivenUp ? 'The driver swaps it from now on' : 'The driver swaps it this time'
  note(`${why}. ${next}`)
  return null
}

/** A suspend that frees nothing has failed, however small the task is. */
function mostResidualMib({ vramMib }: SwappedTask): Mib {
  const bound = Math.max(MAX_RESIDUAL_MIB, Math.floor((vramMib * MAX_RESIDUAL_PERCENT) / 100))
  return Math.min(bound, vramMib - 1)
}

/** The time for an order to its hooks. */
export function deadlineFor({ vramMib }: SwappedTask): DurationMs {
  return Math.min(DEADLINE_MAX_MS, DEADLINE_FIXED_MS + Math.ceil((3 * vramMib * 1000) / SLOW_MIB_PER_S))
}

/** The device answers each step with what its kind says. */
function* ask<K extends keyof Answers>(step: Step & { readonly kind: K }): Steps<Answers[K]> {
  return (yield step) as Answers[K]
}
