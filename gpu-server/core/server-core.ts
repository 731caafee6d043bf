/**
 * The core of a GPU server: the same state machine on a GPU host and in the simulator. Commands and device reports come in, device calls
 * and messages go out; protocol rules R1 to R12 are kept here (docs/protocol.md).
 */
import type {
  AttemptRef,
  Boot,
  Command,
  CommandResult,
  Envelope,
  GrantCommand,
  NodeBody,
  RefusalReason,
  StartCommand,
  StopCommand,
  SwapCommand,
} from '../../protocol/messages.ts'
import { PROTOCOL_VERSION } from '../../protocol/messages.ts'
import { nodeSubject } from '../../protocol/subjects.ts'
import type { DurationMs, Instant, Mib } from '../../protocol/units.ts'
import type { Bus, Reply } from '../../controller/ports/bus.ts'
import type { Clock } from '../../controller/ports/clock.ts'
import { RANK_MESSAGE } from '../../controller/ports/clock.ts'
import type { RandomStream } from '../../controller/ports/random.ts'
import type { Attempt } from './attempt.ts'
import { newAttempt, reportOf } from './attempt.ts'
import type { Device, SwapOutcome } from './device.ts'
import { Ledger } from './ledger.ts'
import { RunLease } from './lease.ts'
import type { Outgoing } from './outbox.ts'
import { Outbox } from './outbox.ts'
import { SeenAttempts } from './seen-attempts.ts'
import type { NodeStorage } from './storage.ts'

export interface ServerCoreOptions {
  readonly nodeId: string
  readonly name: string
  readonly address: string
  readonly hostSwapMib: Mib
  /** Tasks on this device can say that they want the GPU. */
  readonly signalsWanted: boolean
  readonly clock: Clock
  readonly random: RandomStream
  readonly bus: Bus
  readonly device: Device
  readonly storage: NodeStorage
  /** Heartbeats that change nothing are not enacted (simulation between faults). */
  readonly areHeartbeatsElided: boolean
}

/** Wait for an answer this long, then try again with the same message. */
const ANSWER_WITHIN_MS: DurationMs = 5_000
const RETRY_FIRST_MS: DurationMs = 250
const RETRY_MAX_MS: DurationMs = 10_000

export class ServerCore {
  readonly #o: ServerCoreOptions
  readonly #attempts = new Map<string, Attempt>()
  readonly #seen: SeenAttempts
  readonly #outbox = new Outbox()
  readonly #lease: RunLease
  readonly #ledger: Ledger
  readonly #boot: Boot
  readonly #bootedAt: Instant
  readonly #subjects: { hello: string; heartbeat: string; event: string; command: string }
  readonly #flush = (): void => this.#flushOutbox()
  #seq = 0
  #highestEpoch: number
  #heartbeatMs: DurationMs = 5_000
  #isFlushPlanned = false
  #isFlushing = false
  #isWelcome = false
  #isStopped = false
  #unsubscribe: () => void = () => {}
  #cancelHeartbeat: () => void = () => {}
  #cancelLeaseEnd: () => void = () => {}

  constructor(options: ServerCoreOptions) {
    this.#o = options
    const state = options.storage.load()
    this.#boot = { counter: state.bootCounter + 1, random: bootRandom(options.random) }
    this.#highestEpoch = state.highestEpoch
    this.#seen = new SeenAttempts(state.attempts)
    this.#bootedAt = options.clock.now()
    this.#lease = new RunLease(options.areHeartbeatsElided)
    this.#ledger = new Ledger(options.device.gpus(), options.hostSwapMib, 0)
    const subject = (verb: 'hello' | 'heartbeat' | 'event' | 'command') => nodeSubject(options.nodeId, verb)
    this.#subjects = { hello: subject('hello'), heartbeat: subject('heartbeat'), event: subject('event'), command: subject('command') }
    this.#save()
    options.device.observe({
      exited: (taskId, attempt, exitCode, detail) => this.#exited(taskId, attempt, exitCode, detail),
      gpuWanted: (taskId, attempt) => this.#use(taskId, attempt, true, 0),
      gpuUsed: (taskId, attempt, idleMs) => this.#use(taskId, attempt, false, idleMs),
      allocationWanted: (taskId, attempt, mib) => this.#allocationWanted(taskId, attempt, mib),
    })
  }

