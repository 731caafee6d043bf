import { Writable } from 'node:stream'
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { createLog } from '../../services/log.ts'
import { createRateLimiter, hostRules } from '../../controller/api/auth/access.ts'
import { RefusalSampler } from '../../controller/api/auth/audit-trail.ts'
import { hashOf, idIn, isSecretOf, newSecret } from '../../controller/api/auth/token-secrets.ts'
import { accessWorld, type AccessWorld, type AccessWorldOptions } from '../support/access-world.ts'

const worlds: AccessWorld[] = []
afterEach(async () => {
  for (const { app } of worlds.splice(0)) await app.close()
})

async function aWorld(options: AccessWorldOptions = {}): Promise<AccessWorld> {
  const world = await accessWorld(options)
  worlds.push(world)
  return world
}

const CONFIG = '/api/v1/config'
const change = { default_vram_overcommit_percent: 20 }

describe('a token secret', () => {
  test('contains its record id, is unique, and is stored only as a hash', () => {
    const made = Array.from({ length: 100 }, newSecret)
    expect(new Set(made.map(({ secret }) => secret)).size).toBe(100)
    for (const { id, secret, hash } of made) {
      expect(idIn(secret)).toBe(id)
      expect(hash).toMatch(/^[0-9a-f]{64}$/)
      expect([isSecretOf(secret, hash), isSecretOf(`${secret}x`, hash), isSecretOf(secret, null)]).toEqual([
        true,
        false,
        false,
      ])
    }
    expect(idIn('headroom_short_x')).toBeNull()
  })
})

describe('a token', () => {
  test('is required as soon as one token exists, also for local requests', async () => {
    const world = await aWorld()
    expect((await world.ask('GET', CONFIG)).statusCode).toBe(200)
    const token = await world.token('viewer')
    const refused = await world.ask('GET', CONFIG)
    expect([refused.statusCode, refused.headers['www-authenticate'], refused.json().code]).toEqual([
      401,
      'Bearer realm="headroom"',
      'unauthorized',
    ])
    expect(refused.headers['content-security-policy']).toContain("default-src 'none'")
    expect((await world.ask('GET', CONFIG, { token })).statusCode).toBe(200)
    expect((await world.ask('GET', '/livez')).statusCode).toBe(200)
  })

  test.each([
    ['nothing', ''],
    ['another scheme', 'Basic YWRtaW46YWRtaW4='],
    ['no secret', 'Bearer '],
    ['two secrets', 'Bearer a b'],
    ['a very long token', `Bearer ${'x'.repeat(513)}`],
    ['an unknown token', `Bearer ${newSecret().secret}`],
    ['an inherited property name', 'Bearer __proto__'],
  ])('A request with %s as its token is refused', async (_, authorization) => {
    const world = await aWorld()
    await world.token('admin')
    expect((await world.ask('GET', CONFIG, { headers: { authorization } })).statusCode).toBe(401)
  })

  test('with a valid id and a wrong secret is refused like an unknown token', async () => {
    const world = await aWorld()
    const right = await world.token('admin')
    const wrong = `${right.slice(0, -43)}${newSecret().secret.slice(-43)}`
    const answers = [
      await world.ask('GET', CONFIG, { token: wrong }),
      await world.ask('GET', CONFIG, { token: newSecret().secret }),
    ]
    const [first, second] = answers.map((answer) => answer.json().detail as string)
    expect(first).toBe(second)
    expect(answers.map(({ statusCode }) => statusCode)).toEqual([401, 401])
  })

  test('expires exactly at its expiry time', async () => {
    const world = await aWorld()
    const token = await world.token('viewer', { expiresAt: world.now + 1000 })
    world.now += 999
    expect((await world.ask('GET', CONFIG, { token })).statusCode).toBe(200)
    world.now += 1
    expect((await world.ask('GET', CONFIG, { token })).json()).toMatchObject({
      status: 401,
      detail: 'The token has expired.',
    })
  })

  test('from the environment has role admin, and no other text does', async () => {
    const secret = 'a-secret-of-the-environment-0123456789'
    const world = await aWorld({ adminTokenHash: hashOf(secret) })
    expect((await world.ask('GET', CONFIG)).statusCode).toBe(401)
    expect((await world.ask('PUT', CONFIG, { token: secret, body: change })).statusCode).toBe(200)
    expect((await world.ask('GET', CONFIG, { token: `${secret}0` })).statusCode).toBe(401)
    const entry = (await world.audits()).find(({ action }) => action === 'putConfig')
    expect(entry).toMatchObject({
      actor: 'admin',
      role: 'admin',
      tokenId: 'admin-token-file',
      action: 'putConfig',
    })
  })
})

