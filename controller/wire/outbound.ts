/**
 * Effects become commands: requests repeated with the same id until they are answered, one in flight per task
 * and a bounded number per node (R11). A command that the node could not yet carry out is sent again.
 */
import type { Mutable } from '../../protocol/fields.ts'
import type { ControllerBody, Envelope } from '../../protocol/envelope.ts'
import type { Command, CommandResult, PrepareCommand, RefusalReason } from '../../protocol/messages.ts'
import type { StartCommand } from '../../protocol/start-command.ts'
import { nodeSubject } from '../../protocol/subjects.ts'
import type { DurationMs, Mib } from '../../protocol/units.ts'
import { surroundingsIn } from '../../protocol/task-body.ts'
import type { TaskEnvironment } from '../../protocol/task.ts'
import type { EnvironmentValues } from '../model/environment-values.ts'
import type { Effect, PrepareEffect, StartEffect } from '../model/effect.ts'
import type { PendingIds, PendingRestorer } from '../ports/pending-ids.ts'
import { limitsRecordOf } from '../../protocol/resource-limits.ts'
import type { Bus, RequestOutcome } from '../ports/bus.ts'
import type { CancelTimer, Clock, TimerId } from '../ports/clock.ts'
import { RANK_MESSAGE } from '../ports/clock.ts'
import type { RandomStream } from '../ports/random.ts'
import type { ClockSample, Freshness } from './freshness.ts'

export interface OutboundOptions {
  readonly bus: Bus
  readonly clock: Clock
  /** Spreads retries. */
  readonly random: RandomStream
  readonly freshness: Freshness
  readonly runLeaseMs: () => DurationMs
  /** The safety reserve in effect on a node; null: no such node. */
  readonly reserveMib: (nodeId: string) => Mib | null
  readonly envelope: (body: ControllerBody) => Envelope
  /** Returns true if the effect still matches the controller's intent. Other commands are dropped. */
  readonly isWanted: (effect: Effect) => boolean
  /** Returns false if the effect must wait for `resume`, or for the node. */
  readonly mayLeave: (effect: Effect) => boolean
  /**
   * Returns the environment variables of a task by name; null if their values cannot be read.
   * @param owner of the task
   */
  readonly valuesOf: (environment: TaskEnvironment, owner: string | null) => EnvironmentValues | null
  /** Called with the answer, and the number of the node's message that carried it. */
  readonly onResult: (nodeId: string, command: string, result: CommandResult, seq: number) => void
}

const ANSWER_WITHIN_MS: DurationMs = 2_000
const RETRY_FIRST_MS: DurationMs = 250
const RETRY_MAX_MS: DurationMs = 4_000
/** Maximum number of commands of one node that are in flight or about to be retried (R11). */
export const MAX_IN_FLIGHT_PER_NODE = 32

/** Processed places at the front of a line that are removed at once. */
const COMPACT_FROM = 1_024

interface Line {
  readonly nodeId: string
  readonly subject: string
  /** Clock sample for its commands; null until the node was heard. */
  clockSample: ClockSample | null
  inFlight: number
  /** Commands that wait for a slot, or for the node's first message. */
  readonly waiting: Effect[]
  /** Number of `waiting` that have been processed. */
  taken: number
  /** Commands that may not be sent yet. */
  postponed: Effect[]
}

/** A command that is in flight, or about to be retried. */
interface UnderWay {
  readonly line: Line
  readonly effect: Effect
  /** Id of the request that was sent, or of the next one; null: a new message. */
  messageId: string | null
  retryMs: DurationMs
  /** It waits for an answer, */
  done: ((outcome: RequestOutcome) => void) | null
  /** or for its retry. */
  cancel: CancelTimer | null
}

/** The state between two inputs, as JSON values. */
export interface OutboundCheckpoint {
  readonly lines: readonly {
    readonly nodeId: string
    readonly inFlight: number
    readonly waiting: readonly Effect[]
    readonly postponed: readonly Effect[]
  }[]
  readonly behind: readonly (readonly [taskId: string, effects: readonly Effect[]])[]
  readonly underWay: readonly {
    readonly effect: Effect
    readonly messageId: string | null
    readonly retryMs: DurationMs
    /** Number of the request that waits for an answer, */
    readonly request: number | null
    /** or the timer of the retry. */
    readonly timer: TimerId | null
  }[]
}

