import type { AttemptRecord } from '../../protocol/messages.ts'
import { connect } from 'node:net'
import { describe, expect, test } from 'vitest'
import { createClient } from '../../clients/typescript/client.ts'
import { streamEvents } from '../../clients/typescript/event-stream.ts'
import { askedApi } from '../support/asked.ts'
import { apiClient } from '../support/api-client.ts'
import { FakeController, NODE_ID } from '../support/api-world.ts'

const TASK = { vram_mib: 1000 }

async function worldOfEvents() {
  const world = new FakeController()
  const api = await apiClient(world)
  const { id } = (await api.send('POST', '/tasks', TASK)).body
  const kinds = ['task_submitted', 'task_placed', 'config_changed'] as const
  for (let seq = 1; seq <= 12; seq += 1) {
    world.now = Date.UTC(2026, 0, 1, 0, 0, seq)
    world.addEvent(kinds[seq % 3] ?? 'task_placed', {
      taskId: seq % 2 === 0 ? id : null,
      nodeId: seq % 4 === 0 ? NODE_ID : null,
      by: 'alice',
    })
  }
  const seqs = async (path: string) => {
    const { status, body } = await api.send('GET', path)
    expect(status, JSON.stringify(body)).toBe(200)
    return body.items.map((event: { seq: number }) => event.seq) as number[]
  }
  return { world, api, id: String(id), seqs }
}

describe('GET /events', () => {
  test('filters by kind, task, node and time, alone and together', async () => {
    const { id, seqs } = await worldOfEvents()
    expect(await seqs('/events?kind=config_changed')).toEqual([2, 5, 8, 11])
    expect(await seqs('/events?kind=config_changed,task_placed&after=3&limit=3')).toEqual([4, 5, 7])
    expect(await seqs(`/events?task=${id}&kind=config_changed`)).toEqual([2, 8])
    expect(await seqs(`/events?node=${NODE_ID}`)).toEqual([4, 8, 12])
    expect(await seqs('/events?since=2026-01-01T00:00:03Z&until=2026-01-01T00:00:05.500Z')).toEqual([3, 4, 5])
    expect(await seqs('/events?since=2027-01-01T00:00:00Z')).toEqual([])
  })

  test('pages through all events in either order', async () => {
    const { api } = await worldOfEvents()
    const all: number[] = []
    for (let before: number | null = 13; before !== null;) {
      const { body } = await api.send('GET', `/events?order=newest&limit=5&before=${before}`)
      all.push(...body.items.map((event: { seq: number }) => event.seq))
      before = body.next_before
    }
    expect(all).toEqual([12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1])
    const { body } = await api.send('GET', '/events?limit=5&after=9')
    expect(body).toMatchObject({ next_after: 12, next_before: null, first_seq: 1, last_seq: 12 })
  })

  test('names the tasks and nodes of its events, also from their data and after they ended', async () => {
    const { world, api, id } = await worldOfEvents()
    const named = async (name: string) =>
      (await api.send('POST', '/tasks', { ...TASK, name })).body.id as string
    const [victim, eager, nobody] = [await named('victim'), await named('eager'), 'no-longer-kept']
    await world.addNode({ id: NODE_ID, gpus: 1, physicalMib: 40_000 })
    world.addEvent('swap_decided', {
      taskId: eager,
      nodeId: NODE_ID,
      data: {
        victims: [
          { id: victim, gpu: 0 },
          { id: nobody, gpu: 0 },
        ],
      },
    })
    world.addEvent('task_residency', {
      taskId: victim,
      nodeId: NODE_ID,
      data: { residency: 'swapped_out', because: `for ${eager}` },
    })
    world.finish(eager, 'completed')
    const { body } = await api.send('GET', '/events?kind=swap_decided')
    expect(body.names).toEqual({ [victim]: 'victim', [eager]: 'eager', [NODE_ID]: 'node-1' })
    expect((await api.send('GET', '/events?kind=task_residency')).body.names).toEqual(body.names)
    expect(Object.keys((await api.send('GET', `/tasks/${id}/events?limit=1`)).body.names)).toEqual([id])
  })

  test('names the actor of each event', async () => {
    const { api } = await worldOfEvents()
    expect((await api.send('GET', '/events?limit=1')).body.items[0]).toMatchObject({
      seq: 1,
      kind: 'task_placed',
      by: 'alice',
    })
  })

  test.each([
    'before=9007199254740991',
    'after=9007199254740990',
    'since=2024-02-29T23:59:59.999Z',
    'kind=task_placed,task_placed',
  ])('accepts ?%s', async (query) => {
    const { api } = await worldOfEvents()
    expect((await api.send('GET', `/events?${query}`)).status).toBe(200)
  })

  test.each([
    ['kind=task_placed,nonsense', '/kind', /one or more of config_changed, .*got "task_placed,nonsense"/],
    ['kind=', '/kind', /./],
    ['kind=task_placed,', '/kind', /./],
    ['since=yesterday', '/since', /a time in UTC/],
    ['since=2026-02-31T00:00:00Z', '/since', /a time in UTC/],
    ['since=0000-00-00T00:00:00Z', '/since', /a time in UTC/],
    ['since=2025-02-29T00:00:00Z', '/since', /a time in UTC/],
    ['since=2026-01-31T24:00:00Z', '/since', /a time in UTC/],
    ['since=2026-06-30T23:59:60Z', '/since', /a time in UTC/],
    ['since=2026-01-31T08:00:00%2B00:00', '/since', /a time in UTC/],
    ['until=2026-02-31T00:00:00', '/until', /a time in UTC/],
    ['until=2026-13-31T00:00:00Z', '/until', /a time in UTC/],
    ['order=up', '/order', /oldest, newest/],
    ['before=-1', '/before', /./],
    ['before=9007199254740992', '/before', /0 to 9007199254740991/],
    ['limit=201', '/limit', /1 to 200/],
    ['kinds=task_placed', '/kinds', /./],
  ])('refuses ?%s and names the parameter', async (query, pointer, detail) => {
    const { api } = await worldOfEvents()
    const { status, body } = await api.send('GET', `/events?${query}`)
    expect(status).toBe(400)
    expect(body.errors[0]).toMatchObject({ pointer, detail: expect.stringMatching(detail) })
  })
})

