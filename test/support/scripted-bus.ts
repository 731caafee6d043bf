/** The controller's side of a bus for the tests of a GPU server's core: its answers are scripted. */
import type { Body, ControllerBody, Envelope } from '../../protocol/envelope.ts'
import type { CommandResult, NodeEvent, NodeSettings } from '../../protocol/messages.ts'
import { decode, encode } from '../../protocol/codec.ts'
import { leaderSubject, nodeSubject } from '../../protocol/subjects.ts'
import type { DurationMs, Mib } from '../../protocol/units.ts'
import { PROTOCOL_VERSION } from '../../protocol/limits.ts'
import type { Bus, Handler, RequestOutcome } from '../../controller/ports/bus.ts'
import { RANK_MESSAGE } from '../../controller/ports/clock.ts'
import type { VirtualClock } from '../../simulator/kernel/virtual-clock.ts'

export const NODE_ID = 'node-1'

type Verb = 'hello' | 'heartbeat' | 'events'
type Script = (message: Envelope) => ControllerBody | null

/**
 * The controller's side: scripted answers, at once; null means that no answer ever comes. Everything passes
 * through the codec.
 */
export class ScriptedBus implements Bus {
  /** All messages of the core, in order, including repeats. */
  readonly sent: Envelope[] = []
  readonly script: Record<Verb, Script>
  settings: NodeSettings
  epoch = 1
  /** Delay of an answer. */
  answerAfterMs: DurationMs = 0
  /** The reserve in the answer to the core's latest message. */
  appliedReserveMib: Mib = 0
  delivered = 0
  answersSinceHello = 0
  /** Settings of an epoch that cannot be saved on disk are not applied. */
  mayBeTaken: (epoch: number) => boolean = () => true
  /** Handler of the last command: a bus may deliver one more after the handler has ended. */
  lastHandler: Handler = () => {}
  readonly #clock: VirtualClock
  readonly #handlers = new Map<string, Handler>()
  /** Sending time of the message whose answer contained the reserve. */
  #appliedOf = 0
  #seq = 0

  constructor(clock: VirtualClock, settings: NodeSettings) {
    this.#clock = clock
    this.settings = settings
    this.script = {
      hello: () => ({ op: 'welcome', settings: this.settings, stop: [] }),
      heartbeat: () => ({ op: 'lease', settings: this.settings, stop: [] }),
      events: acknowledgeAll,
    }
  }

  /** The broker reports that the subject has no listener. */
  isControllerAway = false

  /** From now on nothing is answered, or everything is answered again. */
  silence(): () => void {
    const before = { ...this.script }
    for (const verb of Object.keys(this.script) as Verb[]) this.script[verb] = () => null
    return () => Object.assign(this.script, before)
  }

  of(verb: Verb): readonly Envelope[] {
    return this.sent.filter((message) => message.body.op === verb)
  }

  snapshots(): readonly (Body & { readonly op: 'hello' | 'heartbeat' })[] {
    return this.sent.flatMap(({ body }) => (body.op === 'hello' || body.op === 'heartbeat' ? [body] : []))
  }

  /** Every event sent, without repeats. */
  events(): readonly NodeEvent[] {
    const byNumber = new Map<string, NodeEvent>()
    for (const { boot, body } of this.sent) {
      if (body.op === 'events')
        for (const entry of body.entries) byNumber.set(`${boot.counter}.${entry.n}`, entry)
    }
    return [...byNumber.values()]
  }

  finishedOf(taskId: string): readonly string[] {
    return this.events().flatMap((event) =>
      event.kind === 'finished' && event.task_id === taskId ? [event.outcome] : [],
    )
  }

  /** Adds a mark to answers. */
  stamped: (answer: Envelope) => Envelope = (answer) => answer

  envelope(body: ControllerBody, epoch = this.epoch): Envelope {
    this.#seq += 1
    return {
      v: PROTOCOL_VERSION,
      id: `c${this.#seq}`,
      sent_mono: this.#clock.now(),
      boot: { counter: 1, random: 'controller' },
      seq: this.#seq,
      epoch,
      body,
    }
  }

  deliver(message: Envelope): CommandResult {
    const body = this.ask(message)
    if (body.op !== 'result') throw new Error(`the command was answered with ${body.op}`)
    return body
  }

  /** With any answer. */
  ask(message: Envelope): Body {
    const result = this.tell(message)
    if (result === null) throw new Error('the command was not answered')
    return result
  }

  /** Null: it is not answered at once. */
  tell(message: Envelope): Body | null {
    this.delivered += 1
    let result: Body | null = null
    const subject = nodeSubject(NODE_ID, 'command')
    const handler = this.#handlers.get(subject)
    if (handler === undefined) throw new Error('no handler listens for commands')
    this.lastHandler = handler
    handler(throughTheWire(message), subject, (answer) => {
      result = throughTheWire(answer).body
    })
    return result
  }

  /** The announcement of a leader of this epoch, which need not be the one that answers. */
  announce(epoch: number): void {
    const message = this.envelope({ op: 'leader', epoch, id: `process ${epoch}` }, epoch)
    this.#handlers.get(leaderSubject())?.(throughTheWire(message), leaderSubject(), () => {})
  }

  publish(): void {
    throw new Error('the core publishes nothing')
  }

  request(
    _subject: string,
    message: Envelope,
    timeoutMs: DurationMs,
    done: (outcome: RequestOutcome) => void,
  ): void {
    const carried = throughTheWire(message)
    this.sent.push(carried)
    const now = this.#clock.now()
    if (this.isControllerAway) {
      this.#clock.at(now, () => done({ answered: false, why: 'no_responder' }), RANK_MESSAGE)
      return
    }
    const body = this.script[carried.body.op as Verb](carried)
    if (body === null || this.answerAfterMs >= timeoutMs) {
      this.#clock.at(now + timeoutMs, () => done({ answered: false, why: 'timeout' }), RANK_MESSAGE)
      return
    }
    const answer = throughTheWire(this.stamped(this.envelope(body)))
    this.#clock.at(
      now + this.answerAfterMs,
      () => {
        this.answersSinceHello += 1
        const isNews = body.op === 'welcome' || (body.op === 'lease' && carried.sent_mono >= this.#appliedOf)
        if (isNews && this.mayBeTaken(answer.epoch)) {
          this.appliedReserveMib = body.settings.safety_reserve_mib
          this.#appliedOf = carried.sent_mono
        }
        done({ answered: true, answer })
      },
      RANK_MESSAGE,
    )
  }

  subscribe(pattern: string, handler: Handler): () => void {
    this.#handlers.set(pattern, handler)
    return () => {
      if (this.#handlers.get(pattern) === handler) this.#handlers.delete(pattern)
    }
  }

  drain(): Promise<void> {
    return Promise.resolve()
  }
}

export function acknowledgeAll(message: Envelope): ControllerBody {
  if (message.body.op !== 'events') throw new Error('not events')
  return { op: 'events_ack', up_to: message.body.entries.at(-1)?.n ?? 0 }
}

function throughTheWire(message: Envelope): Envelope {
  const decoded = decode(encode(message))
  if (!decoded.ok) throw new Error(`it does not decode: ${decoded.why}`)
  return decoded.envelope
}