describe('the token endpoints', () => {
  test('require an admin token first, show its secret once, and then require authentication', async () => {
    const world = await aWorld()
    const early = await world.ask('POST', '/api/v1/tokens', { body: { name: 'alice', role: 'submitter' } })
    expect([early.statusCode, early.json().code]).toEqual([409, 'conflict'])
    const made = await world.ask('POST', '/api/v1/tokens', { body: { name: 'root', role: 'admin' } })
    expect(made.statusCode).toBe(201)
    const { id, secret } = made.json<{ id: string; secret: string }>()
    expect(made.headers.location).toBe(`/api/v1/tokens/${id}`)
    expect((await world.ask('GET', '/api/v1/tokens')).statusCode).toBe(401)
    const list = await world.ask('GET', '/api/v1/tokens', { token: secret })
    expect(list.json()).toMatchObject({
      total: 1,
      items: [{ id, name: 'root', role: 'admin', created_by: null, expires_at: null }],
    })
    expect(list.body).not.toContain(secret.slice(-43))
    expect(list.body).not.toContain(hashOf(secret))
  })

  test('create tokens that expire as requested and record their creator', async () => {
    const world = await aWorld()
    const root = await world.token('admin', { name: 'root' })
    const body = { name: 'alice', role: 'submitter', expires_in_seconds: 60 }
    const made = (await world.ask('POST', '/api/v1/tokens', { token: root, body })).json()
    expect(made).toMatchObject({
      created_by: 'root',
      expires_at: new Date(world.now + 60_000).toISOString(),
      last_used_at: null,
    })
    await world.ask('GET', CONFIG, { token: made.secret as string })
    const { items } = (await world.ask('GET', '/api/v1/tokens', { token: root })).json<{
      items: { name: string; last_used_at: string }[]
    }>()
    expect(items.find(({ name }) => name === 'alice')?.last_used_at).toBe(new Date(world.now).toISOString())
  })

  test('keep the last admin token unless forced, and still require authentication after that', async () => {
    const world = await aWorld()
    const root = await world.token('admin')
    const expired = await world.token('admin', { expiresAt: world.now - 1 })
    const revoke = (secret: string, query = '') =>
      world.ask('DELETE', `/api/v1/tokens/${String(idIn(secret))}${query}`, { token: root })
    expect((await revoke(root)).statusCode).toBe(409)
    expect((await revoke(expired)).statusCode).toBe(204)
    expect((await revoke(expired)).statusCode).toBe(404)
    expect((await revoke(root, '?force=true')).statusCode).toBe(204)
    for (const token of [root, undefined]) {
      const answer = await world.ask('GET', CONFIG, token === undefined ? {} : { token })
      expect(answer.statusCode).toBe(401)
    }
  })

  test.each([
    [{ name: 'alice' }, '/role'],
    [{ role: 'admin' }, '/name'],
    [{ name: '', role: 'admin' }, '/name'],
    [{ name: 'a b', role: 'admin' }, '/name'],
    [{ name: 'x'.repeat(101), role: 'admin' }, '/name'],
    [{ name: 'a', role: 'root' }, '/role'],
    [{ name: 'a', role: 'admin', expires_in_seconds: 59 }, '/expires_in_seconds'],
    [{ name: 'a', role: 'admin', expires_in_seconds: '60' }, '/expires_in_seconds'],
    [{ name: 'a', role: 'admin', secret: 'mine' }, '/secret'],
  ])('refuse the body %j and name the field', async (body, pointer) => {
    const world = await aWorld()
    const answer = await world.ask('POST', '/api/v1/tokens', { body })
    expect([answer.statusCode, answer.json().errors[0].pointer]).toEqual([400, pointer])
    expect(world.engine.access.size).toBe(0)
  })
})

