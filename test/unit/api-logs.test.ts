import { createServer, connect, type Socket } from 'node:net'
import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import { createClient, type HeadroomClient } from '../../clients/typescript/client.ts'
import { streamEvents } from '../../clients/typescript/event-stream.ts'
import { FakeController, NODE_ID } from '../support/api-world.ts'
import { apiClient, type ApiClient } from '../support/api-client.ts'
import { askedApi, askedServer, type Asked } from '../support/asked.ts'
import { WrittenOutput } from '../support/written-output.ts'

describe('GET /tasks/{id}/logs', () => {
  let world: FakeController
  let output: WrittenOutput
  let api: ApiClient
  let id: string

  beforeEach(async () => {
    world = new FakeController()
    output = new WrittenOutput()
    api = await apiClient(world, { logs: output })
    id = await placedTask(world)
  })

  const logs = (query = '', task = id) => api.send('GET', `/tasks/${task}/logs${query}`)

  test('returns bytes by offset, of either stream, with a bounded length', async () => {
    output.write(id, 'stdout', Buffer.from([0, 255, 10, 65]))
    output.write(id, 'stderr', 'oh')
    expect(await logs()).toMatchObject({
      status: 200,
      body: {
        task_id: id,
        attempt: 1,
        node_id: NODE_ID,
        stream: 'stdout',
        offset: 0,
        next_offset: 4,
        data: 'AP8KQQ==',
        is_ended: false,
      },
    })
    expect((await logs('?offset=1&max_bytes=2')).body).toMatchObject({
      offset: 1,
      next_offset: 3,
      data: '/wo=',
    })
    expect((await logs('?stream=stderr')).body).toMatchObject({
      stream: 'stderr',
      data: Buffer.from('oh').toString('base64'),
    })
    output.keptFrom = 3
    expect((await logs()).body).toMatchObject({ offset: 3, next_offset: 4 })
    output.end(id)
    expect((await logs('?offset=4')).body).toMatchObject({
      offset: 4,
      next_offset: 4,
      data: '',
      is_ended: true,
    })
  })

  test('reads the output of a task that has ended from the node where it ran', async () => {
    output.write(id, 'stdout', 'done')
    world.finish(id, 'completed')
    expect((await logs()).body).toMatchObject({ node_id: NODE_ID, next_offset: 4 })
  })

  test.each([
    ['?stream=both', '/stream'],
    ['?offset=-1', '/offset'],
    ['?max_bytes=0', '/max_bytes'],
    ['?max_bytes=131073', '/max_bytes'],
    ['?follow=yes', '/follow'],
    ['?lines=5', '/lines'],
  ])('refuses %s', async (query, pointer) => {
    expect(await logs(query)).toMatchObject({
      status: 400,
      body: { code: 'invalid_request', errors: [{ pointer }] },
    })
  })

  test('says why the output cannot be read', async () => {
    expect(await logs('', 'none')).toMatchObject({ status: 404, body: { code: 'not_found' } })
    output.trouble = null
    expect(await logs()).toMatchObject({
      status: 503,
      body: { code: 'logs_unavailable' },
      headers: { 'retry-after': '5' },
    })
    output.trouble = 'too_many_reads'
    expect(await logs()).toMatchObject({
      status: 429,
      body: { code: 'too_many_reads' },
      headers: { 'retry-after': '1' },
    })
    output.trouble = 'unknown_attempt'
    expect(await logs()).toMatchObject({
      status: 404,
      body: { detail: expect.stringContaining('unknown_attempt') },
    })
  })

  test('answers that a task that is pending or never ran has no output', async () => {
    const pending = await submitted(world)
    expect(await logs('', pending)).toMatchObject({
      status: 409,
      body: { detail: expect.stringContaining('not been placed') },
    })
    world.finish(pending, 'cancelled')
    expect(await logs('?follow=true', pending)).toMatchObject({
      status: 409,
      body: { detail: expect.stringContaining('never ran') },
    })
  })

  test('refuses to read output of a simulated fleet or without a connection to GPU servers', async () => {
    const simulated = await apiClient(world, { fleet: 'simulated' })
    expect(await simulated.send('GET', `/tasks/${id}/logs`)).toMatchObject({
      status: 409,
      body: { detail: /simulated/ },
    })
    const alone = await apiClient(world)
    expect(await alone.send('GET', `/tasks/${id}/logs?follow=true`)).toMatchObject({
      status: 503,
      body: { code: 'logs_unavailable' },
    })
  })

  test('answers for files of a silent GPU server as routes that need its processes do', async () => {
    const silent = { list: () => Promise.resolve(null), read: () => Promise.resolve(null) }
    const unanswered = await apiClient(world, { files: silent })
    for (const path of ['files', 'files/content?path=out'])
      expect(await unanswered.send('GET', `/tasks/${id}/${path}`)).toMatchObject({
        status: 503,
        body: { code: 'node_unavailable', detail: expect.stringMatching(/does not respond/) as string },
      })
  })

  test('accepts only GET', async () => {
    expect((await api.send('HEAD', `/tasks/${id}/logs?follow=true`)).status).toBe(405)
  })
})

