/** Event streams: no event is missing or repeated, and one slow reader does not delay the others. */
import type { Readable } from 'node:stream'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { EventFeed } from '../../controller/api/observe/event-feed.ts'
import {
  MAX_WAITING_BYTES,
  type ReaderTimers,
  type WantedEvents,
} from '../../controller/api/observe/event-reader.ts'
import type { EventKind } from '../../controller/model/event.ts'
import { streamEvents } from '../../clients/typescript/event-stream.ts'
import { FakeController } from '../support/api-world.ts'

const ALL: WantedEvents = { filter: { kinds: null, taskId: null, nodeId: null }, wantsSummary: false }
const ofKind = (...kinds: EventKind[]): WantedEvents => ({ ...ALL, filter: { ...ALL.filter, kinds } })

/** A clock that the test advances. */
class ManualTimers implements ReaderTimers {
  #now = 0
  #timers: { at: number; fn: () => void }[] = []

  after(ms: number, fn: () => void): () => void {
    const timer = { at: this.#now + ms, fn }
    this.#timers.push(timer)
    return () => {
      this.#timers = this.#timers.filter((each) => each !== timer)
    }
  }

  /** Runs everything that is due in these milliseconds in order; promises are settled in between. */
  async pass(ms: number): Promise<void> {
    const end = this.#now + ms
    for (;;) {
      await settled()
      const next = this.#timers.toSorted((a, b) => a.at - b.at)[0]
      if (next === undefined || next.at > end) break
      this.#now = next.at
      this.#timers = this.#timers.filter((each) => each !== next)
      next.fn()
    }
    this.#now = end
    await settled()
  }
}

const settled = () => new Promise<void>((resolve) => setImmediate(resolve))

interface Heard {
  readonly body: Readable
  readonly chunks: Buffer[]
  text(): string
  /** Sequence numbers of the events, in order of arrival. */
  seqs(): number[]
  /** All ids that were sent, in order. */
  ids(): number[]
}

function makeFeed(world = new FakeController(), summary: () => object | null = () => ({})) {
  const timers = new ManualTimers()
  const feed = new EventFeed({ source: world.durable, stored: world.views.stored, summary, timers })
  const listen = async (after: number | null, wanted = ALL): Promise<Heard> => {
    const heard = hear(await feed.open(after, wanted))
    await settled()
    return heard
  }
  return { world, timers, feed, listen }
}

function hear(body: Readable): Heard {
  const chunks: Buffer[] = []
  body.on('data', (chunk: Buffer) => chunks.push(chunk))
  const text = () => Buffer.concat(chunks).toString()
  const numbers = (pattern: RegExp) => [...text().matchAll(pattern)].map(([, number]) => Number(number))
  return {
    body,
    chunks,
    text,
    seqs: () => numbers(/^event: event\nid: (\d+)$/gm),
    ids: () => numbers(/^id: (\d+)$/gm),
  }
}

const upTo = (count: number, from = 1) => Array.from({ length: count - from + 1 }, (_, index) => from + index)

describe('an event stream', () => {
  test('sends new events, and first the current position', async () => {
    const { world, timers, listen } = makeFeed()
    world.happen('config_changed', 'config_changed')
    const heard = await listen(null)
    expect([heard.seqs(), heard.ids()]).toEqual([[], [2]])
    world.happen('task_placed')
    world.happen('task_started')
    await timers.pass(200)
    expect(heard.seqs()).toEqual([3, 4])
    const events = []
    for await (const event of streamEvents(heard.chunks as unknown as AsyncIterable<Uint8Array>))
      events.push(event)
    expect(events[0]).toMatchObject({ event: 'event', id: '3' })
    expect(JSON.parse(events[0]?.data ?? '')).toMatchObject({
      seq: 3,
      kind: 'task_placed',
      caused_by: null,
      by: null,
    })
  })

  test('sends the same bytes to all readers, because each event is encoded once', async () => {
    const { world, timers, listen } = makeFeed()
    const readers = [await listen(null), await listen(null), await listen(null)]
    for (let round = 0; round < 3; round++) {
      world.happen('task_placed', 'task_started')
      await timers.pass(200)
    }
    const [first, ...others] = readers.map((reader) => reader.chunks.slice(-2))
    expect(first?.[0]?.length).toBeGreaterThan(100)
    for (const other of others) other.forEach((chunk, index) => expect(chunk).toBe(first?.[index]))
  })

  test('collects the events of 200 ms, but no more than 512 events', async () => {
    const { world, timers, listen } = makeFeed()
    const heard = await listen(null)
    world.happen('task_placed')
    await timers.pass(199)
    expect(heard.seqs()).toEqual([])
    await timers.pass(1)
    expect(heard.seqs()).toEqual([1])
    world.happen(...upTo(512).map(() => 'task_placed' as const))
    await settled()
    expect(heard.seqs()).toEqual(upTo(513))
  })

  test('continues after an event: first from the store, then live', async () => {
    const { world, timers, listen } = makeFeed()
    world.happen(...upTo(1700).map(() => 'task_placed' as const))
    const heard = await listen(5)
    world.happen('task_started')
    await timers.pass(200)
    expect(heard.seqs()).toEqual(upTo(1701, 6))
  })

  test('sends only the requested events, and the id advances with all events', async () => {
    const { world, timers, listen } = makeFeed()
    world.happen(['task_placed', { taskId: 'a' }], 'config_changed')
    const kinds = await listen(0, ofKind('config_changed', 'group_changed'))
    const task = await listen(0, { ...ALL, filter: { ...ALL.filter, taskId: 'a' } })
    world.happen(
      'group_changed',
      ['task_started', { taskId: 'a', nodeId: 'n' }],
      ['task_started', { taskId: 'b', nodeId: 'n' }],
    )
    const node = await listen(2, { ...ALL, filter: { ...ALL.filter, nodeId: 'n' } })
    await timers.pass(200)
    expect([kinds.seqs(), task.seqs(), node.seqs()]).toEqual([
      [2, 3],
      [1, 4],
      [4, 5],
    ])
    world.happen('task_placed')
    await timers.pass(15_000)
    expect(kinds.ids().at(-1)).toBe(6)
    expect(kinds.text()).toContain(': still here\n')
  })

  test('has a heartbeat every 15 s, and ids that never decrease', async () => {
    const { world, timers, listen } = makeFeed()
    world.happen('config_changed')
    const heard = await listen(null)
    await timers.pass(45_000)
    expect(heard.text().match(/: still here\n/g)).toHaveLength(3)
    // Durable, but published only later.
    const untold = world.addEvent('task_placed')
    const early = await listen(0)
    expect(early.seqs()).toEqual([1, 2])
    await timers.pass(15_000)
    world.durable.publish([untold])
    await timers.pass(15_000)
    expect([heard.seqs(), early.seqs()]).toEqual([[2], [1, 2]])
    for (const { ids } of [heard, early]) expect(ids()).toEqual(ids().toSorted((a, b) => a - b))
  })

  test('has no gap and no repetition for any reader, whatever happens while it catches up', async () => {
    // Each step happens at one read of the store: published events, durable events that are published with
    // the next step, or a pause.
    const step = fc.oneof(
      fc.integer({ min: 1, max: 30 }),
      fc.constantFrom(700, 2500),
      fc.constant('untold' as const),
      fc.constant('pause' as const),
    )
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { minLength: 3, maxLength: 15 }),
        fc.array(fc.nat(), { minLength: 1, maxLength: 4 }),
        async (steps, starts) => {
          const { world, timers, feed, listen } = makeFeed()
          world.happen(...upTo(40).map(() => 'task_placed' as const))
          const untold: ReturnType<typeof world.addEvent>[] = []
          const queue = [...steps]
          const take = (): void => {
            const next = queue.shift()
            if (next === 'untold') return void untold.push(world.addEvent('task_placed'))
            world.durable.publish(untold.splice(0))
            if (typeof next === 'number') world.happen(...upTo(next).map(() => 'task_placed' as const))
          }
          const read = world.views.stored.events.bind(world.views.stored)
          world.views.stored.events = async (query) => {
            const found = await read(query)
            take()
            return found
          }
          const readers: { readonly from: number; readonly heard: Heard }[] = []
          for (const start of starts) {
            const from = start % ((await world.views.stored.eventRange()).lastSeq + 1)
            readers.push({ from, heard: await listen(from) })
            take()
            await timers.pass(start % 300)
          }
          while (queue.length > 0) {
            take()
            await timers.pass(50)
          }
          world.durable.publish(untold.splice(0))
          await timers.pass(1_000)
          const { lastSeq } = await world.views.stored.eventRange()
          for (const { from, heard } of readers) expect(heard.seqs()).toEqual(upTo(lastSeq, from + 1))
          await Promise.all([feed.close(), timers.pass(2_000)])
        },
      ),
      { numRuns: 60 },
    )
  })
})