describe('the Host header', () => {
  test.each([
    ['localhost', 200],
    ['LOCALHOST:30080', 200],
    ['app.localhost:1', 200],
    ['127.0.0.1:30080', 200],
    ['10.1.2.3', 200],
    ['[::1]:30080', 200],
    ['headroom.example.org', 200],
    ['headroom.example.org.:443', 200],
    ['a.b.svc', 200],
    ['svc', 421],
    ['evil.example', 421],
    ['localhost.evil.example', 421],
    ['127.0.0.1.evil.example', 421],
    ['headroom.example.org@evil.example', 421],
    ['a b', 421],
    ['', 421],
  ])('%j is answered with %i', (host, status) => {
    const rules = hostRules(['Headroom.example.org', '*.svc'])
    const misdirected = expect.objectContaining({ code: 'misdirected_request', status: 421 }) as Error
    for (let again = 0; again < 2; again++) {
      if (status === 200) rules.require(host)
      else expect(() => rules.require(host)).toThrow(misdirected)
    }
  })

  test('is required and checked before anything else', async () => {
    expect(() => hostRules([]).require(undefined)).toThrow('The request has no Host header')
    const world = await aWorld()
    for (const path of [CONFIG, '/livez', '/none']) {
      const answer = await world.ask('GET', path, { headers: { host: 'evil.example' } })
      expect([answer.statusCode, answer.json().code], path).toEqual([421, 'misdirected_request'])
    }
  })

  test('may have any value if that is configured', async () => {
    const world = await aWorld({ allowedHosts: ['*'] })
    expect((await world.ask('GET', CONFIG, { headers: { host: 'anything.example' } })).statusCode).toBe(200)
  })
})

describe('a cross-site request', () => {
  const put = (world: AccessWorld, headers: Readonly<Record<string, string>>) =>
    world.ask('PUT', CONFIG, { headers, body: change })

  test.each([
    ['from the page itself', { host: '127.0.0.1:30080', origin: 'http://127.0.0.1:30080' }, 200],
    [
      'from the page behind a proxy',
      { host: '127.0.0.1:30080', origin: 'https://headroom.example.org' },
      200,
    ],
    ['from a client without a browser', {}, 200],
    ['from the address bar', { 'sec-fetch-site': 'none' }, 200],
    ['from another page', { origin: 'https://evil.example' }, 403],
    ['from another port', { host: '127.0.0.1:30080', origin: 'http://127.0.0.1:8080' }, 403],
    ['from a file', { origin: 'null' }, 403],
    ['from another page without an origin', { 'sec-fetch-site': 'cross-site' }, 403],
    ['from a page on a sibling domain', { 'sec-fetch-site': 'same-site' }, 403],
    ['of nonsense', { origin: 'x' }, 403],
  ])('sent %s is answered with %i', async (_, headers, status) => {
    const world = await aWorld({ allowedHosts: ['headroom.example.org'] })
    const before = world.views.config()
    const answer = await put(world, headers)
    expect(answer.statusCode).toBe(status)
    if (status === 403)
      expect([answer.json().code, world.views.config()]).toEqual(['cross_site_request', before])
  })

  test('is accepted where a token is required, because no foreign page can add a token', async () => {
    const world = await aWorld()
    const token = await world.token('operator')
    const answer = await world.ask('PUT', CONFIG, {
      token,
      headers: { origin: 'https://tool.example' },
      body: change,
    })
    expect(answer.statusCode).toBe(200)
    expect(answer.headers['access-control-allow-origin']).toBeUndefined()
  })
})

