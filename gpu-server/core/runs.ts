/** The life of an attempt on the device, from launch to exit, and its reports to the controller. */
import type { StartRefused } from '../../protocol/message-fields.ts'
import type { FinishedEvent } from '../../protocol/messages.ts'
import type { DurationMs } from '../../protocol/units.ts'
import type { Attempt } from './attempt.ts'
import type { AttemptEnd, Launched, LaunchRequest } from './device.ts'
import { detailOf, finishedBy } from './finished.ts'
import type { Growths } from './growths.ts'
import type { Parts } from './parts.ts'

type Outcome = FinishedEvent['outcome']

/** A launch without what this server does itself: it hears of the use. */
export type Launch = Omit<LaunchRequest, 'onUse'>

export class Runs {
  readonly #parts: Parts
  readonly #growths: Growths
  /** Schedules the sending of the outbox. */
  readonly #send: () => void

  constructor(parts: Parts, growths: Growths, send: () => void) {
    this.#parts = parts
    this.#growths = growths
    this.#send = send
  }

  /** Counts its VRAM from now on. The caller has checked that it fits and is durable. */
  launch(attempt: Attempt, request: Launch): void {
    const { tasks, ledger, device } = this.#parts
    tasks.add(attempt)
    ledger.enterVram(attempt, attempt.vramMib)
    const onUse = (wantsGpu: boolean, idleMs: DurationMs): void => this.#used(attempt, wantsGpu, idleMs)
    device.launch({ ...request, onUse }, (launched) => this.#launched(attempt, launched))
  }

  /**
   * The device ends the attempt, which is over when the device reports so. A stop with a grace can still
   * become immediate.
   */
  stop(attempt: Attempt, endsAs: 'stopped' | 'lease_ended', graceMs: DurationMs): void {
    if (attempt.endsAs !== null && !(attempt.hasGrace && graceMs === 0)) return
    attempt.endsAs = endsAs
    attempt.hasGrace = graceMs > 0
    this.#parts.device.stop(attempt.taskId, attempt.attempt, graceMs)
  }

  freeze(attempt: Attempt): void {
    if (attempt.isFrozen) return
    attempt.isFrozen = true
    this.#parts.device.freeze(attempt.taskId, attempt.attempt)
  }

  thaw(attempt: Attempt): void {
    // An attempt that ends without a grace never runs again: it may already run on another node.
    if (!attempt.isFrozen || (attempt.endsAs !== null && !attempt.hasGrace)) return
    attempt.isFrozen = false
    this.#parts.device.thaw(attempt.taskId, attempt.attempt)
  }

  exited(taskId: string, attemptNumber: number, end: AttemptEnd): void {
    const attempt = this.#parts.tasks.find(taskId, attemptNumber)
    if (attempt !== null) this.#end(attempt, finishedBy(end, attempt.endsAs), end.exitCode, end.detail)
  }

  /** The task wants the GPU, or became idle and last used the GPU `idleMs` ago. */
  used(taskId: string, attemptNumber: number, wantsGpu: boolean, idleMs: DurationMs): void {
    const attempt = this.#parts.tasks.find(taskId, attemptNumber)
    if (attempt !== null) this.#used(attempt, wantsGpu, idleMs)
  }

  /** Use is not reported before `started`. */
  #used(attempt: Attempt, wantsGpu: boolean, idleMs: DurationMs): void {
    const { clock, durable, emit } = this.#parts
    if (!attempt.isHere || attempt.residency === 'none') return
    const usedAt = clock.now() - idleMs
    const isNews = attempt.wantsGpu !== wantsGpu || (!wantsGpu && usedAt > attempt.lastUseAt)
    if (!isNews) return
    attempt.wantsGpu = wantsGpu
    attempt.lastUseAt = usedAt
    if (attempt.residency !== 'resident') durable.keep(attempt)
    emit({
      n: 0,
      kind: wantsGpu ? 'gpu_wanted' : 'gpu_used',
      task_id: attempt.taskId,
      attempt: attempt.attempt,
      idle_ms: idleMs,
    })
  }

  #launched(attempt: Attempt, launched: Launched): void {
    const { clock, device, durable, emit } = this.#parts
    if (!attempt.isHere || attempt.residency !== 'none') return
    if (launched.error !== null)
      return this.#end(attempt, attempt.endsAs ?? 'failed', null, launched.error, launched.refused)
    attempt.residency = 'resident'
    attempt.generation = 1
    attempt.wantsGpu = launched.wantsGpu
    attempt.lastUseAt = clock.now()
    durable.keep(attempt)
    durable.persist()
    // The lease ended during the launch, before there was a process to freeze.
    if (attempt.isFrozen) device.freeze(attempt.taskId, attempt.attempt)
    emit({
      n: 0,
      kind: 'started',
      task_id: attempt.taskId,
      attempt: attempt.attempt,
      wants_gpu: launched.wantsGpu,
      ...(launched.imageDigest === undefined ? {} : { image_digest: launched.imageDigest }),
    })
    this.#growths.settle(attempt)
  }

  #end(
    attempt: Attempt,
    outcome: Outcome,
    exitCode: number | null,
    detail: string | null,
    refused?: StartRefused,
  ): void {
    const { device, durable, ledger, tasks } = this.#parts
    tasks.remove(attempt)
    ledger.leaveVram(attempt)
    ledger.leaveHost(attempt)
    this.#growths.forget(attempt)
    this.#growths.vramFreed()
    const { taskId, attempt: number, isStartAcknowledged } = attempt
    const said = detailOf(outcome, detail, isStartAcknowledged)
    const end = {
      kind: 'finished',
      task_id: taskId,
      attempt: number,
      outcome,
      exit_code: exitCode,
      detail: said,
    } as const
    // An attempt that was stopped before it started ended by the stop, even if something else failed too.
    const finished = refused === undefined || outcome !== 'failed' ? end : { ...end, start_refused: refused }
    if (durable.addFinished(finished)) device.forget(taskId, number)
    this.#send()
  }
}
