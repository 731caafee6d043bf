/** Network faults between servers and a controller on a bus of another implementation. */
import { describe, expect, it } from 'vitest'
import type { RequestOutcome } from '../../controller/ports/bus.ts'
import type { Envelope } from '../../protocol/envelope.ts'
import { FaultTally } from '../../simulator/results/fault-tally.ts'
import { LinkFaults, type LinkFault } from '../../simulator/network/link-faults.ts'
import { DelayedBus } from '../../simulator/network/delayed-bus.ts'
import { seededStream } from '../../simulator/kernel/seeded-random.ts'
import { plainBus } from '../support/plain-bus.ts'
import { VirtualClock } from '../../simulator/kernel/virtual-clock.ts'

const TIMEOUT_MS = 2_000
const link = (node: string, direction: 'both' | 'to_controller' | 'from_controller' = 'both') => ({
  nodes: [node],
  direction,
})

/** Creates a controller that echoes every message, and asks n1 on command. */
function world() {
  const clock = new VirtualClock(0)
  const bus = plainBus(clock)
  const tally = new FaultTally()
  const links = new LinkFaults(seededStream(1, 'links'), tally)
  const delayed = new DelayedBus({ clock, busFor: () => bus, links })
  const heard: string[] = []
  bus.subscribe('word.*', (message, subject, reply) => {
    heard.push(`${clock.now()} ${subject} ${message.id}`)
    reply(message)
  })
  const say = (id: string): Envelope => ({ id }) as Envelope
  const ask = (endpoint: ReturnType<DelayedBus['endpoint']>, id: string): string[] => {
    const answers: string[] = []
    const done = (outcome: RequestOutcome): void =>
      void answers.push(`${clock.now()} ${outcome.answered ? outcome.answer.id : outcome.why}`)
    endpoint.request('word.n1', say(id), TIMEOUT_MS, done)
    return answers
  }
  const run = (ms: number): void => {
    const until = clock.now() + ms
    clock.run(until, () => false)
    clock.advanceTo(until)
  }
  return { clock, bus, tally, links, delayed, heard, say, ask, run }
}

const fault = <K extends LinkFault['kind']>(kind: K, more: object): LinkFault =>
  ({ kind, atMs: 0, forMs: 1_000, link: link('n1'), ...more }) as LinkFault

describe('a delayed bus', () => {
  it('carries messages and answers while there is no fault', () => {
    const { delayed, heard, ask, run } = world()
    const answers = ask(delayed.endpoint('n1'), 'a')
    run(1)
    expect([heard, answers]).toEqual([['0 word.n1 a'], ['0 a']])
  })

  it('drops messages only in the direction of a partition, without notice to the sender', () => {
    for (const [direction, isHeard] of [
      ['both', false],
      ['to_controller', false],
      ['from_controller', true],
    ] as const) {
      const { links, delayed, heard, ask, run, tally } = world()
      links.begin(fault('partition', { link: link('n1', direction) }))
      const [cutOff, other] = [ask(delayed.endpoint('n1'), 'a'), ask(delayed.endpoint('n2'), 'b')]
      run(TIMEOUT_MS)
      expect(cutOff).toEqual([`${TIMEOUT_MS} timeout`])
      expect(other).toEqual(['0 b'])
      expect(heard.some((each) => each.endsWith(' a'))).toBe(isHeard)
      expect(tally.fired('partition')).toBe(1)
    }
  })

  it('keeps the messages of a hold and delivers them in their order', () => {
    const { links, delayed, heard, say, run } = world()
    const hold = fault('hold', {})
    links.begin(hold)
    const endpoint = delayed.endpoint('n1')
    for (const id of ['a', 'b']) endpoint.publish('word.n1', say(id))
    run(500)
    expect(heard).toEqual([])
    delayed.deliverHeld(links.end(hold))
    run(1)
    expect(heard).toEqual(['500 word.n1 a', '500 word.n1 b'])
  })

  it('delays and duplicates messages; the first of two answers counts', () => {
    const { links, delayed, heard, ask, say, run } = world()
    const [late, double] = [
      fault('delay', { ms: 300, permille: 1000 }),
      fault('duplicate', { permille: 1000 }),
    ]
    links.begin(late)
    links.begin(double)
    const endpoint = delayed.endpoint('n1')
    const answers = ask(endpoint, 'a')
    run(1_000)
    expect([heard, answers]).toEqual([['300 word.n1 a', '300 word.n1 a'], ['600 a']])
    endpoint.publish('word.n1', say('b'))
    links.begin(fault('partition', {}))
    run(1_000)
    expect(heard).toHaveLength(2)
  })

  it('delivers nothing to a dead process and nothing from it', () => {
    const { links, delayed, bus, heard, ask, say, run } = world()
    const endpoint = delayed.endpoint('n1')
    const commands: string[] = []
    endpoint.subscribe('node.n1', (message, _subject, reply) => {
      commands.push(message.id)
      reply(message)
    })
    const outcomes: string[] = []
    const command = (id: string): void =>
      bus.request('node.n1', say(id), TIMEOUT_MS, (outcome) =>
        outcomes.push(outcome.answered ? outcome.answer.id : outcome.why),
      )
    command('first')
    run(1)
    links.begin(fault('delay', { ms: 100, permille: 1000 }))
    const answers = ask(endpoint, 'a')
    command('second')
    endpoint.kill()
    endpoint.publish('word.n1', say('never'))
    command('third')
    run(5_000)
    expect([commands, outcomes, answers]).toEqual([['first'], ['first', 'no_responder'], []])
    expect(heard).toEqual(['101 word.n1 a'])
  })
})
