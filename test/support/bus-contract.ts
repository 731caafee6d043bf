/** The contract of every bus. test/contract/bus.test.ts runs it for each implementation. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Bus, RequestOutcome } from '../../controller/ports/bus.ts'
import type { Envelope } from '../../protocol/envelope.ts'
import type { Heartbeat } from '../../protocol/messages.ts'
import { envelopeOf } from './envelopes.ts'

/** Two connected ends, and their clock. */
export interface BusWorld {
  readonly controller: Bus
  readonly node: Bus
  /** Resolves once the subscriptions made so far are active. */
  settle(): Promise<void>
  /** Resolves when the condition holds; rejects with its name if it never does. */
  until(what: string, holds: () => boolean): Promise<void>
  /** Advances its clock by this time. */
  pass(ms: number): Promise<void>
  close(): Promise<void>
}

const TIMEOUT_MS = 10_000
const SHORT_MS = 200

export function busContract(name: string, makeWorld: () => Promise<BusWorld>): void {
  describe(`${name} satisfies the contract of a bus`, () => {
    let world: BusWorld
    beforeEach(async () => {
      world = await makeWorld()
    })
    afterEach(() => world.close())

    const ask = async (
      bus: Bus,
      subject: string,
      message: Envelope,
      timeoutMs = TIMEOUT_MS,
    ): Promise<RequestOutcome> => {
      const outcomes: RequestOutcome[] = []
      bus.request(subject, message, timeoutMs, (outcome) => outcomes.push(outcome))
      await world.until(`an outcome of the request on ${subject}`, () => outcomes.length > 0)
      expect(outcomes).toHaveLength(1)
      return outcomes[0] as RequestOutcome
    }

    it('carries a complete request to a subscriber, and the answer back', async () => {
      const heard: [Envelope, string][] = []
      const answer = envelopeOf({ op: 'events_ack', up_to: 7 })
      world.controller.subscribe('gpu.v1.node.*.heartbeat', (message, subject, reply) => {
        heard.push([message, subject])
        reply(answer)
      })
      await world.settle()
      const message = envelopeOf(aHeartbeat('grüße 🎈'))
      expect(await ask(world.node, 'gpu.v1.node.n1.heartbeat', message)).toEqual({ answered: true, answer })
      expect(heard).toEqual([[message, 'gpu.v1.node.n1.heartbeat']])
    })

    it('matches each of many requests with its own answer, whatever the order of the answers', async () => {
      const waiting: (() => void)[] = []
      world.controller.subscribe('gpu.v1.node.*.event', (message, _subject, reply) => {
        waiting.push(() => reply(envelopeOf({ op: 'events_ack', up_to: message.seq }, message.id)))
      })
      await world.settle()
      const sent = Array.from({ length: 500 }, () => envelopeOf(aHeartbeat('n1')))
      const answers = new Map<string, string>()
      for (const message of sent) {
        world.node.request('gpu.v1.node.n1.event', message, TIMEOUT_MS, (outcome) => {
          if (outcome.answered) answers.set(message.id, outcome.answer.id)
        })
      }
      await world.until('all requests are heard', () => waiting.length === sent.length)
      waiting.reverse().forEach((answer) => answer())
      await world.until('all are answered', () => answers.size === sent.length)
      expect([...answers].every(([asked, answered]) => asked === answered)).toBe(true)
    })

    it('delivers published messages in order per sender, and tolerates a reply to one', async () => {
      const heard: string[] = []
      world.controller.subscribe('gpu.v1.node.*.telemetry', (message, _subject, reply) => {
        heard.push(message.id)
        reply(message)
      })
      await world.settle()
      const sent = Array.from({ length: 1000 }, () => envelopeOf(aHeartbeat('n1')))
      for (const message of sent) world.node.publish('gpu.v1.node.n1.telemetry', message)
      await world.until('all are heard', () => heard.length === sent.length)
      expect(heard).toEqual(sent.map(({ id }) => id))
    })

    it('matches * with one part of a subject, not with two or none', async () => {
      const heard: string[] = []
      world.controller.subscribe('gpu.v1.node.*.hello', (_message, subject) => heard.push(subject))
      world.controller.subscribe('gpu.v1.end', (_message, subject) => heard.push(subject))
      await world.settle()
      const subjects = [
        'gpu.v1.node.a.b.hello',
        'gpu.v1.node.hello',
        'gpu.v1.node.a.hello.x',
        'gpu.v1.node.a.hello',
        'gpu.v1.end',
      ]
      for (const subject of subjects) world.node.publish(subject, envelopeOf(aHeartbeat('a')))
      await world.until('the last is heard', () => heard.includes('gpu.v1.end'))
      expect(heard).toEqual(['gpu.v1.node.a.hello', 'gpu.v1.end'])
    })

    it('A request without a listener fails at once', async () => {
      expect(await ask(world.node, 'gpu.v1.absent', envelopeOf(aHeartbeat('a')))).toEqual({
        answered: false,
        why: 'no_responder',
      })
    })

    it('ends a request at its timeout, once, whatever arrives later', async () => {
      const replies: (() => void)[] = []
      world.controller.subscribe('gpu.v1.slow', (message, _subject, reply) =>
        replies.push(() => reply(message)),
      )
      await world.settle()
      const outcomes: RequestOutcome[] = []
      world.node.request('gpu.v1.slow', envelopeOf(aHeartbeat('a')), SHORT_MS, (outcome) =>
        outcomes.push(outcome),
      )
      await world.until('it has an outcome', () => outcomes.length > 0)
      replies.forEach((reply) => reply())
      await world.pass(SHORT_MS)
      expect(outcomes).toEqual([{ answered: false, why: 'timeout' }])
    })

    it('takes the first of two replies', async () => {
      world.controller.subscribe('gpu.v1.twice', (message, _subject, reply) => {
        reply(envelopeOf(message.body, 'first'))
        reply(envelopeOf(message.body, 'second'))
      })
      await world.settle()
      const outcomes: RequestOutcome[] = []
      world.node.request('gpu.v1.twice', envelopeOf(aHeartbeat('a')), TIMEOUT_MS, (outcome) =>
        outcomes.push(outcome),
      )
      await world.until('it has an outcome', () => outcomes.length > 0)
      await world.pass(SHORT_MS)
      expect(outcomes).toMatchObject([{ answered: true, answer: { id: 'first' } }])
    })

    it('delivers nothing to a subscription that has ended', async () => {
      let heard = 0
      const end = world.controller.subscribe('gpu.v1.node.*.hello', (message, _subject, reply) => {
        heard += 1
        reply(message)
      })
      await world.settle()
      const message = envelopeOf(aHeartbeat('a'))
      expect(await ask(world.node, 'gpu.v1.node.a.hello', message)).toMatchObject({ answered: true })
      end()
      await world.settle()
      expect(await ask(world.node, 'gpu.v1.node.a.hello', message)).toEqual({
        answered: false,
        why: 'no_responder',
      })
      expect(heard).toBe(1)
    })

    it('delivers messages in flight when drained, and every request has an outcome', async () => {
      const heard: string[] = []
      world.controller.subscribe('gpu.v1.last', (message) => heard.push(message.id))
      await world.settle()
      const message = envelopeOf(aHeartbeat('a'))
      for (let each = 0; each < 100; each++) world.node.publish('gpu.v1.last', message)
      await world.node.drain()
      await world.until('all are heard', () => heard.length === 100)
      world.node.publish('gpu.v1.last', message)
      expect(await ask(world.node, 'gpu.v1.last', message)).toEqual({ answered: false, why: 'disconnected' })
      await world.pass(SHORT_MS)
      expect(heard).toHaveLength(100)
    })
  })
}

export function aHeartbeat(nodeId: string): Heartbeat {
  return {
    op: 'heartbeat',
    node_id: nodeId,
    gpus: [{ index: 0, model: 'L4', physical_mib: 24_576, foreign_mib: 0 }],
    tasks: [],
    finished_unacked: [],
  }
}