  /** Listens for commands and says hello until it is welcome. */
  start(): void {
    this.#unsubscribe = this.#o.bus.subscribe(this.#subjects.command, (message, _subject, reply) => this.#command(message, reply))
    this.#hello(RETRY_FIRST_MS)
  }

  /** The process ends; tasks live on under their guards (R4). */
  stop(): void {
    this.#isStopped = true
    this.#unsubscribe()
    this.#cancelHeartbeat()
    this.#cancelLeaseEnd()
  }

  // ── towards the controller ──────────────────────────────────────────────────

  #hello(retryMs: DurationMs): void {
    const sent = this.#envelope({
      op: 'hello',
      node_id: this.#o.nodeId,
      name: this.#o.name,
      address: this.#o.address,
      gpus: this.#o.device.gpus(),
      host_swap_mib: this.#o.hostSwapMib,
      signals_wanted: this.#o.signalsWanted,
      tasks: this.#reports(),
      finished_unacked: this.#finishedUnacked(),
    })
    this.#o.bus.request(this.#subjects.hello, sent, ANSWER_WITHIN_MS, (outcome) => {
      if (this.#isStopped) return
      if (outcome.answered && outcome.answer.body.op === 'welcome') {
        const { settings, stop } = outcome.answer.body
        this.#heard(outcome.answer.epoch)
        this.#isWelcome = true
        this.#applySettings(settings, sent.sent_mono)
        this.#endAttempts(stop)
        this.#planHeartbeat()
        this.#planFlush()
        return
      }
      this.#o.clock.at(this.#o.clock.now() + this.#jittered(retryMs), () => this.#hello(Math.min(2 * retryMs, RETRY_MAX_MS)), RANK_MESSAGE)
    })
  }

  #planHeartbeat(): void {
    if (this.#o.areHeartbeatsElided) return
    this.#cancelHeartbeat()
    this.#cancelHeartbeat = this.#o.clock.at(this.#o.clock.now() + this.#jittered(this.#heartbeatMs), () => this.#heartbeat(), RANK_MESSAGE)
  }

  #heartbeat(): void {
    if (this.#isStopped) return
    const sent = this.#envelope({
      op: 'heartbeat',
      node_id: this.#o.nodeId,
      gpus: this.#o.device.gpus(),
      tasks: this.#reports(),
      finished_unacked: this.#finishedUnacked(),
    })
    this.#planHeartbeat()
    this.#o.bus.request(this.#subjects.heartbeat, sent, this.#heartbeatMs, (outcome) => {
      if (this.#isStopped || !outcome.answered) return
      const { body, epoch } = outcome.answer
      if (body.op === 'lease') {
        this.#heard(epoch)
        this.#applySettings(body.settings, sent.sent_mono)
        this.#endAttempts(body.stop)
      } else if (body.op === 'refused' && body.reason === 'unknown_node') this.#hello(RETRY_FIRST_MS)
    })
  }

  #applySettings(settings: { heartbeat_ms: DurationMs; run_lease_ms: DurationMs; safety_reserve_mib: Mib }, sentMono: number): void {
    this.#heartbeatMs = settings.heartbeat_ms
    this.#ledger.reserveMib = settings.safety_reserve_mib
    this.#lease.grant(sentMono, settings.run_lease_ms)
    for (const attempt of this.#attempts.values()) {
      if (!attempt.isFrozen) continue
      attempt.isFrozen = false
      this.#o.device.thaw(attempt.taskId, attempt.attempt)
    }
    this.#planLeaseEnd(settings.run_lease_ms)
  }

  /** At the lease's end the tasks of impatient policies freeze; after another lease they end (R4). */
  #planLeaseEnd(lengthMs: DurationMs): void {
    if (this.#o.areHeartbeatsElided) return
    this.#cancelLeaseEnd()
    const endsAt = this.#bootedAt + this.#lease.untilMono
    this.#cancelLeaseEnd = this.#o.clock.at(endsAt, () => {
      for (const attempt of this.#impatient()) {
        attempt.isFrozen = true
        this.#o.device.freeze(attempt.taskId, attempt.attempt)
      }
      this.#cancelLeaseEnd = this.#o.clock.at(endsAt + lengthMs, () => {
        for (const attempt of this.#impatient()) this.#end(attempt, 'lease_ended', null, 'the run lease ended')
      }, RANK_MESSAGE)
    }, RANK_MESSAGE)
  }

  #impatient(): Attempt[] {
    return [...this.#attempts.values()].filter((attempt) => attempt.onNodeLoss !== 'wait' || !attempt.isStartAcknowledged)
  }

  #emit(event: Outgoing): void {
    this.#outbox.add(event)
    this.#planFlush()
  }

  #planFlush(): void {
    if (this.#isFlushPlanned || this.#isFlushing || !this.#isWelcome || this.#outbox.isEmpty) return
    this.#isFlushPlanned = true
    this.#o.clock.at(this.#o.clock.now(), this.#flush, RANK_MESSAGE)
  }

  #flushOutbox(): void {
    this.#isFlushPlanned = false
    if (this.#outbox.isEmpty || this.#isStopped) return
    this.#isFlushing = true
    const entries = this.#outbox.head()
    this.#sendEvents(this.#envelope({ op: 'events', node_id: this.#o.nodeId, entries }), RETRY_FIRST_MS)
  }

  #sendEvents(message: Envelope<NodeBody>, retryMs: DurationMs): void {
    this.#o.bus.request(this.#subjects.event, message, ANSWER_WITHIN_MS, (outcome) => {
      if (this.#isStopped) return
      if (outcome.answered && outcome.answer.body.op === 'events_ack') {
        this.#isFlushing = false
        this.#heard(outcome.answer.epoch)
        for (const entry of this.#outbox.acknowledge(outcome.answer.body.up_to)) {
          if (entry.kind !== 'started') continue
          const attempt = this.#attempts.get(entry.task_id)
          if (attempt?.attempt === entry.attempt) attempt.isStartAcknowledged = true
        }
        this.#planFlush()
        return
      }
      const again = () => this.#sendEvents(message, Math.min(2 * retryMs, RETRY_MAX_MS))
      this.#o.clock.at(this.#o.clock.now() + this.#jittered(retryMs), again, RANK_MESSAGE)
    })
  }

  // ── commands ────────────────────────────────────────────────────────────────

  #command(message: Envelope, reply: Reply): void {
    const { body } = message
    if (this.#isStopped || !isCommand(body)) return
    const refusal = this.#refusalOf(message.epoch, body)
    if (refusal === null && message.epoch > this.#highestEpoch) {
      this.#highestEpoch = message.epoch
      this.#save()
    }
    reply(this.#envelope(refusal === null ? this.#obey(body) : this.#refuse(body, refusal)))
  }

  /** R3: obeyed only by the newest epoch, for this boot, and in time by this server's own clock. */
  #refusalOf(epoch: number, command: Command): RefusalReason | null {
    if (epoch < this.#highestEpoch) return 'stale_epoch'
    if (command.node_boot.counter !== this.#boot.counter || command.node_boot.random !== this.#boot.random) return 'other_boot'
    if (this.#mono() > command.valid_until_mono) return 'expired'
    return null
  }

  #obey(command: Command): CommandResult {
    if (command.op === 'start') return this.#startTask(command)
    const attempt = this.#attempts.get(command.task_id)
    if (attempt === undefined || attempt.attempt !== command.attempt) return this.#unknownAttempt(command)
    switch (command.op) {
      case 'stop':
        return this.#stopTask(command, attempt)
      case 'swap_out':
        return this.#swapOut(command, attempt)
      case 'swap_in':
        return this.#swapIn(command, attempt)
      case 'grant':
      case 'refuse_growth':
        return this.#answerGrowth(command, attempt)
      case 'set_noswap':
        attempt.noswap = command.noswap
        return this.#result(command, 'accepted', null, attempt)
    }
  }

  #startTask(command: StartCommand): CommandResult {
    const known = this.#attempts.get(command.task_id)
    if (known?.attempt === command.attempt) return this.#result(command, 'running', null, known)
    if (command.attempt <= this.#seen.highest(command.task_id)) return this.#unknownAttempt(command)
    if (!this.#lease.holds(this.#mono())) return this.#burn(command, 'no_lease')
    if (!command.gpus.every((gpu) => this.#ledger.has(gpu))) return this.#burn(command, 'unknown_gpu')
    if (known !== undefined || !this.#ledger.fits(command.gpus, command.vram_mib)) return this.#burn(command, 'no_vram')
    this.#seen.add(command.task_id, command.attempt)
    this.#save()
    const attempt = newAttempt(command, this.#o.clock.now())
    this.#attempts.set(command.task_id, attempt)
    this.#ledger.addResident(attempt.gpus, attempt.vramMib)
    this.#o.device.launch(
      {
        taskId: attempt.taskId,
        attempt: attempt.attempt,
        gpus: attempt.gpus,
        vramMib: attempt.vramMib,
        gpuMode: command.gpu_mode,
        command: command.command,
      },
      (launched) => {
        if (launched.error !== null) this.#end(attempt, 'failed', null, launched.error)
        else this.#launched(attempt, launched.wantsGpu)
      },
    )
    return this.#result(command, 'accepted', null, attempt)
  }

  #launched(attempt: Attempt, wantsGpu: boolean): void {
    if (this.#attempts.get(attempt.taskId) !== attempt) return
    attempt.residency = 'resident'
    attempt.generation = 1
    attempt.wantsGpu = wantsGpu
    attempt.lastUseAt = this.#o.clock.now()
    this.#emit({ kind: 'started', task_id: attempt.taskId, attempt: attempt.attempt, wants_gpu: wantsGpu })
  }

  #stopTask(command: StopCommand, attempt: Attempt): CommandResult {
    attempt.isStopping = true
    this.#o.device.stop(attempt.taskId, attempt.attempt)
    return this.#result(command, 'accepted', null, attempt)
  }

  #swapOut(command: SwapCommand, attempt: Attempt): CommandResult {
    if (attempt.residency === 'swapping_out') return this.#result(command, 'accepted', null, attempt)
    const bytes = attempt.vramMib * attempt.gpus.length
    const refusal: RefusalReason | null =
      attempt.noswap === 1
        ? 'noswap'
        : command.generation !== attempt.generation
          ? 'stale_generation'
          : attempt.residency !== 'resident'
            ? 'contrary'
            : attempt.wantsGpu && !command.force_active
              ? 'wants_gpu'
              : this.#ledger.fitsHost(bytes)
                ? null
                : 'no_host_memory'
    if (refusal !== null) return this.#result(command, 'refused', refusal, attempt)
    attempt.residency = 'swapping_out'
    this.#ledger.addHost(bytes)
    this.#o.device.suspend(attempt.taskId, attempt.attempt, (outcome) => this.#suspended(attempt, outcome))
    return this.#result(command, 'accepted', null, attempt)
  }

  #suspended(attempt: Attempt, outcome: SwapOutcome): void {
    if (this.#attempts.get(attempt.taskId) !== attempt) return
    attempt.residency = outcome === 'done' ? 'swapped_out' : 'resident'
    if (outcome === 'done') this.#ledger.addResident(attempt.gpus, -attempt.vramMib)
    else this.#ledger.addHost(-attempt.vramMib * attempt.gpus.length)
    this.#reportResidency(attempt, outcome)
  }

  #swapIn(command: SwapCommand, attempt: Attempt): CommandResult {
    if (attempt.residency === 'swapping_in') return this.#result(command, 'accepted', null, attempt)
    const refusal: RefusalReason | null =
      command.generation !== attempt.generation
        ? 'stale_generation'
        : attempt.residency !== 'swapped_out'
          ? 'contrary'
          : this.#ledger.fits(attempt.gpus, attempt.vramMib)
            ? null
            : 'no_vram'
    if (refusal !== null) return this.#result(command, 'refused', refusal, attempt)
    attempt.residency = 'swapping_in'
    this.#ledger.addResident(attempt.gpus, attempt.vramMib)
    this.#o.device.resume(attempt.taskId, attempt.attempt, (outcome) => this.#resumed(attempt, outcome))
    return this.#result(command, 'accepted', null, attempt)
  }

  #resumed(attempt: Attempt, outcome: SwapOutcome): void {
    if (this.#attempts.get(attempt.taskId) !== attempt) return
    attempt.residency = outcome === 'done' ? 'resident' : 'swapped_out'
    if (outcome === 'done') this.#ledger.addHost(-attempt.vramMib * attempt.gpus.length)
    else this.#ledger.addResident(attempt.gpus, -attempt.vramMib)
    this.#reportResidency(attempt, outcome)
  }

  #reportResidency(attempt: Attempt, outcome: SwapOutcome): void {
    attempt.generation += 1
    this.#emit({
      kind: 'residency',
      task_id: attempt.taskId,
      attempt: attempt.attempt,
      residency: attempt.residency,
      generation: attempt.generation,
      because: outcome === 'done' ? null : outcome,
    })
  }

  #answerGrowth(command: GrantCommand, attempt: Attempt): CommandResult {
    const isGranted = command.op === 'grant'
    if (isGranted) {
      const byMib = command.mib - attempt.vramMib
      if (attempt.residency === 'resident' && !this.#ledger.fits(attempt.gpus, byMib)) return this.#result(command, 'refused', 'no_vram', attempt)
      if (attempt.residency !== 'swapped_out') this.#ledger.addResident(attempt.gpus, byMib)
      if (attempt.residency !== 'resident') this.#ledger.addHost(byMib * attempt.gpus.length)
      attempt.vramMib = command.mib
    }
    this.#o.device.answerAllocation(attempt.taskId, attempt.attempt, command.mib, isGranted)
    return this.#result(command, 'accepted', null, attempt)
  }

  /** R7: what this server knows of an attempt that does not live here. A stop of one never seen burns it. */
  #unknownAttempt(command: Command): CommandResult {
    const { task_id, attempt } = command
    const isReported = this.#outbox.entries().some((entry) => entry.kind === 'finished' && entry.task_id === task_id && entry.attempt === attempt)
    if (isReported) return this.#result(command, 'finished', null, null)
    if (attempt <= this.#seen.highest(task_id)) return this.#result(command, this.#seen.isBurned(task_id, attempt) ? 'never_seen' : 'gone', null, null)
    this.#seen.burn(task_id, attempt)
    this.#save()
    return this.#result(command, 'never_seen', null, null)
  }

  /** A refused start is persisted as seen: this attempt never starts here (R3). */
  #burn(command: StartCommand, reason: RefusalReason): CommandResult {
    this.#seen.burn(command.task_id, command.attempt)
    this.#save()
    return this.#result(command, 'refused', reason, null)
  }

  #refuse(command: Command, reason: RefusalReason): CommandResult {
    if (command.op === 'start' && !this.#attempts.has(command.task_id) && command.attempt > this.#seen.highest(command.task_id)) {
      return this.#burn(command, reason)
    }
    return this.#result(command, 'refused', reason, this.#attempts.get(command.task_id) ?? null)
  }

  #result(command: Command, outcome: CommandResult['outcome'], reason: RefusalReason | null, attempt: Attempt | null): CommandResult {
    return {
      op: 'result',
      task_id: command.task_id,
      attempt: command.attempt,
      outcome,
      reason,
      residency: attempt?.residency ?? 'none',
      generation: attempt?.generation ?? 0,
    }
  }

  // ── what the device says ────────────────────────────────────────────────────

  #exited(taskId: string, attemptNumber: number, exitCode: number | null, detail: string | null): void {
    const attempt = this.#attempts.get(taskId)
    if (attempt?.attempt !== attemptNumber) return
    const outcome = attempt.isStopping ? 'stopped' : exitCode === 0 ? 'completed' : exitCode === null ? 'lost' : 'failed'
    this.#end(attempt, outcome, exitCode, detail)
  }

  #end(attempt: Attempt, outcome: 'completed' | 'failed' | 'stopped' | 'lease_ended' | 'lost', exitCode: number | null, detail: string | null): void {
    if (outcome === 'lease_ended') this.#o.device.stop(attempt.taskId, attempt.attempt)
    this.#attempts.delete(attempt.taskId)
    if (attempt.residency !== 'swapped_out') this.#ledger.addResident(attempt.gpus, -attempt.vramMib)
    if (attempt.residency !== 'resident' && attempt.residency !== 'none') this.#ledger.addHost(-attempt.vramMib * attempt.gpus.length)
    this.#emit({ kind: 'finished', task_id: attempt.taskId, attempt: attempt.attempt, outcome, exit_code: exitCode, detail })
  }

  #use(taskId: string, attemptNumber: number, wantsGpu: boolean, idleMs: DurationMs): void {
    const attempt = this.#attempts.get(taskId)
    if (attempt?.attempt !== attemptNumber || attempt.wantsGpu === wantsGpu) return
    attempt.wantsGpu = wantsGpu
    attempt.lastUseAt = this.#o.clock.now() - idleMs
    this.#emit({ kind: wantsGpu ? 'gpu_wanted' : 'gpu_used', task_id: taskId, attempt: attemptNumber, idle_ms: idleMs })
  }

  #allocationWanted(taskId: string, attemptNumber: number, mib: Mib): void {
    const attempt = this.#attempts.get(taskId)
    if (attempt?.attempt !== attemptNumber) return
    this.#emit({ kind: 'allocation_wanted', task_id: taskId, attempt: attemptNumber, mib })
  }

  #endAttempts(refs: readonly AttemptRef[]): void {
    for (const ref of refs) {
      const attempt = this.#attempts.get(ref.task_id)
      if (attempt?.attempt !== ref.attempt) continue
      attempt.isStopping = true
      this.#o.device.stop(ref.task_id, ref.attempt)
    }
  }

  // ── small things ────────────────────────────────────────────────────────────

  #reports(): ReturnType<typeof reportOf>[] {
    const now = this.#o.clock.now()
    return [...this.#attempts.values()].map((attempt) => reportOf(attempt, now))
  }

  #finishedUnacked(): AttemptRef[] {
    return this.#outbox
      .entries()
      .filter((entry) => entry.kind === 'finished')
      .map((entry) => ({ task_id: entry.task_id, attempt: entry.attempt }))
  }

  #heard(epoch: number): void {
    if (epoch <= this.#highestEpoch) return
    this.#highestEpoch = epoch
    this.#save()
  }

  #save(): void {
    this.#o.storage.save({ bootCounter: this.#boot.counter, highestEpoch: this.#highestEpoch, attempts: this.#seen.all() })
  }

  #mono(): number {
    return this.#o.clock.now() - this.#bootedAt
  }

  #envelope<B extends NodeBody>(body: B): Envelope<B> {
    const seq = ++this.#seq
    return { v: PROTOCOL_VERSION, id: `${this.#boot.counter}.${seq}`, sent_mono: this.#mono(), boot: this.#boot, seq, epoch: this.#highestEpoch, body }
  }

  /** ± 20 %, so that a thousand servers do not speak at once (R11). */
  #jittered(ms: DurationMs): DurationMs {
    return Math.floor(ms * (0.8 + 0.4 * this.#o.random()))
  }
}

function isCommand(body: Envelope['body']): body is Command {
  return 'valid_until_mono' in body
}

function bootRandom(random: RandomStream): string {
  return Math.floor(random() * 4294967296).toString(16).padStart(8, '0')
}