describe('following output', () => {
  let api: Asked
  let output: WrittenOutput
  let client: HeadroomClient
  let id: string

  beforeEach(async () => {
    output = new WrittenOutput()
    // In real time requests and streams are counted.
    api = await askedApi({ logs: output, inVirtualTime: false })
    client = createClient({ url: api.url, token: null })
    id = await placedTask(api.world)
  })

  test('bytes arrive as they are written, and the end event says that all output was read', async () => {
    output.write(id, 'stdout', 'one\n')
    const { text, end } = await followed(client, id, {}, (all) => {
      if (all === 'one\n') output.write(id, 'stdout', 'two\n')
      if (all === 'one\ntwo\n') output.end(id)
    })
    expect({ text, end }).toEqual({ text: 'one\ntwo\n', end: { attempt: 1, why: 'ended' } })
  })

  test('a pending task is followed until it runs and ends', async () => {
    const later = await submitted(api.world)
    const following = followed(client, later, { stream: 'stderr' })
    place(api.world, later)
    output.write(later, 'stderr', 'x')
    output.end(later)
    expect(await following).toMatchObject({ text: 'x', end: { why: 'ended' } })
  })

  test('a new attempt ends the stream of the previous attempt', async () => {
    output.write(id, 'stdout', 'first')
    const { end } = await followed(client, id, {}, () => place(api.world, id, 2))
    expect(end).toEqual({ attempt: 1, why: 'superseded' })
  })

  test('a server that does not answer is asked again', async () => {
    output.trouble = null
    const following = followed(client, id, {})
    while (output.reads < 2) await new Promise((resolve) => setImmediate(resolve))
    output.trouble = undefined
    output.write(id, 'stdout', 'back')
    output.end(id)
    expect(await following).toMatchObject({ text: 'back' })
  })

  test('a disconnected reader is no longer served', async () => {
    const stop = new AbortController()
    output.write(id, 'stdout', 'x')
    await expect(followed(client, id, { signal: stop.signal }, () => stop.abort())).rejects.toMatchObject({
      name: 'AbortError',
    })
    const metrics = async () => (await fetch(`${api.url}/metrics`)).text()
    await expect.poll(metrics).toMatch(/^headroom_http_streams 0$/m)
    const before = output.readsOf.get(id)
    // The output for a reader that stays is read in the same intervals.
    const other = await submitted(api.world)
    place(api.world, other)
    const following = followed(client, other, {})
    await expect.poll(() => output.readsOf.get(other)).toBeGreaterThan(3)
    expect(output.readsOf.get(id)).toBe(before)
    output.end(other)
    await following
  })

  test('repeated disconnections neither lose nor repeat a byte', async () => {
    const all = Buffer.from(Array.from({ length: 1_000_000 }, (_, n) => n % 256))
    output.write(id, 'stdout', all)
    output.end(id)
    let cuts = 0
    const flaky = await cuttingProxy(api.url, () => (cuts += 1) <= 5)
    let interruptions = 0
    const bytes: Buffer[] = []
    const following = createClient({ url: flaky, token: null }).tasks.followLog(id, {
      onInterrupted: () => (interruptions += 1),
    })
    for (let next = await following.next(); ; next = await following.next()) {
      if (next.done === true) break
      bytes.push(Buffer.from(next.value.bytes))
    }
    expect(Buffer.concat(bytes).equals(all)).toBe(true)
    expect(interruptions).toBeGreaterThan(0)
  })

  test('A stream with an invalid Last-Event-ID is refused', async () => {
    const answer = await fetch(`${api.url}/api/v1/tasks/${id}/logs?follow=true`, {
      headers: { 'last-event-id': 'x' },
    })
    expect(answer.status).toBe(400)
  })

  test('a response that is not a stream is reported as unexpected', async () => {
    const url = await askedServer((_request, response) =>
      response.writeHead(200, { 'content-type': 'text/plain' }).end('hi'),
    )
    await expect(followed(createClient({ url }), 'x', {})).rejects.toMatchObject({ name: 'UnexpectedAnswer' })
  })
})