describe('the rate limit', () => {
  test('refills steadily and holds the tokens of two seconds', () => {
    const limiter = createRateLimiter(10)
    const taken = (source: string, now: number) =>
      Array.from({ length: 50 }, () => limiter.take(source, now)).filter((wait) => wait === 0).length
    expect([taken('a', 0), taken('a', 0), taken('b', 0)]).toEqual([20, 0, 20])
    expect([taken('a', 500), taken('a', 60_000)]).toEqual([5, 20])
    expect(limiter.take('a', 60_000)).toBe(1)
    expect(createRateLimiter(0).take('a', 0)).toBe(0)
  })

  test('forgets the oldest source when there are too many', () => {
    const limiter = createRateLimiter(1, 2)
    for (const source of ['a', 'a', 'b', 'c']) expect(limiter.take(source, 0)).toBe(0)
    expect([limiter.take('a', 0), limiter.take('a', 0), limiter.take('a', 0)]).toEqual([0, 0, 1])
  })

  test('counts tokens and addresses separately and returns Retry-After', async () => {
    vi.useFakeTimers({ toFake: ['performance'] })
    onTestFinished(() => void vi.useRealTimers())
    const world = await aWorld({ requestsPerSecond: 2, anonymousRequestsPerSecond: 1 })
    const [first, second] = [await world.token('viewer'), await world.token('viewer')]
    const statuses = async (how: Parameters<AccessWorld['ask']>[2], count: number, path = CONFIG) => {
      const answers = []
      for (let n = 0; n < count; n++) answers.push((await world.ask('GET', path, how)).statusCode)
      return answers
    }
    expect(await statuses({ token: first }, 5)).toEqual([200, 200, 200, 200, 429])
    expect(await statuses({ token: second, from: '10.0.0.1' }, 1)).toEqual([200])
    expect(await statuses({ token: 'guess', from: '10.0.0.1' }, 3)).toEqual([401, 401, 429])
    expect(await statuses({ from: '10.0.0.1' }, 1, '/livez')).toEqual([429])
    expect(await statuses({ token: second, from: '10.0.0.1' }, 1)).toEqual([200])
    const refused = await world.ask('GET', CONFIG, { token: first })
    expect([refused.headers['retry-after'], refused.json().code]).toEqual(['1', 'too_many_requests'])
    expect(refused.json().detail).toBe('This token has exceeded the request rate limit. Try again in 1 s.')
  })

  test('Requests are not limited where authentication is off', async () => {
    const world = await aWorld({ requestsPerSecond: 1, anonymousRequestsPerSecond: 1 })
    for (let n = 0; n < 20; n++) expect((await world.ask('GET', CONFIG)).statusCode).toBe(200)
  })

  test("believes a proxy's address header only if that proxy is configured", async () => {
    const asked = { from: '10.0.0.9', headers: { 'x-forwarded-for': '203.0.113.7' } }
    for (const [trustedProxies, address] of [
      [[], '10.0.0.9'],
      [['10.0.0.0/8'], '203.0.113.7'],
    ] as const) {
      const world = await aWorld({ trustedProxies })
      await world.ask('PUT', CONFIG, { ...asked, body: change })
      expect((await world.audits())[0]?.address).toBe(address)
    }
  })
})

