/**
 * Requests to nodes that change no state of the cluster, sent once; the caller retries. They are limited per
 * node, so that commands are not delayed (R11).
 */
import type { Body, ControllerBody, Envelope } from '../../protocol/envelope.ts'
import { nodeSubject } from '../../protocol/subjects.ts'
import type { DurationMs } from '../../protocol/units.ts'
import type { Bus } from '../ports/bus.ts'

export interface ReadLimits {
  readonly answerWithinMs: DurationMs
  /** Maximum number of concurrent requests per server. */
  readonly maxPerNode: number
}

const READ_LIMITS: ReadLimits = { answerWithinMs: 3_000, maxPerNode: 8 }
/** A read and a write of each of the channels that a server opens; it holds a read for 2 s. */
export const CHANNEL_LIMITS: ReadLimits = { answerWithinMs: 5_000, maxPerNode: 256 }

export class NodeReads {
  readonly #bus: Bus
  readonly #envelope: (body: ControllerBody) => Envelope
  readonly #mayAsk: (nodeId: string) => boolean
  readonly #limits: ReadLimits
  readonly #underWay = new Map<string, number>()

  /** @param mayAsk returns false for a node that is ahead of the store: nothing is sent to it */
  constructor(
    bus: Bus,
    envelope: (body: ControllerBody) => Envelope,
    mayAsk: (nodeId: string) => boolean,
    limits = READ_LIMITS,
  ) {
    this.#bus = bus
    this.#envelope = envelope
    this.#mayAsk = mayAsk
    this.#limits = limits
  }

  /** Resolves with the answer, a refusal, or null without an answer. */
  ask(nodeId: string, body: ControllerBody): Promise<Body | { readonly refused: string } | null> {
    if (!this.#mayAsk(nodeId)) return Promise.resolve(null)
    const { answerWithinMs, maxPerNode } = this.#limits
    if ((this.#underWay.get(nodeId) ?? 0) >= maxPerNode) return Promise.resolve({ refused: 'too_many_reads' })
    this.#count(nodeId, 1)
    return new Promise((resolve) => {
      this.#bus.request(nodeSubject(nodeId, 'command'), this.#envelope(body), answerWithinMs, (outcome) => {
        this.#count(nodeId, -1)
        if (!outcome.answered) return resolve(null)
        const answer = outcome.answer.body
        resolve(answer.op === 'refused' ? { refused: answer.reason } : answer)
      })
    })
  }

  /** Without an answer. */
  publish(nodeId: string, body: ControllerBody): void {
    if (this.#mayAsk(nodeId)) this.#bus.publish(nodeSubject(nodeId, 'command'), this.#envelope(body))
  }

  #count(nodeId: string, by: number): void {
    const reads = (this.#underWay.get(nodeId) ?? 0) + by
    if (reads === 0) this.#underWay.delete(nodeId)
    else this.#underWay.set(nodeId, reads)
  }
}