describe('GET /tasks/{task_id}/events', () => {
  test('returns the events of the task, also after the task is final', async () => {
    const { world, id, seqs } = await worldOfEvents()
    expect(await seqs(`/tasks/${id}/events?order=newest&limit=2`)).toEqual([12, 10])
    world.finish(id, 'completed')
    expect(await seqs(`/tasks/${id}/events?kind=task_submitted`)).toEqual([6, 12])
  })

  test('answers 404 for an unknown task, and an empty list if its events are no longer kept', async () => {
    const { world, api, id, seqs } = await worldOfEvents()
    world.events.length = 0
    expect(await seqs(`/tasks/${id}/events`)).toEqual([])
    expect(await api.send('GET', '/tasks/absent/events')).toMatchObject({
      status: 404,
      body: { code: 'not_found' },
    })
    expect((await api.send('GET', `/tasks/${id}/events?task=${id}`)).status).toBe(400)
  })
})

describe('GET /tasks/{task_id}/assignment', () => {
  test('returns the node, GPUs, attempt and generation of a placed task', async () => {
    const { world, api, id } = await worldOfEvents()
    await world.addNode({ id: NODE_ID, gpus: 2, physicalMib: 40_000 })
    world.place(id, NODE_ID, [1], { generation: 3, noswap: 0, residency: 'swapped_out', wantsGpu: false })
    expect(await api.send('GET', `/tasks/${id}/assignment`)).toMatchObject({
      status: 200,
      body: {
        task_id: id,
        state: 'running',
        node_id: NODE_ID,
        node_name: 'node-1',
        node_status: 'up',
        gpus: [1],
        attempt: 0,
        generation: 3,
        residency: 'swapped_out',
        demand_mib: 1000,
        noswap: 0,
        wants_gpu: false,
        on_node_loss: 'wait',
      },
    })
  })

  test('returns where clients reach each declared port, or why they do not', async () => {
    const world = new FakeController()
    world.now = Date.UTC(2026, 0, 1)
    const known = [
      { target: 8001, address: '192.0.2.1:30100', detail: null },
      { target: 8002, address: null, detail: 'no port of the range is free' },
    ]
    let answer: Partial<AttemptRecord> | null = { port_addresses: known }
    const readRecord = () => Promise.resolve(answer as AttemptRecord | null)
    const api = await apiClient(world, { logs: { read: () => Promise.resolve(null), readRecord } })
    const ports = [
      { name: 'api', target: 8001, protocol: 'http' },
      { name: 'debug', target: 8002, protocol: 'tcp' },
    ]
    const { id } = (await api.send('POST', '/tasks', { ...TASK, ports })).body
    await world.addNode({ id: NODE_ID, gpus: 1, physicalMib: 40_000 })
    world.place(id, NODE_ID, [0], { generation: 1, noswap: 0, startedAt: world.now })
    const portsNow = async () => (await api.send('GET', `/tasks/${id}/assignment`)).body.ports
    expect(await portsNow()).toEqual([
      { name: 'api', target: 8001, protocol: 'http', address: '192.0.2.1:30100', detail: null },
      { ...ports[1], address: null, detail: 'no port of the range is free' },
    ])
    answer = {}
    expect(await portsNow()).toMatchObject([
      { address: null, detail: 'no proxy: clients connect to the port of the task' },
      { address: null },
    ])
    answer = null
    expect(await portsNow()).toMatchObject([{ detail: 'its GPU server does not respond' }, { address: null }])
    Object.assign(world.open.get(id)?.placement ?? {}, { startedAt: null })
    expect(await portsNow()).toMatchObject([{ detail: 'the task has not started' }, { address: null }])
  })

  test('answers 404 for a pending, final or unknown task', async () => {
    const { world, api, id } = await worldOfEvents()
    expect(await api.send('GET', `/tasks/${id}/assignment`)).toMatchObject({
      status: 404,
      body: { detail: 'The task is pending and not assigned to a node.' },
    })
    world.finish(id, 'failed')
    expect(await api.send('GET', `/tasks/${id}/assignment`)).toMatchObject({
      status: 404,
      body: { detail: 'The task is failed and not assigned to a node.' },
    })
    expect(await api.send('GET', '/tasks/absent/assignment')).toMatchObject({
      status: 404,
      body: { code: 'not_found' },
    })
  })
})