describe('the audit log', () => {
  test('has an entry for each change with its actor and outcome', async () => {
    const world = await aWorld()
    const root = await world.token('admin', { name: 'root' })
    const viewer = await world.token('viewer', { name: 'eve' })
    const before = (await world.audits()).length
    const answers = [
      await world.ask('PUT', CONFIG, { token: root, body: change }),
      await world.ask('PUT', CONFIG, { token: root, body: { default_vram_overcommit_percent: 1001 } }),
      await world.ask('PUT', CONFIG, { token: viewer, body: change }),
      await world.ask('DELETE', '/api/v1/groups/none?force=true', { token: root, from: '10.0.0.1' }),
      await world.ask('POST', '/api/v1/tasks', { token: root, body: { vram_mib: 1 } }),
      await world.ask('GET', CONFIG, { token: root }),
      await world.ask('GET', CONFIG),
    ]
    const entries = (await world.audits()).slice(before)
    expect(
      entries.map(({ actor, kind, action, outcome, status, code }) => [
        actor,
        kind,
        action,
        outcome,
        status,
        code,
      ]),
    ).toEqual([
      ['root', 'control', 'putConfig', 'accepted', null, null],
      ['root', 'control', 'putConfig', 'refused', 400, 'invalid_request'],
      ['eve', 'refusal', 'putConfig', 'refused', 403, 'forbidden'],
      ['root', 'control', 'deleteGroup', 'refused', 404, 'not_found'],
      ['root', 'work', 'submitTask', 'accepted', null, null],
      [null, 'refusal', 'getConfig', 'refused', 401, 'unauthorized'],
    ])
    expect(entries[3]).toMatchObject({ target: 'DELETE /api/v1/groups/none', address: '10.0.0.1' })
    expect(entries.map(({ requestId }) => requestId)).toEqual(
      answers.filter((_, at) => at !== 5).map(({ headers }) => headers['x-request-id']),
    )
  })

  test('commits the entry of a change before the change is acknowledged', async () => {
    const world = await aWorld()
    const commits: string[][] = []
    const { commit } = world.store
    world.store.commit = (batch) => {
      commits.push([
        ...(batch.access?.audits.map(({ action }) => action) ?? []),
        ...(batch.config === null ? [] : ['the change']),
      ])
      return commit.call(world.store, batch)
    }
    await world.ask('PUT', CONFIG, { body: change })
    expect(commits).toEqual([['putConfig', 'the change']])
  })

  test('leaves out accepted keepalives and keeps refused ones', async () => {
    const world = await aWorld()
    const { id } = (await world.ask('POST', '/api/v1/tasks', { body: { vram_mib: 1 } })).json<{
      id: string
    }>()
    const before = (await world.audits()).length
    expect(
      (await world.ask('POST', `/api/v1/tasks/${id}/keepalive`, { body: { busy: true } })).statusCode,
    ).toBe(200)
    expect(
      (await world.ask('POST', '/api/v1/tasks/none/keepalive', { body: { busy: true } })).statusCode,
    ).toBe(404)
    const entries = (await world.audits()).slice(before)
    expect(entries.map(({ action, code }) => [action, code])).toEqual([['keepTaskAlive', 'not_found']])
  })

  test('keeps the first entries of a flood of refusals and counts the rest', () => {
    const sampler = new RefusalSampler()
    const kept = (source: string, now: number, count: number) =>
      Array.from({ length: count }, () => sampler.keep(source, now)).filter((n) => n !== null)
    expect(kept('a', 0, 100).length).toBe(30)
    expect(kept('b', 0, 5)).toEqual([0, 0, 0, 0, 0])
    expect(kept('a', 60_000, 2)).toEqual([70, 0])
    const many = Array.from({ length: 5_000 }, (_, n) => kept(`source ${n}`, 120_000, 1).length).reduce(
      (sum, n) => sum + n,
      0,
    )
    expect(many).toBe(600)
  })

  test('is readable by admins, with filters and pages, newest first', async () => {
    const world = await aWorld()
    const root = await world.token('admin', { name: 'root' })
    for (const id of ['a', 'b', 'c']) await world.ask('POST', '/api/v1/groups', { token: root, body: { id } })
    await world.ask('DELETE', '/api/v1/groups/a', { token: root })
    const page = async (query: string) => {
      const answer = await world.ask('GET', `/api/v1/audit?${query}`, { token: root })
      expect(answer.statusCode).toBe(200)
      return answer.json<{
        items: { action: string; target: string; seq: number }[]
        next_cursor: string | null
      }>()
    }
    expect((await page('')).items.map(({ action }) => action)).toEqual([
      'deleteGroup',
      'createGroup',
      'createGroup',
      'createGroup',
    ])
    expect((await page('target=groups%2Fa')).items.map(({ target }) => target)).toEqual([
      'DELETE /api/v1/groups/a',
    ])
    expect(
      (await page('action=createGroup&actor=root&outcome=accepted&since=2026-01-01T00:00:00Z')).items.length,
    ).toBe(3)
    expect((await page('until=2026-01-01T00:00:00Z')).items).toEqual([])
    const first = await page('limit=3')
    const second = await page(`limit=3&cursor=${String(first.next_cursor)}`)
    expect([first.items.length, second.items.map(({ action }) => action), second.next_cursor]).toEqual([
      3,
      ['createGroup'],
      null,
    ])
    for (const query of [
      'since=2026-02-31T00:00:00',
      'since=2026-13-01T00:00:00Z',
      'limit=0',
      'outcome=maybe',
      'cursor=x',
      'who=root',
    ]) {
      expect((await world.ask('GET', `/api/v1/audit?${query}`, { token: root })).statusCode, query).toBe(400)
    }
  })

  test('contains refused messages of nodes, counted when there are many', async () => {
    const world = await aWorld()
    for (let n = 0; n < 100; n++) world.access.trail?.messageRefused('node-1', 'wrong_sender')
    // The next planned cycle commits them.
    await new Promise((resolve) => setImmediate(resolve))
    const entries = await world.audits()
    expect(entries.length).toBe(30)
    expect(entries[0]).toMatchObject({
      kind: 'refusal',
      actor: 'node-1',
      action: 'message',
      target: 'wrong_sender',
      outcome: 'refused',
    })
  })
})