export interface OutboundDepth {
  readonly inFlight: number
  readonly waiting: number
}

export class Outbound {
  readonly #options: OutboundOptions
  readonly #lines = new Map<string, Line>()
  /**
   * Commands of a task that wait for the previous one, by task id; present while one is in flight or waits
   * for a slot.
   */
  readonly #behind = new Map<string, Effect[]>()
  readonly #underWay = new Set<UnderWay>()
  /** Commands of all lines that wait for a slot. */
  #waitingCount = 0
  #isClosed = false

  constructor(options: OutboundOptions) {
    this.#options = options
  }

  /** Commands in flight to a node, for tests and metrics. */
  inFlight(nodeId: string): number {
    return this.#lines.get(nodeId)?.inFlight ?? 0
  }

  /**
   * The decision preceded a commit, which takes time: an effect withdrawn meanwhile is not sent, above all no
   * start (R5).
   */
  send(effect: Effect): void {
    if (!this.#options.isWanted(effect)) return
    const behind = this.#behind.get(effect.taskId)
    if (behind !== undefined) behind.push(effect)
    else {
      this.#behind.set(effect.taskId, [])
      this.#join(effect)
    }
  }

  /** For all nodes: commands in flight or about to be retried, and commands that wait. */
  depth(): OutboundDepth {
    const depth = { inFlight: 0, waiting: 0 }
    for (const { inFlight, waiting, taken, postponed } of this.#lines.values()) {
      depth.inFlight += inFlight
      depth.waiting += waiting.length - taken + postponed.length
    }
    return depth
  }

  /** The node was answered: commands that waited for it may be sent. */
  answered(nodeId: string): void {
    if (this.#waitingCount === 0) return
    const line = this.#lines.get(nodeId)
    if (line === undefined) return
    this.#takeUp(line)
    if (line.taken < line.waiting.length) this.#serve(line)
  }

  /** Sends postponed commands that may be sent now. */
  resume(): void {
    for (const line of this.#lines.values()) {
      this.#takeUp(line)
      if (line.taken < line.waiting.length) this.#serve(line)
    }
  }

  /** Captures the state between two inputs. */
  capture(ids: PendingIds): OutboundCheckpoint {
    return {
      lines: [...this.#lines.values()].map(({ nodeId, inFlight, waiting, taken, postponed }) => ({
        ...{ nodeId, inFlight, postponed },
        waiting: waiting.slice(taken),
      })),
      behind: [...this.#behind],
      underWay: [...this.#underWay].map(({ effect, messageId, retryMs, done, cancel }) => ({
        effect,
        messageId,
        retryMs,
        request: done === null ? null : ids.request(done),
        timer: cancel === null ? null : ids.timer(cancel),
      })),
    }
  }

  /** Continues from a checkpoint; nothing is sent. */
  restore({ lines, behind, underWay }: OutboundCheckpoint, restorer: PendingRestorer): void {
    for (const { nodeId, inFlight, waiting, postponed } of lines) {
      const line = this.#lineOf(nodeId)
      line.inFlight = inFlight
      line.waiting.push(...waiting)
      line.postponed.push(...postponed)
      this.#waitingCount += waiting.length + postponed.length
    }
    for (const [taskId, effects] of behind) this.#behind.set(taskId, [...effects])
    for (const { effect, messageId, retryMs, request, timer } of underWay) {
      const command: UnderWay = {
        line: this.#lineOf(effect.nodeId),
        effect,
        messageId,
        retryMs,
        done: null,
        cancel: null,
      }
      this.#underWay.add(command)
      if (request !== null)
        restorer.request(request, (command.done = (outcome) => this.#answered(command, outcome)))
      if (timer !== null) command.cancel = restorer.timer(timer, () => this.#again(command))
    }
  }

  /** Stops sending. */
  close(): void {
    this.#isClosed = true
  }

  #join(effect: Effect): void {
    const line = this.#lineOf(effect.nodeId)
    if (!this.#options.mayLeave(effect)) {
      line.postponed.push(effect)
      this.#waitingCount += 1
    } else if (
      line.inFlight < MAX_IN_FLIGHT_PER_NODE &&
      line.waiting.length === 0 &&
      this.#sampleOf(line) !== null
    ) {
      this.#begin(line, effect)
    } else {
      line.waiting.push(effect)
      this.#waitingCount += 1
    }
  }

  /** A command that had to wait may no longer be wanted. */
  #serve(line: Line): void {
    while (line.inFlight < MAX_IN_FLIGHT_PER_NODE && line.taken < line.waiting.length) {
      if (this.#sampleOf(line) === null) return
      const effect = takeFirst(line)
      if (!this.#options.mayLeave(effect)) {
        line.postponed.push(effect)
        continue
      }
      this.#waitingCount -= 1
      if (this.#options.isWanted(effect)) this.#begin(line, effect)
      else this.#letNext(effect)
    }
  }

  /** Appends postponed commands to those that wait. */
  #takeUp(line: Line): void {
    if (line.postponed.length === 0) return
    line.waiting.push(...line.postponed)
    line.postponed = []
  }

  #sampleOf(line: Line): ClockSample | null {
    line.clockSample ??= this.#options.freshness.sampleOf(line.nodeId)
    return line.clockSample
  }

  #begin(line: Line, effect: Effect): void {
    line.inFlight += 1
    const command: UnderWay = {
      line,
      effect,
      messageId: null,
      retryMs: RETRY_FIRST_MS,
      done: null,
      cancel: null,
    }
    this.#underWay.add(command)
    this.#request(command)
  }

  #request(command: UnderWay): void {
    const { line, effect, messageId } = command
    const sample = this.#sampleOf(line)
    if (sample === null) throw new Error(`broken invariant: a command for ${line.nodeId}, which never spoke`)
    const limits = this.#options.freshness.commandLimits(
      sample,
      this.#options.runLeaseMs(),
      this.#options.clock.now(),
    )
    const reserveMib = this.#options.reserveMib(line.nodeId)
    const terms = {
      valid_until_mono: limits.validUntilMono,
      node_boot: limits.boot,
      ...(reserveMib === null ? {} : { safety_reserve_mib: reserveMib }),
    }
    const fresh = this.#options.envelope(commandOf(effect, terms, this.#options.valuesOf))
    const message = messageId === null ? fresh : { ...fresh, id: messageId }
    command.messageId = message.id
    command.cancel = null
    command.done = (outcome) => this.#answered(command, outcome)
    this.#options.bus.request(line.subject, message, ANSWER_WITHIN_MS, command.done)
  }

  #answered(command: UnderWay, outcome: RequestOutcome): void {
    if (this.#isClosed) return
    const { effect, messageId } = command
    if (!outcome.answered) return this.#later(command, messageId)
    const { body: answer, seq } = outcome.answer
    if (answer.op !== 'result' || answer.task_id !== effect.taskId || answer.attempt !== effect.attempt)
      return this.#later(command, null)
    if (answer.outcome === 'refused' && isTransient(effect.kind, answer.reason))
      return this.#later(command, null)
    this.#options.onResult(effect.nodeId, effect.kind, answer, seq)
    this.#done(command)
  }

  #later(command: UnderWay, messageId: string | null): void {
    const { clock, random } = this.#options
    command.messageId = messageId
    command.done = null
    const dueAt = clock.now() + Math.ceil(command.retryMs * (0.8 + 0.4 * random()))
    command.cancel = clock.at(dueAt, () => this.#again(command), RANK_MESSAGE)
  }

  #again(command: UnderWay): void {
    if (this.#isClosed) return
    if (!this.#options.isWanted(command.effect)) return this.#done(command)
    if (!this.#options.mayLeave(command.effect)) return this.#later(command, null)
    command.retryMs = Math.min(2 * command.retryMs, RETRY_MAX_MS)
    this.#request(command)
  }

  #done(command: UnderWay): void {
    const { line, effect } = command
    this.#underWay.delete(command)
    line.inFlight -= 1
    this.#letNext(effect)
    this.#serve(line)
  }

  /** Sends the task's next command that is still wanted. */
  #letNext({ taskId }: Effect): void {
    const behind = this.#behind.get(taskId)
    let next = behind?.shift()
    while (next !== undefined && !this.#options.isWanted(next)) next = behind?.shift()
    if (next === undefined) this.#behind.delete(taskId)
    else this.#join(next)
  }

  #lineOf(nodeId: string): Line {
    let line = this.#lines.get(nodeId)
    if (line === undefined) {
      line = {
        nodeId,
        subject: nodeSubject(nodeId, 'command'),
        clockSample: null,
        inFlight: 0,
        waiting: [],
        taken: 0,
        postponed: [],
      }
      this.#lines.set(nodeId, line)
    }
    return line
  }
}