test('server-sent events are parsed however the bytes are split', async () => {
  const text = ': hello\n\nevent: a\r\nid: 7\r\ndata: one\r\ndata: zwei ü\r\n\r\ndata:x\r\rdata: cut off'
  const bytes = Buffer.from(text)
  const expected = [
    { event: 'a', id: '7', data: 'one\nzwei ü' },
    { event: 'message', id: '7', data: 'x' },
  ]
  for (let size = 1; size <= bytes.length; size += 1) {
    const pieces = async function* () {
      for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
    }
    const seen = []
    for await (const event of streamEvents(pieces())) seen.push(event)
    expect(seen, `pieces of ${size}`).toEqual(expected)
  }
})

async function submitted(world: FakeController): Promise<string> {
  const api = await apiClient(world)
  return (
    (await api.send('POST', '/tasks', { vram_mib: 100, command: ['true'] })).body as { readonly id: string }
  ).id
}

async function placedTask(world: FakeController): Promise<string> {
  await world.addNode({ id: NODE_ID, gpus: 1, physicalMib: 49_140 })
  const id = await submitted(world)
  place(world, id)
  return id
}

function place(world: FakeController, id: string, attempt = 1): void {
  const task = world.open.get(id)
  if (task === undefined) throw new Error(`no open task ${id}`)
  task.attempt = attempt
  world.place(id, NODE_ID)
  world.addEvent('task_placed', { taskId: id, nodeId: NODE_ID, data: { attempt } })
}

async function followed(
  client: HeadroomClient,
  id: string,
  options: Parameters<HeadroomClient['tasks']['followLog']>[1],
  onText: (all: string) => void = () => {},
) {
  const following = client.tasks.followLog(id, options)
  let text = ''
  for (;;) {
    const next = await following.next()
    if (next.done === true) return { text, end: next.value }
    text += Buffer.from(next.value.bytes).toString()
    onText(text)
  }
}

/** Forwards bytes, and cuts a connection in the middle of a response if `mayCut` says so. */
async function cuttingProxy(url: string, mayCut: () => boolean): Promise<string> {
  const sockets = new Set<Socket>()
  const server = createServer((near) => {
    const far = connect(Number(new URL(url).port), '127.0.0.1')
    const isCut = mayCut()
    let passed = 0
    for (const socket of [near, far]) {
      sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => (near.destroy(), far.destroy()))
    }
    near.pipe(far)
    far.on('data', (chunk: Buffer) => {
      passed += chunk.length
      const isLast = isCut && passed > 100_000
      near.write(isLast ? chunk.subarray(0, chunk.length >> 1) : chunk)
      if (isLast) near.destroy()
    })
  })
  afterAll(() => {
    sockets.forEach((socket) => socket.destroy())
    server.close()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  return `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`
}
