import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { FastifyInstance } from 'fastify'
import { createApi } from '../../controller/api/server.ts'
import { MAX_WAITING, TaskWaits } from '../../controller/api/tasks/task-waits.ts'
import { DurableEvents } from '../../controller/engine/durable-events.ts'
import { FakeController, NODE_ID } from '../support/api-world.ts'
import { until } from '../support/live-cluster.ts'

function event(taskId: string) {
  return {
    seq: 1,
    at: 0,
    kind: 'task_started',
    taskId,
    nodeId: null,
    causedBy: null,
    by: null,
    data: {},
  } as const
}

describe('a wait', () => {
  let world: FakeController
  let events: DurableEvents
  let listeners = 0
  let app: FastifyInstance
  let url: string
  let id: string
  beforeEach(async () => {
    world = new FakeController()
    events = new DurableEvents()
    listeners = 0
    const counted = {
      subscribe: (listener: Parameters<DurableEvents['subscribe']>[0]) => {
        listeners += 1
        const end = events.subscribe(listener)
        return () => {
          listeners -= 1
          end()
        }
      },
    }
    app = createApi({ commands: world.commands, views: world.views, version: 'test', events: counted })
    url = `${await app.listen({ host: '127.0.0.1', port: 0 })}/api/v1`
    await world.addNode({ id: NODE_ID, gpus: 1, physicalMib: 1000 })
    id = await submit('')
  })
  afterEach(() => app.close())

  const submit = async (query: string) => {
    const answer = await fetch(`${url}/tasks${query}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ vram_mib: 100 }),
    })
    const body = (await answer.json()) as { readonly id: string; readonly state: string }
    return query === '' ? body.id : `${answer.status} ${body.state}`
  }
  const get = async (query: string) => {
    const answer = await fetch(`${url}/tasks/${id}${query}`)
    return {
      status: answer.status,
      body: (await answer.json()) as { readonly state: string; readonly errors?: unknown },
    }
  }
  const someoneWaits = () => until('a request waits', () => listeners > before())
  /** The event feed also listens. */
  let idle = 0
  const before = () => idle
  beforeEach(() => {
    idle = listeners
  })

  it('until the start is answered once the start is durable, regardless of other tasks', async () => {
    const answer = get('?wait=30s&until=started')
    await someoneWaits()
    events.publish([event('another')])
    world.place(id, NODE_ID)
    events.publish([event(id)])
    expect((await answer).body.state).toBe('running')
    expect(listeners).toBe(idle)
  })

  it('until the end continues after the start', async () => {
    const answer = get('?wait=30s')
    await someoneWaits()
    world.place(id, NODE_ID)
    events.publish([event(id)])
    world.finish(id, 'completed')
    events.publish([event(id)])
    expect((await answer).body.state).toBe('completed')
  })

  it('returns at once if its condition already holds, and when its time has passed', async () => {
    expect((await get('?wait=1ms')).body.state).toBe('pending')
    world.finish(id, 'failed')
    expect((await get('?wait=60s')).body.state).toBe('failed')
    expect(listeners).toBe(idle)
  })

  it('of a submission is answered with 201 when its time has passed', async () => {
    expect(await submit('?wait=5ms')).toBe('201 pending')
  })

  it('A wait is answered when the server closes, without delaying the server', async () => {
    const answer = fetch(`${url}/tasks/${id}?wait=60s`).then(
      (response) => response.status,
      () => 'cut off',
    )
    await someoneWaits()
    await app.close()
    expect([200, 'cut off']).toContain(await answer)
    expect(listeners).toBe(0)
  })

  it('ends when its client disconnects', async () => {
    const gone = new AbortController()
    const answer = fetch(`${url}/tasks/${id}?wait=60s`, { signal: gone.signal }).catch(() => 'gone')
    await someoneWaits()
    gone.abort()
    expect(await answer).toBe('gone')
    await until('no request waits', () => listeners === idle)
  })

  it.each(['61s', '60001ms', '99s', '1m', '30', '-1s', '1.5s', '5ms5s', ''])(
    'A wait with %s is refused',
    async (text) => {
      expect(await get(`?wait=${text}`)).toMatchObject({
        status: 400,
        body: { errors: [{ pointer: '/wait' }] },
      })
    },
  )
})

it('The number of concurrent waits is limited', async () => {
  const waits = new TaskWaits(new DurableEvents())
  const waiting = { taskId: 't', isOver: () => false, ms: 60_000, signal: new AbortController().signal }
  const all = Array.from({ length: MAX_WAITING }, () => waits.wait(waiting))
  await expect(waits.wait(waiting)).rejects.toMatchObject({ code: 'too_many_streams' })
  expect(waits.waiting).toBe(MAX_WAITING)
  waits.close()
  await Promise.all(all)
  await waits.wait(waiting)
  expect(waits.waiting).toBe(0)
})
