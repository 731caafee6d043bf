/**
 * Effects become commands: requests that are repeated with the same id until they are answered, one in flight per task and a bounded number
 * per node (R11). What the node was not in a position to obey is ordered again.
 */
import type { Command, CommandResult, ControllerBody, Envelope, RefusalReason } from '../../protocol/messages.ts'
import { nodeSubject } from '../../protocol/subjects.ts'
import type { DurationMs } from '../../protocol/units.ts'
import type { Effect } from '../domain/effect.ts'
import type { Bus } from '../ports/bus.ts'
import type { Clock } from '../ports/clock.ts'
import { RANK_MESSAGE } from '../ports/clock.ts'
import type { RandomStream } from '../ports/random.ts'
import type { Freshness } from './freshness.ts'

export interface OutboundOptions {
  readonly bus: Bus
  readonly clock: Clock
  /** Spreads repetitions. */
  readonly random: RandomStream
  readonly freshness: Freshness
  readonly runLeaseMs: () => DurationMs
  readonly envelope: (body: ControllerBody) => Envelope
  /** Is this still what the controller wants? A command that is not is given up. */
  readonly isWanted: (effect: Effect) => boolean
  /** The answer, and the number of the node's message that it came in. */
  readonly onResult: (nodeId: string, command: string, result: CommandResult, seq: number) => void
}

const ANSWER_WITHIN_MS: DurationMs = 2_000
const RETRY_FIRST_MS: DurationMs = 250
const RETRY_MAX_MS: DurationMs = 4_000
/** Commands of one node that are under way or about to be repeated (R11). */
export const MAX_IN_FLIGHT_PER_NODE = 32

/** So many places of a line that had their turn are given back at once. */
const COMPACT_FROM = 1_024

interface Line {
  readonly nodeId: string
  readonly subject: string
  inFlight: number
  /** Commands that wait for their turn, or for the node's first word. */
  readonly waiting: Effect[]
  /** How many of them have had their turn. */
  taken: number
}

export interface OutboundDepth {
  readonly inFlight: number
  readonly waiting: number
}

export class Outbound {
  readonly #o: OutboundOptions
  readonly #lines = new Map<string, Line>()
  /** Commands of a task that wait for the one before, by task id; present while one is under way or waits for its turn. */
  readonly #behind = new Map<string, Effect[]>()
  /** Commands of all lines that wait for their turn. */
  #waitingCount = 0
  #isClosed = false

  constructor(options: OutboundOptions) {
    this.#o = options
  }

  /** Commands under way to a node, for tests and figures. */
  inFlight(nodeId: string): number {
    return this.#lines.get(nodeId)?.inFlight ?? 0
  }

  /** It was decided before a commit, which takes time: what has been taken back meanwhile does not leave, above all no start (R5). */
  send(effect: Effect): void {
    if (!this.#o.isWanted(effect)) return
    const behind = this.#behind.get(effect.taskId)
    if (behind !== undefined) behind.push(effect)
    else {
      this.#behind.set(effect.taskId, [])
      this.#join(effect)
    }
  }

  /** Of all nodes: commands under way or about to be repeated, and those that wait for their turn. */
  depth(): OutboundDepth {
    const depth = { inFlight: 0, waiting: 0 }
    for (const { inFlight, waiting, taken } of this.#lines.values()) {
      depth.inFlight += inFlight
      depth.waiting += waiting.length - taken
    }
    return depth
  }

  /** The node has spoken: what waited for its first word may go. */
  heard(nodeId: string): void {
    if (this.#waitingCount === 0) return
    const line = this.#lines.get(nodeId)
    if (line !== undefined && line.taken < line.waiting.length) this.#serve(line)
  }

  /** Nothing is sent any more. */
  close(): void {
    this.#isClosed = true
  }

  #join(effect: Effect): void {
    const line = this.#lineOf(effect.nodeId)
    if (line.inFlight < MAX_IN_FLIGHT_PER_NODE && line.waiting.length === 0 && this.#limitsOf(line) !== null) {
      line.inFlight += 1
      this.#request(line, effect, null, RETRY_FIRST_MS)
    } else {
      line.waiting.push(effect)
      this.#waitingCount += 1
    }
  }

  /** What had to wait may no longer be wanted when its turn comes. */
  #serve(line: Line): void {
    while (line.inFlight < MAX_IN_FLIGHT_PER_NODE && line.taken < line.waiting.length) {
      if (this.#limitsOf(line) === null) return
      const effect = takeFirst(line)
      this.#waitingCount -= 1
      if (this.#o.isWanted(effect)) {
        line.inFlight += 1
        this.#request(line, effect, null, RETRY_FIRST_MS)
      } else this.#letNext(effect)
    }
  }

  #limitsOf(line: Line): ReturnType<Freshness['commandLimits']> {
    return this.#o.freshness.commandLimits(line.nodeId, this.#o.runLeaseMs(), this.#o.clock.now())
  }

