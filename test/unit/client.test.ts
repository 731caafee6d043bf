import type { IncomingMessage, ServerResponse } from 'node:http'
import { afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import {
  ApiError,
  ConnectionError,
  createClient,
  UnexpectedAnswer,
  type Event,
} from '../../clients/typescript/client.ts'
import { NODE_ID } from '../support/api-world.ts'
import { askedApi, askedServer, deadAddress, type Asked } from '../support/asked.ts'

const failure = async (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => null,
    (error: unknown) => error,
  )

describe('the client of a controller', () => {
  let api: Asked
  let client: ReturnType<typeof createClient>

  beforeAll(async () => {
    api = await askedApi()
    await api.world.addNode({ id: NODE_ID, gpus: 2, physicalMib: 49_140 })
    client = createClient({ url: api.url, token: null })
  })

  test('submits, reads, changes, explains, lists and cancels a task', async () => {
    const task = await client.tasks.submit({ name: 'one', vram_mib: 8192, labels: { a: 'b' } })
    expect(task).toMatchObject({ name: 'one', state: 'pending', vram_mib: 8192 })
    expect(await client.tasks.get(task.id)).toEqual(task)
    expect(await client.tasks.update(task.id, { labels: { a: null, c: 'd' } })).toMatchObject({
      labels: { c: 'd' },
    })
    expect(await client.tasks.explain(task.id)).toMatchObject({
      task_id: task.id,
      waits: true,
      wait: { reason: 'WAITING_VRAM' },
    })
    expect((await client.tasks.list({ q: 'one', limit: 1 })).items).toMatchObject([{ id: task.id }])
    expect(await client.tasks.cancel(task.id)).toMatchObject({ state: 'cancelled' })
  })

  test('iterates over all pages with each()', async () => {
    for (let n = 0; n < 7; n += 1) await client.tasks.submit({ name: `page-${n}`, vram_mib: 1 })
    const names: string[] = []
    for await (const task of client.tasks.each({ q: 'page-', limit: 2 })) names.push(task.name)
    expect(names).toEqual(Array.from({ length: 7 }, (_, n) => `page-${6 - n}`))
    const nodes: string[] = []
    for await (const node of client.nodes.each()) nodes.push(node.node_id)
    expect(nodes).toEqual([NODE_ID])
  })

  test('covers nodes, groups, configuration, summary, version and readiness', async () => {
    expect(await client.nodes.get(NODE_ID)).toMatchObject({ name: 'node-1' })
    expect(await client.nodes.configure(NODE_ID, { overcommit_vram_percent: 30 })).toMatchObject({
      overcommit_vram_percent: 30,
    })
    expect(await client.nodes.cordon(NODE_ID)).toMatchObject({ cordoned: true })
    expect(await client.nodes.uncordon(NODE_ID)).toMatchObject({ cordoned: false })
    expect(await client.groups.create({ id: 'a b' })).toMatchObject({
      id: 'a b',
      description: '',
      node_ids: [],
    })
    expect(await client.groups.addNode('a b', NODE_ID)).toMatchObject({ node_ids: [NODE_ID] })
    expect(await client.groups.put('a b', { node_ids: [NODE_ID], description: 'x' })).toMatchObject({
      description: 'x',
    })
    expect(await client.groups.removeNode('a b', NODE_ID)).toBeNull()
    expect(await client.groups.get('a b')).toMatchObject({ node_ids: [] })
    expect(await client.groups.list()).toHaveLength(1)
    expect(await client.groups.delete('a b', { force: true })).toBeNull()
    expect(await client.config.set({ idle_swap_out_seconds: 60 })).toMatchObject({
      idle_swap_out_seconds: 60,
      source: 'persisted',
    })
    expect(await client.config.get()).toMatchObject({ idle_swap_out_seconds: 60 })
    expect(await client.summary()).toMatchObject({ nodes: { total: 1 } })
    expect(await client.version()).toMatchObject({ name: 'headroom', version: '0.0.0-test' })
    expect(await client.readiness()).toEqual({ status: 'ready', checks: [] })
  })

  test('turns a problem document into a typed error', async () => {
    const error = await failure(client.config.set({ idle_swap_out_seconds: 0 }))
    expect(error).toBeInstanceOf(ApiError)
    expect(error).toMatchObject({
      status: 400,
      code: 'invalid_request',
      detail: expect.stringContaining('idle_swap_out_seconds'),
      errors: [{ pointer: '/idle_swap_out_seconds', detail: expect.any(String) }],
      requestId: expect.any(String),
      retryAfterSeconds: null,
    })
    expect(await failure(client.tasks.get('none'))).toMatchObject({ status: 404, code: 'not_found' })
  })

  test.each(['', '.', '..', 'a/b', 'a?b#c', 'ü', '%2e', '‮'])('sends the id %j only as an id', async (id) => {
    expect(await failure(client.tasks.cancel(id))).toMatchObject({ status: 404 })
  })

  test('follows events from a sequence number until its signal aborts', async () => {
    api.world.addEvent('task_submitted', { taskId: 't1' })
    api.world.addEvent('node_status', { nodeId: NODE_ID })
    const from = (await client.events.list({ limit: 1 })).last_seq
    expect(from).toBe(2)
    const stop = new AbortController()
    const seen: Event[] = []
    const following = (async () => {
      for await (const event of client.events.follow({ after: from - 1, signal: stop.signal })) {
        seen.push(event)
        if (seen.length === 1) api.world.happen('config_changed')
        if (seen.length === 2) stop.abort()
      }
    })()
    await following
    expect(seen.map(({ kind }) => kind)).toEqual(['node_status', 'config_changed'])
  })
})

describe('the token of a client', () => {
  afterEach(() => vi.unstubAllEnvs())

  test('is sent as Bearer from HEADROOM_TOKEN, and no header is sent without one', async () => {
    const seen: (string | undefined)[] = []
    const url = await askedServer((request, response) => {
      seen.push(request.headers.authorization)
      answer(response, 200, { ok: true })
    })
    vi.stubEnv('HEADROOM_TOKEN', 'secret')
    vi.stubEnv('VENDOR_CONTROLLER_URL', `${url}/`)
    await createClient().summary()
    vi.stubEnv('HEADROOM_TOKEN', '')
    await createClient().summary()
    await createClient({ token: 'other' }).summary()
    expect(seen).toEqual(['Bearer secret', undefined, 'Bearer other'])
  })
})

describe('the retries of a client', () => {
  /** Answers according to a list of steps, and repeats the last one. */
  async function stepServer(
    steps: readonly ((request: IncomingMessage, response: ServerResponse) => void)[],
  ) {
    const asked: string[] = []
    const url = await askedServer((request, response) => {
      asked.push(request.method ?? '')
      steps[Math.min(asked.length, steps.length) - 1]?.(request, response)
    })
    return { asked, client: createClient({ url, attempts: 3 }) }
  }
  const cut = (request: IncomingMessage): void => void request.socket.destroy()
  const busy = (_: IncomingMessage, response: ServerResponse): void =>
    problem(response, 429, 'too_many_pending', { 'retry-after': '0' })
  const storeDown = (_: IncomingMessage, response: ServerResponse): void =>
    problem(response, 503, 'store_failed', { 'retry-after': '0' })
  const fine = (_: IncomingMessage, response: ServerResponse): void => answer(response, 200, { id: 'x' })

  test('repeat a read after a broken connection and after 503', async () => {
    const { client, asked } = await stepServer([cut, storeDown, fine])
    expect(await client.tasks.get('x')).toEqual({ id: 'x' })
    expect(asked).toHaveLength(3)
  })

  test('repeat a submission with unknown outcome under its own key, so that it is one task', async () => {
    const keys: (string | undefined)[] = []
    const noting =
      (step: (request: IncomingMessage, response: ServerResponse) => void) =>
      (request: IncomingMessage, response: ServerResponse): void => {
        keys.push(request.headers['idempotency-key'] as string | undefined)
        step(request, response)
      }
    const { client, asked } = await stepServer([cut, storeDown, fine].map(noting))
    expect(await client.tasks.submit({ vram_mib: 1 })).toEqual({ id: 'x' })
    await client.tasks.submit({ vram_mib: 1 })
    await client.tasks.submit({ vram_mib: 1 }, { idempotencyKey: 'mine' })
    expect(asked).toEqual(['POST', 'POST', 'POST', 'POST', 'POST'])
    expect(new Set(keys.slice(0, 3)).size).toBe(1)
    expect(new Set(keys).size).toBe(3)
    expect(keys[4]).toBe('mine')
  })

  test('leave out a request that must not run twice if its outcome is unknown', async () => {
    const broken = await stepServer([cut, fine])
    expect(await failure(broken.client.tasks.cancel('x'))).toMatchObject({
      name: 'ConnectionError',
      isUnsent: false,
    })
    expect(broken.asked).toEqual(['DELETE'])
    const unsure = await stepServer([storeDown, fine])
    expect(await failure(unsure.client.tasks.cancel('x'))).toMatchObject({
      code: 'store_failed',
      retryAfterSeconds: 0,
    })
    expect(unsure.asked).toEqual(['DELETE'])
  })

  test('repeat a request that was refused for lack of capacity a limited number of times', async () => {
    const { client, asked } = await stepServer([busy])
    expect(await failure(client.tasks.submit({ vram_mib: 1 }))).toMatchObject({ code: 'too_many_pending' })
    expect(asked).toHaveLength(3)
  })

  test('A connection error names the address when no controller listens there', async () => {
    const url = await deadAddress()
    const error = await failure(createClient({ url, attempts: 2 }).tasks.submit({ vram_mib: 1 }))
    expect(error).toBeInstanceOf(ConnectionError)
    expect(error).toMatchObject({
      isUnsent: true,
      message: `cannot reach the controller at ${url}: connection refused. Is the controller running?`,
    })
  })

  test("end at once when the caller's signal aborts", async () => {
    const { client } = await stepServer([() => {}])
    const stop = new AbortController()
    const pending = failure(client.tasks.get('x', { signal: stop.signal }))
    stop.abort()
    expect(await pending).toMatchObject({ name: 'AbortError' })
  })
})

describe('a response that does not come from a controller', () => {
  test.each([
    [
      'a page',
      (response: ServerResponse) =>
        void response.setHeader('content-type', 'text/html').end('<h1>hello</h1>'),
      /not JSON/,
    ],
    ['an error page', (response: ServerResponse) => void response.writeHead(502).end('bad gateway'), /502/],
    [
      'a redirect',
      (response: ServerResponse) => void response.writeHead(302, { location: 'http://127.0.0.1:1/' }).end(),
      /302/,
    ],
  ])('with %s is reported as unexpected', async (_what, reply, says) => {
    const url = await askedServer((_request, response) => reply(response))
    const error = await failure(createClient({ url }).summary())
    expect(error).toBeInstanceOf(UnexpectedAnswer)
    expect((error as Error).message).toMatch(says)
  })

  test('with wrong fields in a problem document is still an API error', async () => {
    const url = await askedServer((_request, response) =>
      response
        .writeHead(409, { 'content-type': 'application/problem+json' })
        .end('{"detail": 7, "errors": "x"}'),
    )
    expect(await failure(createClient({ url }).summary())).toMatchObject({
      status: 409,
      code: 'unknown',
      errors: [],
      detail: 'status 409',
    })
  })

  test.each(['', 'localhost:30080', 'ftp://x', 'http://u:p@x', 'http://x/?a=1', 'nonsense'])(
    'cannot come from %j, which is not a valid address',
    (url) => {
      expect(() => createClient({ url })).toThrow(TypeError)
    },
  )
})

function answer(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}

function problem(
  response: ServerResponse,
  status: number,
  code: string,
  headers: Record<string, string>,
): void {
  response
    .writeHead(status, { 'content-type': 'application/problem+json', ...headers })
    .end(JSON.stringify({ status, code, detail: code, errors: [], request_id: 'r' }))
}
