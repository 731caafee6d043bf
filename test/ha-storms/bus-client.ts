/** A client of the broker: it repeats each submission with its ID until it is acknowledged. */
import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { connectNatsBus, type NatsBus } from '../../controller/adapters/nats-bus.ts'
import type { RequestOutcome } from '../../controller/ports/bus.ts'
import { clientSubject } from '../../protocol/subjects.ts'
import { aSubmission } from '../support/client-world.ts'
import { envelopeOf } from '../support/envelopes.ts'

const PATIENCE_MS = 1_000
const SUBJECT = clientSubject('storm', 'submit')

export class BusClient {
  readonly #bus: NatsBus
  readonly #commandOf: (name: string) => readonly string[]
  readonly #pauseMs: number
  readonly #ids = new Map<string, string>()
  #isEnding = false
  #running: Promise<void> | null = null

  constructor(natsUrl: string, commandOf: (name: string) => readonly string[], pauseMs: number) {
    this.#bus = connectNatsBus({
      ...{ urls: [natsUrl], name: 'storm', auth: { kind: 'none' }, tls: null },
      ...{ onState() {}, onBadMessage() {}, onSlowConsumer() {}, onDenied() {} },
    })
    this.#commandOf = commandOf
    this.#pauseMs = pauseMs
  }

  /** Acknowledged tasks: name and ID. */
  get ids(): ReadonlyMap<string, string> {
    return this.#ids
  }

  begin(): void {
    this.#running = this.#run()
  }

  async end(): Promise<void> {
    this.#isEnding = true
    await this.#running
    await this.#bus.close()
  }

  async #run(): Promise<void> {
    for (let n = 0; !this.#isEnding; n++) {
      const name = `bus-${n}`
      const body = aSubmission({ name, vram_mib: 100, command: [...this.#commandOf(name)] })
      const id = randomUUID()
      while (!this.#isEnding && !this.#ids.has(name)) {
        const outcome = await this.#request(envelopeOf(body, id))
        const answer = outcome.answered ? outcome.answer.body : null
        if (answer?.op === 'task') this.#ids.set(name, answer.task_id)
        else await delay(50)
      }
      await delay(this.#pauseMs)
    }
  }

  #request(message: ReturnType<typeof envelopeOf>): Promise<RequestOutcome> {
    return new Promise((resolve) => this.#bus.request(SUBJECT, message, PATIENCE_MS, resolve))
  }
}