describe('a position in the event stream', () => {
  async function prunedTo(first: number) {
    const made = makeFeed()
    made.world.happen(...upTo(20).map(() => 'task_placed' as const))
    made.world.events.splice(0, first - 1)
    return made
  }

  test.each([1, 9, 21, 99])(
    '%i is gone if the next event is no longer kept or never existed',
    async (after) => {
      const { feed } = await prunedTo(11)
      await expect(feed.open(after, ALL)).rejects.toMatchObject({
        code: 'events_gone',
        status: 410,
        message: expect.stringMatching(/continue from event 20/),
      })
    },
  )

  test.each([
    [0, upTo(20, 11)],
    [10, upTo(20, 11)],
    [20, []],
  ])('%i is available', async (after, seqs) => {
    const { listen } = await prunedTo(11)
    expect((await listen(after)).seqs()).toEqual(seqs)
  })

  test('that is lost while the reader catches up ends its stream with a message', async () => {
    const { world, feed } = makeFeed()
    world.happen(...upTo(1200).map(() => ['task_placed', { data: { text: 'x'.repeat(200) } }] as const))
    // It reads nothing for now.
    const body = await feed.open(3, ALL)
    await settled()
    world.happen(...upTo(3000).map(() => 'task_placed' as const))
    world.events.splice(0, 4000)
    const heard = hear(body)
    await expect
      .poll(() => heard.text())
      .toMatch(/: the events that follow are no longer stored; reconnect with Last-Event-ID\n\n$/)
  })
})