describe('an event stream', () => {
  test('ends soon after its token expires, and other streams stay open', async () => {
    vi.useFakeTimers({ toFake: ['setInterval'] })
    try {
      const world = await aWorld()
      const [gone, expiring, stays] = [
        await world.token('viewer'),
        await world.token('viewer', { expiresAt: world.now + 1 }),
        await world.token('viewer'),
      ]
      const url = await world.app.listen({ port: 0, host: '127.0.0.1' })
      const follow = async (token: string) => {
        const { status, body } = await fetch(`${url}/api/v1/events/stream`, {
          headers: { authorization: `Bearer ${token}` },
        })
        expect(status).toBe(200)
        const reader = body?.getReader()
        await reader?.read()
        return {
          end: reader?.closed.then(
            () => 'ended',
            () => 'ended',
          ),
          cancel: () => reader?.cancel(),
        }
      }
      const [first, second, third] = [await follow(gone), await follow(expiring), await follow(stays)]
      await new Promise((resolve) => world.engine.access.revoke(String(idIn(gone)), resolve))
      world.now += 1
      vi.advanceTimersByTime(5_000)
      expect([await first.end, await second.end]).toEqual(['ended', 'ended'])
      expect(await Promise.race([third.end, Promise.resolve('open')])).toBe('open')
      await third.cancel()
    } finally {
      vi.useRealTimers()
    }
  })
})

describe('a secret', () => {
  test('never appears in a log, response, event or audit entry', async () => {
    const lines: string[] = []
    const sink = new Writable({
      write(chunk: Buffer, _encoding, done) {
        lines.push(chunk.toString())
        done()
      },
    })
    const logger = createLog('trace', sink)
    const world = await aWorld({ logger })
    const root = await world.token('admin', { name: 'root' })
    const canary = 'canary-5f0c9a52d3e4b7a9'
    const seen: string[] = []
    const ask = async (...args: Parameters<AccessWorld['ask']>) => {
      const { body, headers } = await world.ask(...args)
      seen.push(body, JSON.stringify(headers))
    }
    for (const token of [canary, root, `headroom_${canary}`, `${root}${canary}`]) {
      for (const [method, path] of [
        ['GET', `/api/v1/tasks?token=${canary}`],
        ['GET', `/api/v1/none?secret=${canary}`],
        ['PUT', `/api/v1/config?access_token=${canary}`],
        ['POST', '/api/v1/tokens'],
        ['DELETE', `/api/v1/tokens/unknown?force=true&key=${canary}`],
        ['GET', `/livez?key=${canary}`],
        ['GET', `/%zz?key=${canary}`],
        ['PATCH', `/api/v1/config?key=${canary}`],
      ] as const) {
        await ask(method, path, { token })
        await ask(method, path, {
          headers: { authorization: `Basic ${canary}`, cookie: `session=${canary}` },
          body: { a: 1 },
        })
      }
    }
    const made = (
      await world.ask('POST', '/api/v1/tokens', { token: root, body: { name: 'x', role: 'viewer' } })
    ).json<{
      secret: string
    }>()
    await ask('GET', '/api/v1/tokens', { token: made.secret })
    // Stands for code that logs a request, or an error that contains a request.
    const request = {
      method: 'GET',
      url: `/a?b=${canary}`,
      headers: { authorization: canary, cookie: canary },
    }
    logger.error(
      { req: request, request, err: Object.assign(new Error('x'), { config: { headers: request.headers } }) },
      'careless',
    )
    logger.error({ headers: request.headers, token: canary, body: { secret: canary } }, 'careless')
    await ask('GET', '/api/v1/audit', { token: root })
    const kept = JSON.stringify([
      await world.audits(),
      await world.store.reads.events({ afterSeq: 0, taskId: null, nodeId: null, limit: 1000 }),
    ])
    expect(lines.length).toBeGreaterThan(10)
    for (const [where, text] of [
      ['log', lines.join('')],
      ['answers', seen.join('\n')],
      ['store', kept],
      ['tokens', JSON.stringify((await world.store.load()).tokens)],
    ] as const) {
      for (const secret of [canary, root.slice(-43), made.secret.slice(-43)])
        expect(text.includes(secret), `${where} shows ${secret}`).toBe(false)
    }
  })
})