function takeFirst(line: Line): Effect {
  const effect = line.waiting[line.taken++] as Effect
  if (line.taken === line.waiting.length || line.taken === COMPACT_FROM) {
    line.waiting.splice(0, line.taken)
    line.taken = 0
  }
  return effect
}

/**
 * Refusals that pass: too late on the node's clock, an older boot, a full disk. A start is not retried,
 * because its refusal uses up the attempt (R3); the engine must know about refused swaps.
 */
function isTransient(kind: Effect['kind'], reason: RefusalReason | null): boolean {
  if (kind === 'start') return false
  if (reason === 'expired' || reason === 'other_boot') return true
  if (kind === 'swap_out' || kind === 'swap_in') return false
  return reason === 'disk_failed' || (kind === 'grant' && reason === 'no_vram')
}

type Terms = Pick<Command, 'valid_until_mono' | 'node_boot' | 'safety_reserve_mib'>

function commandOf(effect: Effect, terms: Terms, valuesOf: OutboundOptions['valuesOf']): Command {
  if (effect.kind === 'start') return startOf(effect, terms, valuesOf)
  const base = { task_id: effect.taskId, attempt: effect.attempt, ...terms }
  switch (effect.kind) {
    case 'prepare':
      return { op: 'prepare', ...base, ...preparedIn(effect) }
    case 'stop':
      return {
        op: 'stop',
        ...base,
        reason: effect.reason,
        ...(effect.graceMs === 0 ? {} : { grace_ms: effect.graceMs }),
      }
    case 'swap_out':
    case 'swap_in':
      return { op: effect.kind, ...base, generation: effect.generation, force_active: effect.forceActive }
    case 'grant':
    case 'refuse_growth':
      return { op: effect.kind, ...base, mib: effect.mib, noswap: 0, reason: effect.reason }
    case 'set_noswap':
      return { op: effect.kind, ...base, mib: 0, noswap: effect.noswap, reason: null }
  }
}

