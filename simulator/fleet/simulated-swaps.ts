/**
 * Moves tasks of a simulated device out of VRAM and back, by the rules of a real server: the driver's whole
 * copies, and hooks, which may misbehave. One transfer at a time per GPU, at the speed of the method.
 */
import type { Clock } from '../../controller/ports/clock.ts'
import { RANK_DEVICE } from '../../controller/ports/clock.ts'
import type { Suspended, SwapOutcome } from '../../gpu-server/core/device.ts'
import {
  mayTellAgain,
  resumeByHooks,
  resumeSteps,
  staysRunning,
  suspendAgain,
  suspendSteps,
} from '../../gpu-server/core/swap-steps.ts'
import type { Answer, HookAnswer, Step, Steps, SwapGround } from '../../gpu-server/core/swap-steps.ts'
import type { DurationMs, Instant, Mib, SwapMethod } from '../../protocol/units.ts'
import type { ScenarioNode } from '../scenario/scenario.ts'
import { swapDurationMs, type MethodProfile, type SwapProfile } from '../scenario/swap-profiles.ts'
import { CopyEngines } from './copy-engines.ts'
import type { DeviceTroubles, HookTrouble } from './device-troubles.ts'
import type { SimulatedProcess as Process } from './simulated-process.ts'

/** The rest of the device. */
export interface SwapSite {
  readonly clock: Clock
  readonly node: ScenarioNode
  readonly troubles: DeviceTroubles
  processes(): Iterable<Process>
  /** Free VRAM as a driver measures it. */
  freeMib(gpu: number): Mib
  /** It may have started or stopped running. */
  share(process: Process): void
  /** It is in VRAM again and may run. */
  returned(process: Process): void
  /** Its swap-out was cancelled. */
  stayed(process: Process): void
  /** It runs while its VRAM is away. */
  isOutAndRuns(process: Process): void
  exit(process: Process, detail: string): void
  /** A task uses VRAM that it said it had left, or no longer does. */
  surplusChanged(): void
  /** A task that was told again to leave VRAM still has this much on each GPU. */
  restStays(process: Process, mib: Mib): void
}

/** Hooks that answer late do so this long after the deadline. */
const LATE_BY_MS: DurationMs = 2_000
const IN_TIME: HookAnswer = { error: null, residentMib: 0 }
const TOO_LATE: HookAnswer = { error: 'it did not finish in time', isLate: true }

export class SimulatedSwaps {
  readonly #site: SwapSite
  readonly #copies: CopyEngines

  constructor(site: SwapSite) {
    this.#site = site
    this.#copies = new CopyEngines(site.node.gpuCount, site.node.hostLinkMibPerS ?? null)
  }

