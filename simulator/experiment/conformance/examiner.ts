/**
 * A controller that examines one GPU server: it answers or stays silent as the test of a rule requires, and
 * records what the server reports. Rules that must always hold are checked on every message.
 */
import type { ControllerBody, Envelope, NodeBody } from '../../../protocol/envelope.ts'
import type { Boot } from '../../../protocol/message-fields.ts'
import type {
  AttemptRef,
  Command,
  CommandResult,
  NodeEvent,
  NodeSettings,
} from '../../../protocol/messages.ts'
import { nodeSubject } from '../../../protocol/subjects.ts'
import type { DurationMs, Instant } from '../../../protocol/units.ts'
import { PROTOCOL_VERSION } from '../../../protocol/limits.ts'
import type { Bus, Reply } from '../../../controller/ports/bus.ts'
import type { Clock } from '../../../controller/ports/clock.ts'
import { RANK_MESSAGE } from '../../../controller/ports/clock.ts'
import type { RandomStream } from '../../../controller/ports/random.ts'

export interface ExaminerOptions {
  readonly bus: Bus
  readonly clock: Clock
  readonly random: RandomStream
  readonly nodeId: string
  readonly settings: NodeSettings
  /** Its fencing token: above that of any controller that the server has heard. */
  readonly epoch: number
}

/** The server's last report about itself. */
export interface Snapshot {
  readonly boot: Boot
  readonly seq: number
  readonly sentMono: number
  readonly receivedAt: Instant
  readonly body: Extract<Envelope['body'], { op: 'hello' | 'heartbeat' }>
}

/** Link conditions in each direction; shares of one. */
export interface Faults {
  readonly drop: number
  readonly duplicate: number
  readonly delay: number
  readonly delayMs: DurationMs
}

type WithoutBase<C> = C extends Command ? Omit<C, 'valid_until_mono' | 'node_boot'> : never
export type Order = WithoutBase<Command>
export interface Forged {
  readonly epoch?: number
  readonly boot?: Boot
  readonly validUntilMono?: number
  readonly id?: string
}

export const NO_FAULTS: Faults = { drop: 0, duplicate: 0, delay: 0, delayMs: 0 }
const COMMAND_TTL_MS: DurationMs = 15_000
const ANSWER_WITHIN_MS: DurationMs = 2_000
/** A read is answered without data after 2 s. */
const READ_WITHIN_MS: DurationMs = 5_000

export class Examiner {
  readonly #o: ExaminerOptions
  readonly #boot: Boot
  readonly #ends: (() => void)[] = []
  #seq = 0
  /** Kinds of messages that it answers at present. */
  answers = { hello: true, heartbeat: true, events: true }
  faults: Faults = NO_FAULTS
  /** Answer to the next hello or heartbeat, in place of the usual one. */
  nextAnswer: ControllerBody | null = null
  stop: readonly AttemptRef[] = []
  snapshot: Snapshot | null = null
  taskCount = 0
  /** Features of its last hello. */
  features: readonly string[] = []
  allowsCommands = false
  hellos = 0
  heartbeats = 0
  /** Everything the server reported; resent entries are repeated. */
  readonly heard: NodeEvent[] = []
  /** Violations of rules that must always hold. */
  readonly violations: string[] = []
  #lastEvents: readonly NodeEvent[] = []

  constructor(options: ExaminerOptions) {
    this.#o = options
    this.#boot = { counter: options.epoch, random: 'examiner' }
  }

  get settings(): NodeSettings {
    return this.#o.settings
  }

  get epoch(): number {
    return this.#o.epoch
  }

  get now(): Instant {
    return this.#o.clock.now()
  }

  begin(): void {
    const { bus, nodeId } = this.#o
    for (const verb of ['hello', 'heartbeat', 'event'] as const) {
      this.#ends.push(
        bus.subscribe(nodeSubject(nodeId, verb), (message, _subject, reply) => this.#receive(message, reply)),
      )
    }
  }