function startOf(effect: StartEffect, terms: Terms, valuesOf: OutboundOptions['valuesOf']): StartCommand {
  const { environment } = effect
  const start: Mutable<StartCommand> = {
    op: 'start',
    task_id: effect.taskId,
    attempt: effect.attempt,
    valid_until_mono: terms.valid_until_mono,
    node_boot: terms.node_boot,
    gpus: effect.gpus,
    vram_mib: effect.vramMib,
    gpu_mode: effect.gpuMode,
    noswap: effect.noswap,
    priority: effect.priority,
    on_node_loss: effect.onNodeLoss,
    command: effect.command,
    name: effect.name,
    owner: effect.owner,
  }
  if (terms.safety_reserve_mib !== undefined) start.safety_reserve_mib = terms.safety_reserve_mib
  if (effect.ports !== undefined) start.ports = effect.ports
  if (effect.wakeOnRequest !== undefined) start.wake_on_request = effect.wakeOnRequest
  if (effect.swapMethod !== undefined) start.swap_method = effect.swapMethod
  if (effect.swapHooks !== undefined) start.swap_hooks = effect.swapHooks
  if (effect.swapEngine !== undefined) start.swap_engine = effect.swapEngine
  if (effect.limits !== null) start.limits = limitsRecordOf(effect.limits)
  if (environment !== null) start.env = envOf(valuesOf(environment, effect.owner))
  if (effect.stopGraceMs !== 0) start.stop_grace_ms = effect.stopGraceMs
  return Object.assign(start, surroundingsIn(effect))
}

function preparedIn({ image, workdir }: PrepareEffect): Pick<PrepareCommand, 'image' | 'workdir'> {
  return { ...(image === null ? {} : { image }), ...(workdir === null ? {} : { workdir }) }
}

/** Null: the values cannot be read, and the server refuses the start. */
function envOf(values: EnvironmentValues | null): NonNullable<StartCommand['env']> | null {
  if (values === null) return null
  return Object.entries({ ...values.env, ...values.secrets }).map(([name, value]) => ({ name, value }))
}
