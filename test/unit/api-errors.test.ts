import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { ApiProblem, PROBLEMS, problemOf } from '../../controller/api/http/errors.ts'
import type { Refusal } from '../../controller/model/command.ts'
import { StoreFault } from '../../controller/ports/store.ts'
import { apiClient, type ApiClient } from '../support/api-client.ts'
import { FakeController, NODE_ID } from '../support/api-world.ts'

let world: FakeController
let api: ApiClient

async function open(): Promise<void> {
  world = new FakeController()
  await world.addNode({ id: NODE_ID, gpus: 1, physicalMib: 49_140 })
  api = await apiClient(world)
}
const close = () => api.app.close()

const PERCENT = { default_vram_overcommit_percent: 20 }

describe('every error is a problem document', () => {
  beforeAll(open)
  afterAll(close)

  test('with all members, the request id and the media type of RFC 9457', async () => {
    const { status, body, headers } = await api.send('PUT', '/config', {
      default_vram_overcommit_percent: 1001,
    })
    expect(status).toBe(400)
    expect(headers['content-type']).toBe('application/problem+json; charset=utf-8')
    const detail = 'default_vram_overcommit_percent must be an integer from 0 to 1000, got 1001'
    expect(body).toEqual({
      type: 'urn:headroom:problem:invalid_request',
      title: 'The request is not valid',
      status: 400,
      detail,
      code: 'invalid_request',
      errors: [{ pointer: '/default_vram_overcommit_percent', detail }],
      request_id: headers['x-request-id'],
    })
  })

  test.each(['/nope', '//nope', '//api/v1', '//api/v2/config', '/nodes/a/b/c'])(
    'an unknown route %s is answered with 404, whatever the request contains',
    async (path) => {
      for (const answer of [
        await api.send('GET', path),
        await api.send('POST', path, 'no json', { 'content-type': 'text/plain' }),
      ]) {
        expect(answer).toMatchObject({ status: 404, body: { code: 'route_not_found' } })
      }
    },
  )

  test.each([
    ['DELETE', '/config', 'GET, HEAD, PUT'],
    ['GET', `/nodes/${NODE_ID}/config`, 'PUT'],
    ['PUT', '/tasks', 'GET, HEAD, POST'],
    ['PATCH', '/groups/a%2Fb', 'DELETE, GET, HEAD, PUT'],
    ['OPTIONS', '/summary', 'GET, HEAD'],
    ['POST', '//livez', 'GET, HEAD'],
  ] as const)('%s %s is answered with 405 and lists the allowed methods', async (method, path, allow) => {
    const answer = await api.send(method, path)
    expect(answer).toMatchObject({ status: 405, headers: { allow }, body: { code: 'method_not_allowed' } })
  })

  test('errors carry the security headers too', async () => {
    for (const path of ['/nope', '/tasks/nope']) {
      const { headers } = await api.send('GET', path)
      expect(headers['content-security-policy']).toContain("default-src 'none'")
      expect(headers['x-content-type-options']).toBe('nosniff')
    }
  })

  test('a path that cannot be decoded is answered with 400', async () => {
    expect(await api.send('GET', '/tasks/%zz')).toMatchObject({
      status: 400,
      body: { code: 'malformed_request' },
    })
  })

  test('a path parameter over the limits is refused', async () => {
    expect(await api.send('GET', `/tasks/${'x'.repeat(201)}`)).toMatchObject({
      status: 400,
      body: { errors: [{ pointer: '/task_id' }] },
    })
    expect(await api.send('GET', `/tasks/${'x'.repeat(3000)}`)).toMatchObject({
      status: 414,
      body: { code: 'uri_too_long' },
    })
  })
})