  end(): void {
    for (const end of this.#ends) end()
  }

  /** Null: no answer in time. */
  order(order: Order, forged: Forged = {}): Promise<CommandResult | null> {
    const last = this.snapshot
    const base = {
      valid_until_mono: forged.validUntilMono ?? (last?.sentMono ?? 0) + COMMAND_TTL_MS,
      node_boot: forged.boot ?? last?.boot ?? this.#boot,
    }
    const message = this.#envelope({ ...order, ...base } as Command, forged.epoch, forged.id)
    if (this.#chance(this.faults.duplicate)) this.#after(this.#delay(), () => this.#request(message))
    return new Promise((resolve) => {
      if (this.#chance(this.faults.drop)) this.#after(ANSWER_WITHIN_MS, () => resolve(null))
      else this.#after(this.#delay(), () => this.#request(message, resolve))
    })
  }

  /** A request that is not a command, over a good network. Null: no answer in time. */
  ask(body: ControllerBody): Promise<NodeBody | null> {
    const { bus, nodeId } = this.#o
    const subject = nodeSubject(nodeId, 'command')
    return new Promise((resolve) =>
      bus.request(subject, this.#envelope(body), READ_WITHIN_MS, (outcome) =>
        resolve(outcome.answered ? (outcome.answer.body as NodeBody) : null),
      ),
    )
  }

  /** Waits until the claim holds; returns false if it does not within the time. */
  until(claim: () => boolean, withinMs: DurationMs): Promise<boolean> {
    const { clock, settings } = this.#o
    const untilAt = clock.now() + withinMs
    const everyMs = Math.max(1, Math.min(100, Math.floor(settings.heartbeat_ms / 10)))
    return new Promise((resolve) => {
      const look = (): void => {
        if (claim()) resolve(true)
        else if (clock.now() >= untilAt) resolve(false)
        else this.#after(everyMs, look)
      }
      look()
    })
  }

  pass(ms: DurationMs): Promise<void> {
    return new Promise((resolve) => this.#after(ms, () => resolve()))
  }

  /** Events of one attempt, without repeats. */
  eventsOf(taskId: string, attempt: number): NodeEvent[] {
    const seen = new Set<string>()
    return this.heard.filter((event) => {
      const key = JSON.stringify(event)
      if (event.task_id !== taskId || event.attempt !== attempt || seen.has(key)) return false
      seen.add(key)
      return true
    })
  }

  #request(message: Envelope, done: (result: CommandResult | null) => void = () => {}): void {
    this.#o.bus.request(nodeSubject(this.#o.nodeId, 'command'), message, ANSWER_WITHIN_MS, (outcome) => {
      const body = outcome.answered ? outcome.answer.body : null
      done(body?.op === 'result' && !this.#chance(this.faults.drop) ? body : null)
    })
  }

  #receive(message: Envelope, reply: Reply): void {
    if (this.#chance(this.faults.drop)) return
    const { body } = message
    if (body.op === 'hello' || body.op === 'heartbeat') this.#takeSnapshot(message, body)
    if (body.op === 'events') this.#takeEvents(message, body.entries)
    const answer = this.#answerTo(body)
    if (answer === null || this.#chance(this.faults.drop)) return
    const sealed = this.#envelope(answer)
    this.#after(this.#delay(), () => reply(sealed))
    if (this.#chance(this.faults.duplicate)) this.#after(this.#delay(), () => reply(sealed))
  }

  #answerTo(body: Envelope['body']): ControllerBody | null {
    const { settings } = this.#o
    if (body.op === 'events')
      return this.answers.events ? { op: 'events_ack', up_to: body.entries.at(-1)?.n ?? 0 } : null
    if (body.op !== 'hello' && body.op !== 'heartbeat') return null
    if (!this.answers[body.op]) return null
    const special = this.nextAnswer
    this.nextAnswer = null
    return special ?? { op: body.op === 'hello' ? 'welcome' : 'lease', settings, stop: this.stop }
  }

  #takeSnapshot({ boot, seq, sent_mono }: Envelope, body: Snapshot['body']): void {
    const before = this.snapshot
    if (body.op === 'hello') {
      this.hellos += 1
      this.features = body.features ?? []
      this.allowsCommands = body.allow_exec
    } else this.heartbeats += 1
    if (before !== null) this.#compareBoots(before, boot, seq)
    if (body.gpus.some((gpu, place) => gpu.index !== place))
      this.violations.push('a snapshot lists its GPUs out of order')
    const attempts = new Set(body.tasks.map((task) => task.task_id))
    if (attempts.size < body.tasks.length) this.violations.push('R3: two attempts of one task live at once')
    const isNewer =
      before === null ||
      boot.counter > before.boot.counter ||
      (boot.counter === before.boot.counter && seq > before.seq)
    if (isNewer) this.snapshot = { boot, seq, sentMono: sent_mono, receivedAt: this.#o.clock.now(), body }
  }

  /** R6. A network with delays also reorders; without faults, nothing may arrive out of order. */
  #compareBoots(before: Snapshot, boot: Boot, seq: number): void {
    if (boot.counter === before.boot.counter && boot.random !== before.boot.random)
      this.violations.push('R6: two boots with the same counter')
    if (this.faults !== NO_FAULTS) return
    if (boot.counter < before.boot.counter)
      this.violations.push(`R6: the boot counter fell from ${before.boot.counter} to ${boot.counter}`)
    if (boot.counter === before.boot.counter && seq < before.seq)
      this.violations.push(`R6: snapshot number ${seq} after ${before.seq}`)
  }

  /** R1, R8: oldest first, increasing numbers, and nothing dropped before it was acknowledged. */
  #takeEvents({ boot }: Envelope, entries: readonly NodeEvent[]): void {
    for (const [i, entry] of entries.entries()) {
      const before = entries[i - 1]
      if (before !== undefined && entry.n <= before.n)
        this.violations.push(`R8: entry ${entry.n} after ${before.n} in one message`)
    }
    if (!this.answers.events && boot.counter === this.snapshot?.boot.counter) {
      const now = new Set(entries.map((entry) => entry.n))
      const lost = this.#lastEvents.find((entry) => isKept(entry) && !now.has(entry.n))
      if (lost !== undefined)
        this.violations.push(`R1: '${lost.kind}' of ${lost.task_id} was not acknowledged and is not resent`)
    }
    this.#lastEvents = this.answers.events ? [] : entries
    this.heard.push(...entries)
  }

  #envelope(body: ControllerBody, epoch = this.#o.epoch, id?: string): Envelope {
    this.#seq += 1
    const seq = this.#seq
    const base = {
      v: PROTOCOL_VERSION,
      sent_mono: this.#o.clock.now(),
      boot: this.#boot,
      seq,
      epoch,
      body,
    } as const
    return { ...base, id: id ?? `x${this.#o.epoch}.${seq}` }
  }

  #chance(share: number): boolean {
    return share > 0 && this.#o.random() < share
  }

  #delay(): DurationMs {
    return this.#chance(this.faults.delay) ? Math.floor(this.#o.random() * this.faults.delayMs) : 0
  }

  #after(ms: DurationMs, fn: () => void): void {
    this.#o.clock.at(this.#o.clock.now() + ms, fn, RANK_MESSAGE)
  }
}

/** Later reports never replace starts and ends. */
function isKept(entry: NodeEvent): boolean {
  return entry.kind === 'started' || entry.kind === 'finished'
}
