/** A server turns to the next leader as soon as it hears of it; the one before may be stopped (R9). */
import { describe, expect, it } from 'vitest'
import { acknowledgeAll } from '../support/scripted-bus.ts'
import { ServerCoreHarness } from '../support/server-core-harness.ts'

const SPREAD_MS = 500

describe('a server that hears the announcement of a leader', () => {
  it('sends a heartbeat within half a second, once for each epoch', () => {
    const h = new ServerCoreHarness({ settings: { heartbeat_ms: 60_000 } })
    const heartbeatsAfter = (epoch: number) => {
      const before = h.bus.of('heartbeat').length
      h.bus.announce(epoch)
      h.advance(SPREAD_MS)
      return h.bus.of('heartbeat').length - before
    }
    // Its own leader, an earlier one, the next one, the same again, and one after that.
    expect([1, 0, 2, 2, 1, 3].map(heartbeatsAfter)).toEqual([0, 0, 1, 0, 0, 1])
  })

  it('obeys that leader only after its answer, and the leader before until then', () => {
    const h = new ServerCoreHarness()
    h.run('a')
    h.bus.announce(2)
    const stop = { op: 'stop', task_id: 'a', attempt: 1, reason: '', ...h.address() } as const
    expect(h.bus.tell(h.bus.envelope(stop, 2))).toBe(null)
    expect(h.start('b', { epoch: 1 })).toMatchObject({ outcome: 'accepted' })
    h.bus.epoch = 2
    h.advance(SPREAD_MS)
    expect(h.start('c', { epoch: 1 })).toMatchObject({ outcome: 'refused', reason: 'stale_epoch' })
    expect(h.command(stop, 2)).toMatchObject({ outcome: 'accepted' })
  })

  it('drops a hello to the leader before: ignores its answer, and says hello again', () => {
    const h = new ServerCoreHarness({ isStarted: false })
    h.bus.answerAfterMs = 4_900
    h.core.start()
    h.advance(4_899)
    h.bus.announce(2)
    h.advance(1)
    expect(h.storage.kept.highestEpoch).toBe(0)
    h.bus.epoch = 2
    h.bus.answerAfterMs = 0
    h.advance(SPREAD_MS)
    expect(h.storage.kept.highestEpoch).toBe(2)
    h.advance(10_000)
    expect(h.bus.of('hello')).toHaveLength(2)
  })
})

describe('events that the leader before has not acknowledged', () => {
  const repeatedTo = (h: ServerCoreHarness, epoch: number) => {
    const before = h.bus.of('events').length
    h.bus.epoch = epoch
    h.bus.announce(epoch)
    h.bus.script.events = acknowledgeAll
    h.advance(SPREAD_MS)
    return h.bus.of('events').slice(before)
  }

  it('are sent again as soon as the next leader answers: the request to the one before is dropped', () => {
    const h = new ServerCoreHarness()
    h.run('a')
    h.run('b')
    h.bus.script.events = () => null
    h.exit('a')
    const sent = h.bus.of('events').at(-1)
    expect(repeatedTo(h, 2).map(({ id }) => id)).toEqual([sent?.id])
    // The outcome of the dropped request comes while the next events wait for their answer.
    h.bus.script.events = () => null
    h.exit('b')
    h.advance(4_999)
    expect(h.bus.of('events').at(-1)?.body).toMatchObject({ entries: [{ task_id: 'b' }] })
    expect(h.bus.of('events').filter(({ body }) => JSON.stringify(body).includes('"b"'))).toHaveLength(2)
  })

  it('do not wait for a retry either', () => {
    const h = new ServerCoreHarness()
    h.bus.script.events = () => ({ op: 'refused', reason: 'wrong_sender' })
    h.run('a')
    // Retries are 8 s apart and more by now.
    h.advance(60_000)
    const { length } = h.bus.of('events')
    while (h.bus.of('events').length === length) h.advance(100)
    expect(repeatedTo(h, 2)).toHaveLength(1)
  })
})
