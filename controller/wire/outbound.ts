/** Effects become commands: requests that are repeated with the same id until they are answered, one in flight per task (R11). */
import type { Command, CommandResult, ControllerBody, Envelope } from '../../protocol/messages.ts'
import { nodeSubject } from '../../protocol/subjects.ts'
import type { DurationMs } from '../../protocol/units.ts'
import type { Effect } from '../domain/effect.ts'
import type { Bus } from '../ports/bus.ts'
import type { Clock } from '../ports/clock.ts'
import { RANK_MESSAGE } from '../ports/clock.ts'
import type { Freshness } from './freshness.ts'

export interface OutboundOptions {
  readonly bus: Bus
  readonly clock: Clock
  readonly freshness: Freshness
  readonly envelope: (body: ControllerBody) => Envelope
  /** Is this attempt still the one the controller believes in? A command for another is given up. */
  readonly isCurrent: (effect: Effect) => boolean
  readonly onResult: (nodeId: string, command: string, result: CommandResult) => void
}

const ANSWER_WITHIN_MS: DurationMs = 2_000
const RETRY_FIRST_MS: DurationMs = 250
const RETRY_MAX_MS: DurationMs = 5_000

export class Outbound {
  readonly #o: OutboundOptions
  readonly #subjects = new Map<string, string>()
  /** Commands of a task that wait for the one in flight, by task id; present while one is. */
  readonly #inFlight = new Map<string, Effect[]>()

  constructor(options: OutboundOptions) {
    this.#o = options
  }

  send(effect: Effect): void {
    const waiting = this.#inFlight.get(effect.taskId)
    if (waiting !== undefined) {
      waiting.push(effect)
      return
    }
    this.#inFlight.set(effect.taskId, [])
    this.#request(effect, null, RETRY_FIRST_MS)
  }

  #request(effect: Effect, messageId: string | null, retryMs: DurationMs): void {
    const limits = this.#o.freshness.commandLimits(effect.nodeId, this.#o.clock.now())
    if (limits === null) {
      this.#again(effect, messageId, retryMs)
      return
    }
    const body = commandOf(effect, limits.validUntilMono, limits.boot)
    const fresh = this.#o.envelope(body)
    const message = messageId === null ? fresh : { ...fresh, id: messageId }
    this.#o.bus.request(this.#subjectOf(effect.nodeId), message, ANSWER_WITHIN_MS, (outcome) => {
      if (!outcome.answered) {
        this.#again(effect, message.id, retryMs)
        return
      }
      const { body: answer } = outcome.answer
      if (answer.op === 'result') {
        // Too late on the node's clock, for an older boot, or from a controller it has outgrown: no word about the task itself.
        const isTransient = answer.outcome === 'refused' && (answer.reason === 'expired' || answer.reason === 'other_boot')
        if (isTransient && effect.kind !== 'start') {
          this.#again(effect, null, retryMs)
          return
        }
        this.#o.onResult(effect.nodeId, effect.kind, answer)
      }
      this.#next(effect.taskId)
    })
  }

  #again(effect: Effect, messageId: string | null, retryMs: DurationMs): void {
    this.#o.clock.at(
      this.#o.clock.now() + retryMs,
      () => {
        if (this.#o.isCurrent(effect)) this.#request(effect, messageId, Math.min(2 * retryMs, RETRY_MAX_MS))
        else this.#next(effect.taskId)
      },
      RANK_MESSAGE,
    )
  }

  #next(taskId: string): void {
    const waiting = this.#inFlight.get(taskId)
    const effect = waiting?.shift()
    if (effect === undefined) this.#inFlight.delete(taskId)
    else if (this.#o.isCurrent(effect)) this.#request(effect, null, RETRY_FIRST_MS)
    else this.#next(taskId)
  }

  #subjectOf(nodeId: string): string {
    let subject = this.#subjects.get(nodeId)
    if (subject === undefined) {
      subject = nodeSubject(nodeId, 'command')
      this.#subjects.set(nodeId, subject)
    }
    return subject
  }
}

function commandOf(effect: Effect, validUntilMono: number, boot: Command['node_boot']): Command {
  const base = { task_id: effect.taskId, attempt: effect.attempt, valid_until_mono: validUntilMono, node_boot: boot }
  switch (effect.kind) {
    case 'start':
      return {
        op: 'start',
        ...base,
        gpus: effect.gpus,
        vram_mib: effect.vramMib,
        gpu_mode: effect.gpuMode,
        noswap: effect.noswap,
        priority: effect.priority,
        on_node_loss: effect.onNodeLoss,
        command: effect.command,
      }
    case 'stop':
      return { op: 'stop', ...base, reason: effect.reason }
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