describe('a reader of the event stream', () => {
  test('that reads nothing is disconnected with a message, and the others continue', async () => {
    const { world, timers, feed, listen } = makeFeed()
    const slow = await feed.open(null, ALL)
    const quick = await listen(null)
    await settled()
    const text = 'x'.repeat(10_000)
    const rounds = Math.ceil(MAX_WAITING_BYTES / 10_000 / 100) + 1
    for (let round = 0; round < rounds; round++) {
      world.happen(...upTo(100).map(() => ['task_placed', { data: { text } }] as const))
      await timers.pass(200)
    }
    expect(slow.readableLength).toBeLessThanOrEqual(MAX_WAITING_BYTES + 200)
    const late = hear(slow)
    await expect.poll(() => slow.destroyed).toBe(true)
    expect(late.text()).toMatch(
      /: the client reads too slowly: more than 4194304 bytes are waiting; reconnect with Last-Event-ID\n\n$/,
    )
    expect(quick.seqs()).toEqual(upTo(rounds * 100))
    const last = late.ids().at(-1) ?? 0
    expect([...late.seqs(), ...(await listen(last)).seqs()]).toEqual(upTo(rounds * 100))
  })

  test('that was disconnected and still reads nothing is cut off after 10 s', async () => {
    const { world, timers, feed } = makeFeed()
    const slow = await feed.open(null, ALL)
    await settled()
    for (let round = 0; round < 2; round++) {
      world.happen(['group_changed', { data: { text: 'x'.repeat(3_000_000) } }])
      await timers.pass(200)
    }
    expect(slow.destroyed).toBe(false)
    await timers.pass(10_000)
    expect(slow.destroyed).toBe(true)
    expect(feed.size).toBe(0)
  })

  test('over the limit is refused until another one disconnects', async () => {
    const { feed, listen } = makeFeed()
    const readers = await Promise.all(Array.from({ length: 256 }, () => listen(null)))
    await expect(feed.open(null, ALL)).rejects.toMatchObject({
      code: 'too_many_streams',
      headers: { 'retry-after': '5' },
    })
    readers[7]?.body.destroy()
    await settled()
    expect(feed.size).toBe(255)
    await listen(null)
  })

  test('gets earlier events and a message when the controller stops; new readers are refused', async () => {
    const { world, feed, listen } = makeFeed()
    const heard = await listen(null)
    world.happen('task_placed')
    await feed.close()
    expect(heard.seqs()).toEqual([1])
    expect(heard.text()).toMatch(/: the controller is stopping; reconnect with Last-Event-ID\n\n$/)
    await expect(feed.open(null, ALL)).rejects.toMatchObject({ code: 'too_many_streams' })
  })

  test('of a failing store is asked to reconnect', async () => {
    const { world, feed } = makeFeed()
    world.happen('task_placed')
    world.views.stored.events = () => Promise.reject(new Error('disk'))
    const heard = hear(await feed.open(0, ALL))
    await settled()
    expect(heard.text()).toMatch(/: the store does not respond; reconnect with Last-Event-ID\n\n$/)
  })
})

describe('the summary in the event stream', () => {
  test('is sent once a second to readers that requested it, and computed once for all of them', async () => {
    let made = 0
    const { timers, listen } = makeFeed(new FakeController(), () => ({ made: ++made }))
    const without = await listen(null)
    await timers.pass(5_000)
    expect(made).toBe(0)
    const wanting = { ...ALL, wantsSummary: true }
    const readers = [await listen(null, wanting), await listen(null, wanting)]
    await timers.pass(2_500)
    for (const reader of readers) expect(reader.text()).toContain('event: summary\ndata: {"made":3}\n\n')
    expect(made).toBe(3)
    expect(without.text()).not.toContain('summary')
    for (const reader of readers) reader.body.destroy()
    await timers.pass(5_000)
    expect(made).toBe(3)
  })

  test('is not sent any more once it is null, because a commit has failed', async () => {
    let left = 2
    const { timers, listen } = makeFeed(new FakeController(), () => (left > 0 ? { left: --left } : null))
    const reader = await listen(null, { ...ALL, wantsSummary: true })
    await timers.pass(5_000)
    expect(reader.text().match(/event: summary/g)).toHaveLength(2)
  })
})
