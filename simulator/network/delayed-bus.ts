/**
 * The servers' ends of a bus to a controller outside of the simulation, with the link conditions of a
 * scenario: outgoing and incoming messages are lost, held, delayed or duplicated before they reach the bus,
 * or after.
 */
import type { Bus, RequestOutcome } from '../../controller/ports/bus.ts'
import { RANK_MESSAGE } from '../../controller/ports/clock.ts'
import type { Clock } from '../../controller/ports/clock.ts'
import type { DurationMs } from '../../protocol/units.ts'
import { deliverCopies } from './passage.ts'
import type { LinkConditions, Party } from './passage.ts'
import type { Endpoint } from './sim-bus.ts'

export interface DelayedBusOptions {
  readonly clock: Clock
  /** The bus of the server of this node. */
  readonly busFor: (node: string) => Bus
  readonly links: LinkConditions
}

const CONTROLLER: Party = { node: null }

export class DelayedBus {
  readonly #o: DelayedBusOptions

  constructor(options: DelayedBusOptions) {
    this.#o = options
  }

  endpoint(node: string): Endpoint {
    const bus = this.#o.busFor(node)
    const server: Party = { node }
    let isAlive = true
    const ends = new Set<() => void>()
    /** A dead process receives nothing. */
    const toServer = (arrive: () => void): void => this.#leg(CONTROLLER, server, () => isAlive && arrive())
    const toController = (arrive: () => void): void => this.#leg(server, CONTROLLER, arrive)
    return {
      publish: (subject, message) => void (isAlive && toController(() => bus.publish(subject, message))),
      request: (subject, message, timeoutMs, done) => {
        if (!isAlive) return
        const end = this.#once(timeoutMs, (outcome) => isAlive && done(outcome))
        toController(() =>
          bus.request(subject, message, timeoutMs, (outcome) =>
            outcome.answered ? toServer(() => end(outcome)) : end(outcome),
          ),
        )
      },
      subscribe: (pattern, handler) => {
        let isOpen = true
        const unsubscribe = bus.subscribe(pattern, (message, subject, reply) =>
          toServer(
            () =>
              isOpen && handler(message, subject, (answer) => isAlive && toController(() => reply(answer))),
          ),
        )
        const end = (): void => {
          isOpen = false
          ends.delete(end)
          unsubscribe()
        }
        ends.add(end)
        return end
      },
      drain: () => Promise.resolve(),
      kill: () => {
        isAlive = false
        for (const end of [...ends]) end()
      },
    }
  }

  deliverHeld(held: readonly (() => void)[]): void {
    for (const deliver of held) this.#o.clock.soon(deliver, RANK_MESSAGE)
  }

  /** The first answer counts, or a timeout: nothing else limits the time of an outgoing request. */
  #once(timeoutMs: DurationMs, done: (outcome: RequestOutcome) => void): (outcome: RequestOutcome) => void {
    const { clock } = this.#o
    let isOver = false
    const end = (outcome: RequestOutcome): void => {
      if (isOver) return
      isOver = true
      cancel()
      done(outcome)
    }
    const cancel = clock.at(
      clock.now() + timeoutMs,
      () => end({ answered: false, why: 'timeout' }),
      RANK_MESSAGE,
    )
    return end
  }

  #leg(from: Party, to: Party, arrive: () => void): void {
    const { clock, links } = this.#o
    const passage = links.passage(from, to)
    deliverCopies(clock, passage, arrive, () => {
      if (!links.isCut(from, to)) arrive()
    })
  }
}
