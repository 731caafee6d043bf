/**
 * Requests to nodes without side effects, sent once; the caller retries. They are limited per node, so that
 * commands are not delayed (R11).
 */
import type { Body, ControllerBody, Envelope } from '../../protocol/envelope.ts'
import { nodeSubject } from '../../protocol/subjects.ts'
import type { DurationMs } from '../../protocol/units.ts'
import type { Bus } from '../ports/bus.ts'

const ANSWER_WITHIN_MS: DurationMs = 3_000
/** Maximum number of concurrent reads per server. */
const MAX_READS_PER_NODE = 8

export class NodeReads {
  readonly #bus: Bus
  readonly #envelope: (body: ControllerBody) => Envelope
  readonly #mayAsk: (nodeId: string) => boolean
  readonly #underWay = new Map<string, number>()

  /** @param mayAsk returns false for a node that is ahead of the store: nothing is sent to it */
  constructor(bus: Bus, envelope: (body: ControllerBody) => Envelope, mayAsk: (nodeId: string) => boolean) {
    this.#bus = bus
    this.#envelope = envelope
    this.#mayAsk = mayAsk
  }

  /** Resolves with the answer, a refusal, or null without an answer. */
  ask(nodeId: string, body: ControllerBody): Promise<Body | { readonly refused: string } | null> {
    if (!this.#mayAsk(nodeId)) return Promise.resolve(null)
    if ((this.#underWay.get(nodeId) ?? 0) >= MAX_READS_PER_NODE)
      return Promise.resolve({ refused: 'too_many_reads' })
    this.#count(nodeId, 1)
    return new Promise((resolve) => {
      this.#bus.request(nodeSubject(nodeId, 'command'), this.#envelope(body), ANSWER_WITHIN_MS, (outcome) => {
        this.#count(nodeId, -1)
        if (!outcome.answered) return resolve(null)
        const answer = outcome.answer.body
        resolve(answer.op === 'refused' ? { refused: answer.reason } : answer)
      })
    })
  }

  #count(nodeId: string, by: number): void {
    const reads = (this.#underWay.get(nodeId) ?? 0) + by
    if (reads === 0) this.#underWay.delete(nodeId)
    else this.#underWay.set(nodeId, reads)
  }
}