  #request(line: Line, effect: Effect, messageId: string | null, retryMs: DurationMs): void {
    const limits = this.#limitsOf(line)
    if (limits === null) throw new Error(`broken invariant: a command for ${line.nodeId}, which never spoke`)
    const fresh = this.#o.envelope(commandOf(effect, limits.validUntilMono, limits.boot))
    const message = messageId === null ? fresh : { ...fresh, id: messageId }
    this.#o.bus.request(line.subject, message, ANSWER_WITHIN_MS, (outcome) => {
      if (this.#isClosed) return
      if (!outcome.answered) return this.#later(line, effect, message.id, retryMs)
      const { body: answer, seq } = outcome.answer
      if (answer.op !== 'result' || answer.task_id !== effect.taskId || answer.attempt !== effect.attempt) {
        return this.#later(line, effect, null, retryMs)
      }
      if (answer.outcome === 'refused' && isTransient(effect.kind, answer.reason)) return this.#later(line, effect, null, retryMs)
      this.#o.onResult(effect.nodeId, effect.kind, answer, seq)
      this.#done(line, effect)
    })
  }

  #later(line: Line, effect: Effect, messageId: string | null, retryMs: DurationMs): void {
    const { clock, random } = this.#o
    const again = (): void => {
      if (this.#isClosed) return
      if (this.#o.isWanted(effect)) this.#request(line, effect, messageId, Math.min(2 * retryMs, RETRY_MAX_MS))
      else this.#done(line, effect)
    }
    clock.at(clock.now() + Math.ceil(retryMs * (0.8 + 0.4 * random())), again, RANK_MESSAGE)
  }

  #done(line: Line, effect: Effect): void {
    line.inFlight -= 1
    this.#letNext(effect)
    this.#serve(line)
  }

  /** The task's next command, if it is still wanted. */
  #letNext({ taskId }: Effect): void {
    const behind = this.#behind.get(taskId)
    let next = behind?.shift()
    while (next !== undefined && !this.#o.isWanted(next)) next = behind?.shift()
    if (next === undefined) this.#behind.delete(taskId)
    else this.#join(next)
  }

  #lineOf(nodeId: string): Line {
    let line = this.#lines.get(nodeId)
    if (line === undefined) {
      line = { nodeId, subject: nodeSubject(nodeId, 'command'), inFlight: 0, waiting: [], taken: 0 }
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
 * Refused for what passes: too late on the node's clock, an older boot, a disk that is full. A start is not ordered again, because its refusal
 * burns the attempt (R3); of a swap the engine wants to know.
 */
function isTransient(kind: Effect['kind'], reason: RefusalReason | null): boolean {
  if (kind === 'start') return false
  if (reason === 'expired' || reason === 'other_boot') return true
  if (kind === 'swap_out' || kind === 'swap_in') return false
  return reason === 'disk_failed' || (kind === 'grant' && reason === 'no_vram')
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
