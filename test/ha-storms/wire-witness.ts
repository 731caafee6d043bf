/**
 * Reads every message of the broker: a GPU server may obey no command of an old epoch once it has seen a
 * newer one, and the epochs that it names never fall.
 */
import { randomUUID } from 'node:crypto'
import { connect, type NatsConnection } from '@nats-io/transport-node'
import { decode, encode } from '../../protocol/codec.ts'
import type { Envelope } from '../../protocol/envelope.ts'
import { nodeIdOf } from '../../protocol/subjects.ts'

interface Asked {
  readonly node: string
  readonly command: Envelope
}

/** A start, and its subject. */
interface Sent {
  readonly subject: string
  readonly command: Envelope
}

interface Heard {
  readonly seq: number
  readonly epoch: number
}

/** Longer than a loop takes on a busy machine. */
const VALID_MS = 600_000
/** Epochs whose last start is kept. */
const STARTS = 4

export class WireWitness {
  readonly violations: string[] = []
  readonly #broker: NatsConnection
  /** Commands by the subject of their answer. */
  readonly #asked = new Map<string, Asked>()
  /** By boot of a node. */
  readonly #heard = new Map<string, Heard>()
  /** Highest epoch that each node has named. */
  readonly #epochs = new Map<string, number>()
  /** The last start of each epoch, by node. */
  readonly #starts = new Map<string, Sent[]>()
  /** Attempts whose start was accepted: a repeated start is answered, not obeyed. */
  readonly #started = new Set<string>()
  /** Commands that servers accepted. */
  obeyed = 0
  /** Commands of an old epoch that servers refused. */
  late = 0

  private constructor(broker: NatsConnection) {
    this.#broker = broker
    broker.subscribe('>', {
      callback: (error, { subject, reply, data }) => {
        if (error !== null) return void this.violations.push(`the broker: ${error.message}`)
        const decoded = decode(data)
        if (decoded.ok) this.#see(subject, reply ?? '', decoded.envelope)
      },
    })
  }

  static async join(natsUrl: string): Promise<WireWitness> {
    return new WireWitness(await connect({ servers: natsUrl }))
  }

  /** A server has seen this epoch. */
  isNamed(epoch: number): boolean {
    return [...this.#epochs.values()].some((named) => named >= epoch)
  }

  /**
   * The network delivers late: the last start of an earlier epoch, as if it had been for another task and
   * were still valid, to each server that has seen this epoch.
   */
  deliverLate(epoch: number): void {
    for (const [node, starts] of this.#starts) {
      const sent = starts.findLast(({ command }) => command.epoch < epoch)
      if (sent === undefined || (this.#epochs.get(node) ?? 0) < epoch) continue
      const { subject, command } = sent
      if (command.body.op !== 'start') continue
      const { valid_until_mono: until } = command.body
      const body = { ...command.body, task_id: randomUUID(), valid_until_mono: until + VALID_MS }
      const id = randomUUID()
      this.#broker.publish(subject, encode({ ...command, id, body }), { reply: `_INBOX.late.${id}` })
    }
  }

  async end(): Promise<void> {
    await this.#broker.close()
  }

  #see(subject: string, reply: string, message: Envelope): void {
    const node = nodeIdOf(subject)
    const asked = this.#asked.get(subject)
    if (node !== null && subject.endsWith('.command')) this.#ask(node, { subject, command: message }, reply)
    else if (node !== null) this.#hear(node, message)
    else if (asked !== undefined) {
      this.#asked.delete(subject)
      this.#hear(asked.node, message)
      this.#judge(asked, message)
    }
  }

  #ask(node: string, sent: Sent, reply: string): void {
    this.#asked.set(reply, { node, command: sent.command })
    if (sent.command.body.op !== 'start') return
    const starts = this.#starts.get(node) ?? []
    this.#starts.set(
      node,
      [...starts.filter(({ command }) => command.epoch !== sent.command.epoch), sent].slice(-STARTS),
    )
  }

  #hear(node: string, { boot, seq, epoch }: Envelope): void {
    const key = `${node} ${boot.counter} ${boot.random}`
    const last = this.#heard.get(key)
    if (last !== undefined && seq < last.seq) return
    if (last !== undefined && epoch < last.epoch)
      this.violations.push(`node ${node} named epoch ${epoch} after epoch ${last.epoch}`)
    this.#heard.set(key, { seq, epoch })
    this.#epochs.set(node, Math.max(epoch, this.#epochs.get(node) ?? 0))
  }

  #judge({ node, command }: Asked, { epoch, body }: Envelope): void {
    if (body.op !== 'result') return
    if (body.reason === 'stale_epoch') this.late += 1
    if (body.outcome !== 'accepted') return
    const attempt = `${body.task_id}/${body.attempt}`
    const isRepeated = command.body.op === 'start' && this.#started.has(attempt)
    if (command.body.op === 'start') this.#started.add(attempt)
    this.obeyed += 1
    if (command.epoch < epoch && !isRepeated)
      this.violations.push(
        `node ${node} obeyed ${command.body.op} ${attempt} of epoch ${command.epoch} at epoch ${epoch}`,
      )
  }
}