  suspend(process: Process, done: Suspended): void {
    if (!staysRunning(process)) return this.#driverOut(process, done)
    const wasGivenUp = process.areHooksGivenUp
    process.moves += 1
    process.isMoving = true
    this.#carryOut(process, suspendSteps(process, this.#ground), ({ outcome, method, residualMib }) => {
      process.isMoving = false
      const isByHooks = outcome === 'done' && method !== 'driver'
      if (outcome === 'done' && !isByHooks && !wasGivenUp) this.#site.troubles.fallbacks += 1
      if (process.areHooksGivenUp && !wasGivenUp) this.#site.troubles.hooksGivenUp += 1
      if (isByHooks) process.isInVram = false
      else if (outcome !== 'done') this.#stays(process)
      done(outcome, isByHooks ? { byHooks: true, residualMib } : {})
      if (isByHooks) this.#site.isOutAndRuns(process)
    })
  }

  resume(process: Process, done: (outcome: SwapOutcome) => void): void {
    process.moves += 1
    if (process.swappedOutBy === 'driver')
      return this.#driverIn(process, () => {
        process.isInVram = true
        process.isResident = true
        this.#site.share(process)
        done('done')
        this.#site.returned(process)
        if (process.mayBeSuspended) this.#carryOut(process, resumeByHooks(process, this.#ground), () => {})
      })
    process.isMoving = true
    this.#site.surplusChanged()
    this.#carryOut(process, resumeSteps(process, this.#ground), (outcome) => {
      process.isMoving = false
      if (outcome === 'done') {
        process.isInVram = process.isResident = true
        this.#site.share(process)
      } else this.#site.surplusChanged()
      done(outcome)
      if (outcome === 'done') this.#site.returned(process)
    })
  }

  /** It has VRAM although it is out. */
  measured(process: Process): void {
    if (!mayTellAgain(process, process.usedMib, this.#site.clock.now())) return
    this.#carryOut(process, suspendAgain(process, this.#ground), (mib) => {
      if (mib !== null) this.#site.restStays(process, mib)
    })
  }

  /** A new server adopts it: a swap in progress is undone, and nothing is known of its hooks. */
  adopted(process: Process): void {
    process.moves += 1
    process.isMoving = false
    process.mayBeSuspended = process.areHooksGivenUp = false
    process.hookFailures = []
    process.toldAgainAt = null
    // Hooks that were told to resume do so anyway: what is back then counts as foreign.
    if (process.isInVram) process.usedMib = process.vramMib
    else if (process.swappedOutBy === 'driver') process.usedMib = 0
    process.isResident = process.isInVram
    this.#site.share(process)
    if (staysRunning(process)) this.#site.clock.soon(() => this.#site.surplusChanged(), RANK_DEVICE)
  }

  get #ground(): SwapGround {
    return { now: () => this.#site.clock.now(), note: () => undefined }
  }

  #carryOut<Result>(process: Process, steps: Steps<Result>, then: (result: Result) => void): void {
    const go = (next: IteratorResult<Step, Result>): void => {
      if (next.done === true) return then(next.value)
      this.#take(next.value, process, (answer) => go(steps.next(answer)))
    }
    go(steps.next())
  }

  #take(step: Step, process: Process, answer: (answer: Answer) => void): void {
    const { clock } = this.#site
    switch (step.kind) {
      case 'order':
        if (step.order === 'suspend') return this.#orderOut(process, step.withinMs, answer)
        return this.#orderIn(process, step.withinMs, answer)
      case 'measure':
        return this.#at(clock.now(), process, () => answer(process.usedMib))
      case 'wait':
        return this.#at(clock.now() + step.ms, process, () => answer(undefined))
      case 'driver_out':
        return this.#driverOut(process, answer)
      case 'driver_in':
        return this.#driverIn(process, () => answer('done'))
      case 'has_free': {
        const isFree = process.gpus.every((gpu) => this.#site.freeMib(gpu) >= step.mib)
        return this.#at(clock.now(), process, () => answer(isFree))
      }
    }
  }

  // ── the driver ──────────────────────────────────────────────────────────────

  #driverOut(process: Process, done: (outcome: SwapOutcome) => void): void {
    const { clock, node, troubles } = this.#site
    const refuse = (outcome: SwapOutcome): void => clock.soon(() => done(outcome), RANK_DEVICE)
    if (node.gpu.driverSwaps === false) return refuse('not_swappable')
    if (!troubles.hasHostRoom(process, this.#site.processes(), node)) return refuse('no_host_memory')
    // Locked: it does not run from now on. The copy begins when the copy engine is free.
    const beginsAt = this.#copies.freeAt(process.gpus, clock.now())
    const wasBusy = process.isBusy
    const move = ++process.moves
    process.isResident = false
    this.#site.share(process)
    const copy = (): void => {
      if (process.isEnded || process.moves !== move) return
      if (process.isBusy && !wasBusy) {
        process.isResident = true
        this.#site.share(process)
        done('woke_while_locked')
        this.#site.stayed(process)
        return
      }
      process.isStill = node.signalsWanted === false
      this.#afterTransfer(process, 'out', node.gpu.swap, process.vramMib, () => {
        process.isInVram = false
        process.usedMib = 0
        done('done')
      })
    }
    if (beginsAt <= clock.now()) copy()
    else clock.at(beginsAt, copy, RANK_DEVICE)
  }

  #driverIn(process: Process, then: () => void): void {
    process.usedMib = process.vramMib
    this.#afterTransfer(process, 'in', this.#site.node.gpu.swap, process.vramMib, then)
  }

  // ── hooks ───────────────────────────────────────────────────────────────────

  #orderOut(process: Process, withinMs: DurationMs, answer: (answer: HookAnswer) => void): void {
    const { clock, troubles, node } = this.#site
    const now = clock.now()
    const trouble = troubles.hookTrouble()
    process.isResident = false
    this.#site.share(process)
    if (!troubles.hasHostRoom(process, this.#site.processes(), node))
      return this.#at(now, process, () => answer({ error: 'there is no host memory' }))
    if (this.#misbehaves(process, trouble, withinMs, answer)) return
    const profile = this.#profileOf(process)
    const keepsMib = trouble === null ? profile.residualMib : (trouble.keepsMib ?? process.vramMib)
    const keptMib = Math.min(process.vramMib, keepsMib)
    this.#carryOutOrder(process, 'out', process.vramMib - keptMib, withinMs, (said) => {
      if (said === IN_TIME) process.usedMib = keptMib
      if (!process.isInVram) this.#site.surplusChanged()
      answer(said)
    })
  }

  #orderIn(process: Process, withinMs: DurationMs, answer: (answer: HookAnswer) => void): void {
    const { clock, troubles } = this.#site
    const now = clock.now()
    const trouble = troubles.hookTrouble()
    if (trouble?.kind === 'hook_late') this.#takesBackAt(now + withinMs + LATE_BY_MS, process)
    if (this.#misbehaves(process, trouble, withinMs, answer)) return
    const backMib = process.vramMib - process.usedMib
    process.usedMib = process.vramMib
    this.#carryOutOrder(process, 'in', backMib, withinMs, answer)
  }

  /** The copies of a GPU are one after the other; the time of those before does not count. */
  #carryOutOrder(
    process: Process,
    direction: 'out' | 'in',
    mib: Mib,
    withinMs: DurationMs,
    answer: (answer: HookAnswer) => void,
  ): void {
    const { swap } = this.#profileOf(process)
    const lateAt = this.#copies.freeAt(process.gpus, this.#site.clock.now()) + withinMs
    const endsAt = this.#transfer(process, direction, swap, mib)
    if (endsAt > lateAt) this.#copies.giveUpAt(process.gpus, lateAt)
    this.#at(Math.min(endsAt, lateAt), process, () => answer(endsAt > lateAt ? TOO_LATE : IN_TIME))
  }

  /** It does not do what it was told, and says so, or nothing. */
  #misbehaves(
    process: Process,
    trouble: HookTrouble | null,
    withinMs: DurationMs,
    answer: (answer: HookAnswer) => void,
  ): boolean {
    const now = this.#site.clock.now()
    switch (trouble?.kind) {
      case 'hook_hangs':
      case 'hook_late':
        this.#at(now + withinMs, process, () => answer(TOO_LATE))
        return true
      case 'hook_errs':
        this.#at(now, process, () => answer({ error: 'it answered 500' }))
        return true
      case 'hook_dies':
        this.#at(now + 1, process, () => this.#site.exit(process, 'it crashed in its swap hook'))
        return true
      case 'hook_lies':
      case undefined:
        return false
    }
  }

  /** It carries the order out when its server has given up, if its VRAM is still free. */
  #takesBackAt(at: Instant, process: Process): void {
    this.#site.clock.at(
      at,
      () => {
        if (process.isEnded || process.isInVram || process.isMoving || process.swappedOutBy === 'driver')
          return
        const mib = process.vramMib - process.usedMib
        if (!process.gpus.every((gpu) => this.#site.freeMib(gpu) >= mib)) return
        process.usedMib = process.vramMib
        this.#site.surplusChanged()
      },
      RANK_DEVICE,
    )
  }

  #profileOf({ start }: Process): MethodProfile {
    const { gpu } = this.#site.node
    const method: SwapMethod = start.swapMethod ?? 'driver'
    const own = method === 'driver' ? undefined : gpu.swapMethods?.[method]
    return own ?? { swap: gpu.swap, residualMib: 0 }
  }

  #stays(process: Process): void {
    process.isResident = true
    process.usedMib = process.vramMib
    this.#site.share(process)
    this.#site.stayed(process)
  }

  // ── transfers ───────────────────────────────────────────────────────────────

  /** Calls `then` when its bytes have moved, unless another change came first. */
  #afterTransfer(
    process: Process,
    direction: 'out' | 'in',
    swap: SwapProfile,
    mib: Mib,
    then: () => void,
  ): void {
    this.#at(this.#transfer(process, direction, swap, mib), process, then)
  }

  #transfer(process: Process, direction: 'out' | 'in', swap: SwapProfile, mib: Mib): Instant {
    const fixedMs = direction === 'out' ? swap.outFixedMs : swap.inFixedMs
    const copyMs = this.#site.troubles.slowed(swapDurationMs(swap, direction, mib)) - fixedMs
    return this.#copies.take(process.gpus, this.#site.clock.now(), mib, fixedMs, copyMs)
  }

  #at(at: Instant, process: Process, then: () => void): void {
    const move = process.moves
    this.#site.clock.at(at, () => !process.isEnded && process.moves === move && then(), RANK_DEVICE)
  }
}