describe('GET /events/stream', () => {
  async function asked() {
    const world = new FakeController()
    const api = await askedApi({ events: world.durable }, world)
    return { ...api, stream: `${api.url}/api/v1/events/stream` }
  }

  async function* idsOf(answer: Response) {
    if (answer.body === null) throw new Error('no body')
    for await (const { event, id } of streamEvents(answer.body)) if (event === 'event') yield Number(id)
  }

  test('continues after the last event of the previous connection, without delay', async () => {
    const { world, stream } = await asked()
    world.happen('config_changed', 'task_placed', 'task_started')
    const stop = new AbortController()
    const first = await fetch(`${stream}?after=0&kind=task_placed,task_started`, { signal: stop.signal })
    expect([
      first.status,
      first.headers.get('content-type'),
      first.headers.get('cache-control'),
      first.headers.get('x-accel-buffering'),
    ]).toEqual([200, 'text/event-stream; charset=utf-8', 'no-store', 'no'])
    const seen: number[] = []
    for await (const id of idsOf(first)) {
      seen.push(id)
      if (id === 3) world.happen('task_finished', 'task_started')
      if (id === 5) break
    }
    stop.abort()
    world.happen('task_placed')
    const second = await fetch(`${stream}?after=0`, { headers: { 'last-event-id': '5' } })
    for await (const id of idsOf(second)) {
      seen.push(id)
      if (id === 6) break
    }
    expect(seen).toEqual([2, 3, 5, 6])
  })

  test('answers 410 if it cannot continue, and 400 for an invalid position or kind', async () => {
    const { world, stream } = await asked()
    world.happen('config_changed', 'config_changed', 'config_changed')
    world.events.splice(0, 2)
    const get = async (query: string, headers: Record<string, string> = {}) => {
      const answer = await fetch(`${stream}${query}`, { headers })
      return [answer.status, ((await answer.json()) as { code: string }).code]
    }
    expect(await get('?after=1')).toEqual([410, 'events_gone'])
    expect(await get('', { 'last-event-id': '7' })).toEqual([410, 'events_gone'])
    expect(await get('', { 'last-event-id': 'x' })).toEqual([400, 'invalid_request'])
    expect(await get('?kind=x')).toEqual([400, 'invalid_request'])
    expect(await get('?after=-1')).toEqual([400, 'invalid_request'])
  })

  test('tells its readers that the server is closing', async () => {
    const { stream, close } = await asked()
    const answer = await fetch(stream)
    const text = answer.text()
    await close()
    expect(await text).toContain(': the controller is stopping; reconnect with Last-Event-ID\n\n')
  })

  test('includes the summary if the page asks for it', async () => {
    const { url, stream } = await asked()
    const answer = await fetch(`${stream}?summary=true`)
    if (answer.body === null) throw new Error('no body')
    for await (const { event, id, data } of streamEvents(answer.body)) {
      expect([event, id]).toEqual(['summary', '0'])
      expect(Object.keys(JSON.parse(data) as object)).toEqual(
        Object.keys((await (await fetch(`${url}/api/v1/summary`)).json()) as object),
      )
      break
    }
    expect((await createClient({ url, token: null }).events.list({ limit: 1 })).first_seq).toBe(1)
  })
})

test('frees the place of readers that disconnect at once', async () => {
  const world = new FakeController()
  const { url } = await askedApi({ events: world.durable }, world)
  const { port } = new URL(url)
  for (let visit = 0; visit < 600; visit++) {
    const socket = connect(Number(port), '127.0.0.1', () => {
      socket.write('GET /api/v1/events/stream HTTP/1.1\r\nHost: x\r\n\r\n')
      // Some disconnect before the answer begins, some during it.
      setImmediate(() => (visit % 2 === 0 ? socket.destroy() : socket.once('data', () => socket.destroy())))
    })
    socket.on('error', () => {})
    await new Promise((resolve) => socket.once('close', resolve))
  }
  await expect.poll(async () => (await fetch(`${url}/api/v1/events/stream`)).status).toBe(200)
})