describe('bodies', () => {
  beforeAll(open)
  afterAll(close)

  test('malformed JSON is answered with 400 and its position', async () => {
    const { status, body } = await api.send('PUT', '/config', '{"default_vram_overcommit_percent": 20,\n}')
    expect(status).toBe(400)
    expect(body).toMatchObject({
      code: 'malformed_json',
      errors: [{ pointer: '', detail: expect.stringContaining('line 2, column 1') }],
    })
  })

  test('a body of 1 MiB is answered with 413 and the limit', async () => {
    const { status, body } = await api.send('PUT', '/config', `{"x": "${'x'.repeat(1 << 20)}"}`)
    expect(status).toBe(413)
    expect(body).toMatchObject({
      code: 'body_too_large',
      detail: 'The body is larger than the limit of 262144 bytes (256 KiB).',
    })
  })

  test.each([
    'text/plain',
    'application/x-www-form-urlencoded',
    'application/json-patch+json',
    'nonsense',
    '',
  ])('a body of type "%s" is answered with 415', async (type) => {
    const answer = await api.send('PUT', '/config', PERCENT, { 'content-type': type })
    expect(answer).toMatchObject({ status: 415, body: { code: 'unsupported_media_type' } })
    expect(world.config.revision).toBe(0)
  })

  test('a compressed body, and a merge patch sent with PUT, are answered with 415', async () => {
    expect((await api.send('PUT', '/config', PERCENT, { 'content-encoding': 'gzip' })).status).toBe(415)
    expect(
      (await api.send('PUT', '/config', PERCENT, { 'content-type': 'application/merge-patch+json' })).status,
    ).toBe(415)
  })

  test('a charset parameter is accepted, bytes that are not UTF-8 are refused', async () => {
    expect(
      (await api.send('PUT', '/config', PERCENT, { 'content-type': 'application/json; charset=utf-8' }))
        .status,
    ).toBe(200)
    expect(await api.send('PUT', '/config', Buffer.from([0x7b, 0xff, 0x7d]))).toMatchObject({
      status: 400,
      body: { code: 'malformed_json' },
    })
  })

  test.each([undefined, '', 'null', '[]', '"text"', '5'])(
    '%s is refused because it is not an object',
    async (body) => {
      expect(await api.send('PUT', '/config', body)).toMatchObject({
        status: 400,
        body: { errors: [{ pointer: '' }] },
      })
    },
  )

  test('a route without a body refuses a body', async () => {
    expect((await api.send('POST', `/nodes/${NODE_ID}/cordon`, { drain: true })).status).toBe(400)
    expect((await api.send('POST', `/nodes/${NODE_ID}/cordon`, '')).status).toBe(200)
  })
})

describe('query parameters', () => {
  beforeAll(open)
  afterAll(close)

  test.each([
    ['/tasks?limit=0', '/limit'],
    ['/tasks?limit=201', '/limit'],
    ['/tasks?limit=1.5', '/limit'],
    ['/tasks?limit=1e1', '/limit'],
    ['/tasks?limit=', '/limit'],
    ['/tasks?limit=1&limit=2', '/limit'],
    ['/tasks?state=sleeping', '/state'],
    ['/tasks?priority=P0', '/priority'],
    ['/tasks?cursor=zzz', '/cursor'],
    ['/tasks?sort=name', '/sort'],
    ['/events?after=-1', '/after'],
    ['/config?dry_run=true', '/dry_run'],
  ])("%s is answered with 400 and the parameter's name", async (path, pointer) => {
    expect(await api.send('GET', path)).toMatchObject({
      status: 400,
      body: { code: 'invalid_request', errors: [{ pointer }] },
    })
  })

  test('an unknown parameter of a write is refused, because it could be a misspelt dry run', async () => {
    expect((await api.send('PUT', '/config?dryrun=true', PERCENT)).status).toBe(400)
    expect(world.config.revision).toBe(0)
  })
})

describe('a refusal of the engine', () => {
  beforeAll(open)
  afterAll(close)

  const cases: readonly [Refusal, number, string][] = [
    [
      { code: 'invalid', problems: [{ field: 'labels/a~b', detail: 'must not be so' }] },
      400,
      'invalid_request',
    ],
    [{ code: 'not_found', what: 'node', id: 'n' }, 404, 'not_found'],
    [{ code: 'conflict', detail: 'It does not fit.' }, 409, 'conflict'],
    [{ code: 'too_many_pending', limit: 7, owner: null }, 429, 'too_many_pending'],
    [{ code: 'store_failed', detail: 'disk full' }, 503, 'store_failed'],
    [{ code: 'commit_unknown', detail: 'disk full' }, 503, 'commit_unknown'],
  ]
  test.each(cases)('%j is mapped to its status and code', async (refusal, status, code) => {
    world.nextRefusal = refusal
    const answer = await api.send('DELETE', `/nodes/${NODE_ID}`)
    expect(answer).toMatchObject({ status, body: { code } })
    expect(answer.headers['retry-after'] !== undefined).toBe(status === 429 || status === 503)
    expect(world.nodes.has(NODE_ID)).toBe(true)
  })

  test.each([
    [null, 'Too many tasks are pending (limit: 1).'],
    ['ada', 'Too many tasks of ada are pending (limit per owner: 1).'],
  ])('A limit of one pending task reads well (owner %s)', async (owner, detail) => {
    world.nextRefusal = { code: 'too_many_pending', limit: 1, owner }
    expect(await api.send('PUT', '/config', PERCENT)).toMatchObject({ status: 429, body: { detail } })
  })

  test('an invalid field is named by a JSON pointer with escaped slashes and tildes', () => {
    world.nextRefusal = { code: 'invalid', problems: [{ field: 'a/b~c', detail: 'is wrong' }] }
    return expect(api.send('PUT', '/config', PERCENT)).resolves.toMatchObject({
      body: { detail: 'a/b~c is wrong', errors: [{ pointer: '/a~1b~0c', detail: 'a/b~c is wrong' }] },
    })
  })
})

describe('failures inside the controller', () => {
  beforeEach(open)
  afterEach(close)

  test('an unreadable store is answered with 503 and Retry-After', async () => {
    world.views.stored.task = () => Promise.reject(new StoreFault('the disk is gone'))
    const answer = await api.send('GET', '/tasks/any')
    expect(answer).toMatchObject({ status: 503, body: { code: 'store_failed', detail: 'the disk is gone' } })
    expect(answer.headers['retry-after']).toBe('10')
  })

  test('an unusable file is answered with 503 and the reason, without its path', async () => {
    const full = Object.assign(new Error('ENOSPC: no space left on device, write /secret/place'), {
      code: 'ENOSPC',
      syscall: 'write',
    })
    world.views.config = () => {
      throw full
    }
    const answer = await api.send('GET', '/config')
    expect(answer).toMatchObject({
      status: 503,
      body: { code: 'store_failed', detail: expect.stringContaining('ENOSPC on write') as string },
    })
    expect(JSON.stringify(answer.body)).not.toContain('secret')
  })

  test('a broken invariant is answered with 500, without internal details', async () => {
    world.views.config = () => {
      throw new Error('secret of the inside')
    }
    const answer = await api.send('GET', '/config')
    expect(answer).toMatchObject({ status: 500, body: { code: 'internal_error' } })
    expect(JSON.stringify(answer.body)).not.toContain('secret')
  })

  test('an error with a client status of its own keeps that status', () => {
    expect(problemOf(Object.assign(new Error('aborted'), { statusCode: 400 }))).toMatchObject({
      code: 'malformed_request',
      status: 400,
    })
    expect(problemOf('no error at all')).toMatchObject({ code: 'internal_error', status: 500 })
    expect(problemOf(new ApiProblem('conflict', 'x'))).toMatchObject({ status: 409 })
  })
})

describe('bytes that are not a valid HTTP request', () => {
  beforeEach(open)
  afterEach(close)

  test.each([
    ['hello\r\n\r\n', 400, 'malformed_request'],
    [`GET / HTTP/1.1\r\nHost: x\r\nA: ${'a'.repeat(20_000)}\r\n\r\n`, 431, 'headers_too_large'],
  ])('%.20j is answered with a problem document', async (bytes, status, code) => {
    await api.app.listen({ port: 0, host: '127.0.0.1' })
    const { port } = api.app.server.address() as { port: number }
    const text = await new Promise<string>((resolve, reject) => {
      const socket = connect(port, '127.0.0.1', () => socket.write(bytes))
      let received = ''
      socket.on('data', (chunk) => (received += chunk.toString()))
      socket.on('close', () => resolve(received))
      socket.on('error', reject)
    })
    expect(text).toMatch(new RegExp(`^HTTP/1.1 ${status} `))
    expect(JSON.parse(text.split('\r\n\r\n')[1] ?? '')).toMatchObject({ status, code })
  })
})

test('docs/rest.md lists every code with its status', () => {
  const text = readFileSync(new URL('../../docs/rest.md', import.meta.url), 'utf8')
  const listed = [...text.matchAll(/^\| (\d{3}) \| `([a-z_]+)` \|/gm)].map(([, status, code]) => [
    code,
    Number(status),
  ])
  expect(Object.fromEntries(listed)).toEqual(
    Object.fromEntries(Object.entries(PROBLEMS).map(([code, { status }]) => [code, status])),
  )
})
