/** Sign-in with a browser: the controller's routes, openid-client, and a provider on a real socket. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createOidcProvider } from '../../controller/adapters/oidc-provider.ts'
import { createMemoryStore } from '../../controller/adapters/memory-store.ts'
import { Sessions } from '../../controller/api/auth/sessions.ts'
import { SignIn } from '../../controller/api/auth/sign-in.ts'
import type { AccessRegistry } from '../../controller/engine/inputs/commands/access-registry.ts'
import type { Store } from '../../controller/ports/store.ts'
import { accessWorld, type AccessWorld } from '../support/access-world.ts'
import { OidcProvider } from '../support/oidc-provider.ts'

const PUBLIC_URL = 'http://headroom.example.org:30080'
const HOST = { host: 'headroom.example.org:30080' }
const HOUR_MS = 3_600_000

let provider: OidcProvider
let world: AccessWorld
let store: Store
/** A controller on the store. */
let worldOf: (store: Store, settings: string) => Promise<AccessWorld>

beforeAll(async () => {
  provider = await OidcProvider.start()
})
afterAll(() => provider.close())

beforeEach(async () => {
  provider.claims = { sub: 'u1', email: 'ada@example.org', groups: ['gpu-operators', 'people'] }
  provider.lie = {}
  provider.refuses = false
  const now = (): number => world.now
  const oidc = createOidcProvider({
    issuer: new URL(provider.issuer),
    clientId: provider.clientId,
    clientSecret: provider.clientSecret,
    redirectUrl: new URL('/api/v1/auth/callback', PUBLIC_URL),
    scope: 'openid email',
  })
  const rules = {
    nameClaim: 'email',
    rolesClaim: 'groups',
    roles: [
      { value: 'people', role: 'viewer' as const },
      { value: 'gpu-operators', role: 'operator' as const },
    ],
  }
  const given = { provider: oidc, rules, now, isSecure: false }
  worldOf = (store, settings) => {
    const sessions = (book: AccessRegistry) => new Sessions({ book, now, lifetimeMs: 8 * HOUR_MS, settings })
    const signIn = (book: AccessRegistry) => new SignIn({ ...given, sessions: sessions(book) })
    return accessWorld({ store, signIn, allowedHosts: ['headroom.example.org'] })
  }
  store = createMemoryStore()
  world = await worldOf(store, 'first')
})
afterEach(() => world.app.close())

const get = (path: string, headers: Record<string, string> = {}) =>
  world.ask('GET', path, { headers: { ...HOST, ...headers } })

/** Name and value of a received cookie, as a browser sends it back. */
function cookiesOf(header: string | string[] | undefined): string {
  return [header ?? []]
    .flat()
    .filter((each) => !each.includes('Max-Age=0'))
    .map((each) => each.split(';', 1)[0])
    .join('; ')
}

/**
 * Follows the redirects to the provider and back, as a browser does; returns the final location and the
 * cookies.
 */
async function signIn(returnTo = '/') {
  const begun = await get(`/api/v1/auth/login?return_to=${encodeURIComponent(returnTo)}`)
  expect(begun.statusCode).toBe(302)
  const atProvider = await fetch(String(begun.headers.location), { redirect: 'manual' })
  const back = new URL(atProvider.headers.get('location') ?? '')
  expect(back.origin).toBe(PUBLIC_URL)
  const login = cookiesOf(begun.headers['set-cookie'])
  const done = await get(back.pathname + back.search, { cookie: login })
  return {
    begun,
    back,
    login,
    done,
    cookie: cookiesOf(done.headers['set-cookie']),
    location: done.headers.location,
  }
}

describe('a user who signs in', () => {
  test('gets a session with name and highest role of the claims, and returns to the page', async () => {
    const { begun, done, cookie, location } = await signIn('/nodes?q=a')
    expect(location).toBe('/nodes?q=a')
    expect(String(begun.headers['set-cookie'])).toMatch(
      /^headroom_login=.*; Max-Age=600; Path=\/api\/v1\/auth; HttpOnly; SameSite=Lax$/,
    )
    expect(String(done.headers['set-cookie'])).toMatch(
      /headroom_session=[\w-]{43}; Max-Age=28800; Path=\/; HttpOnly; SameSite=Strict/,
    )
    expect((await get('/api/v1/auth/session', { cookie })).json()).toEqual({
      is_open: false,
      sign_in: ['provider', 'token'],
      provider: new URL(provider.issuer).host,
      caller: {
        name: 'ada@example.org',
        role: 'operator',
        expires_at: new Date(world.now + 8 * HOUR_MS).toISOString(),
      },
    })
    expect((await get('/api/v1/config', { cookie })).statusCode).toBe(200)
    expect((await get('/api/v1/tokens', { cookie })).statusCode).toBe(403)
  })

  test('is the author of changes, and the audit log names the session', async () => {
    const { cookie } = await signIn()
    const changed = await world.ask('PUT', '/api/v1/config', {
      headers: { ...HOST, cookie, 'sec-fetch-site': 'same-origin' },
      body: { default_vram_overcommit_percent: 20 },
    })
    expect(changed.statusCode).toBe(200)
    const audits = await world.audits()
    expect(audits.map(({ action, actor, role, outcome }) => [action, actor, role, outcome])).toEqual([
      ['signIn', 'ada@example.org', 'operator', 'accepted'],
      ['putConfig', 'ada@example.org', 'operator', 'accepted'],
    ])
    expect(audits[1]?.tokenId).toMatch(/^session-[0-9a-f]{12}$/)
    expect(JSON.stringify(audits)).not.toContain(cookie.split('=')[1])
  })

  test('cannot be made to change something by a cross-site request', async () => {
    const { cookie } = await signIn()
    const foreign = { ...HOST, cookie, origin: 'https://evil.example.net', 'sec-fetch-site': 'cross-site' }
    const refused = await world.ask('PUT', '/api/v1/config', {
      headers: foreign,
      body: { default_vram_overcommit_percent: 90 },
    })
    expect(refused.json()).toMatchObject({ status: 403, code: 'cross_site_request' })
    expect((await get('/api/v1/config', { cookie })).json()).toMatchObject({
      default_vram_overcommit_percent: 0,
    })
  })

  test('has a session until sign-out or its expiry', async () => {
    const first = await signIn()
    const out = await world.ask('POST', '/api/v1/auth/logout', { headers: { ...HOST, cookie: first.cookie } })
    expect(out.statusCode).toBe(204)
    expect(String(out.headers['set-cookie'])).toContain('headroom_session=; Max-Age=0; Path=/')
    expect((await get('/api/v1/config', { cookie: first.cookie })).statusCode).toBe(401)
    const second = await signIn()
    world.now += 8 * HOUR_MS
    expect((await get('/api/v1/config', { cookie: second.cookie })).statusCode).toBe(401)
    expect((await get('/api/v1/auth/session', { cookie: second.cookie })).json()).toMatchObject({
      caller: null,
    })
  })
})

describe('A session', () => {
  const statusOf = async (cookie: string) => (await get('/api/v1/config', { cookie })).statusCode
  async function restarted(settings = 'first'): Promise<void> {
    await world.app.close()
    const { now } = world
    world = await worldOf(store, settings)
    world.now = now
  }

  test('continues after a restart, and one that was ended does not', async () => {
    const [kept, ended] = [await signIn(), await signIn()]
    await world.ask('POST', '/api/v1/auth/logout', { headers: { ...HOST, cookie: ended.cookie } })
    await restarted()
    expect([await statusOf(kept.cookie), await statusOf(ended.cookie)]).toEqual([200, 401])
    world.now += 8 * HOUR_MS
    expect(await statusOf(kept.cookie)).toBe(401)
  })

  test('ends when the sign-in settings change', async () => {
    const { cookie } = await signIn()
    await restarted('second')
    expect(await statusOf(cookie)).toBe(401)
  })

  test('is not a token: no list and no bearer secret has it, and an admin can end it by its id', async () => {
    const { cookie } = await signIn()
    const token = await world.token('admin')
    const as = (method: string, path: string) => world.ask(method, path, { token, headers: HOST })
    expect((await as('GET', '/api/v1/tokens')).json()).toMatchObject({ total: 1 })
    const secret = cookie.split('=')[1] ?? ''
    expect((await get('/api/v1/config', { authorization: `Bearer ${secret}` })).statusCode).toBe(401)
    const id = (await world.audits())[0]?.tokenId ?? ''
    expect((await as('DELETE', `/api/v1/tokens/${id}`)).statusCode).toBe(204)
    expect(await statusOf(cookie)).toBe(401)
    await restarted()
    expect(await statusOf(cookie)).toBe(401)
  })

  test('is removed from the store when another begins after it has expired', async () => {
    await signIn()
    world.now += 8 * HOUR_MS
    await signIn()
    expect((await store.load()).tokens).toHaveLength(1)
  })
})

describe('A sign-in is refused', () => {
  async function failure(): Promise<string | undefined> {
    const { done, cookie, location } = await signIn()
    expect(done.statusCode).toBe(302)
    expect(cookie).toBe('')
    return location
  }

  test('for a user without a role', async () => {
    provider.claims = { sub: 'u2', email: 'eve@example.org', groups: ['visitors'] }
    expect(await failure()).toBe('/?sign_in_failed=no_role')
    expect(await world.audits()).toMatchObject([
      { action: 'signIn', actor: null, kind: 'refusal', outcome: 'refused', code: 'forbidden' },
    ])
  })

  test('for a user with an unverified address', async () => {
    provider.claims = { ...provider.claims, email_verified: false }
    expect(await failure()).toBe('/?sign_in_failed=no_role')
  })

  test('for a user who declines at the provider', async () => {
    provider.refuses = true
    expect(await failure()).toBe('/?sign_in_failed=denied')
  })

  test.each([
    ['for another sign-in', { nonce: 'other' }],
    ['for another client', { audience: 'other' }],
    ['of another issuer', { issuer: 'http://127.0.0.1:1' }],
    ['that another key signed', { isForged: true }],
    ['that has expired', { expiresInSeconds: -3600 }],
  ])('with an ID token %s', async (_, lie) => {
    provider.lie = lie
    expect(await failure()).toBe('/?sign_in_failed=denied')
  })

  test('in another browser than the one that began it, and a second time', async () => {
    const { back, login, done } = await signIn()
    expect(done.headers.location).toBe('/')
    const again = await get(back.pathname + back.search, { cookie: login })
    expect(again.headers.location).toBe('/?sign_in_failed=expired')
    const elsewhere = await get(back.pathname + back.search)
    expect(elsewhere.headers.location).toBe('/?sign_in_failed=expired')
  })

  test('with an unknown state', async () => {
    const begun = await get('/api/v1/auth/login')
    const atProvider = await fetch(String(begun.headers.location), { redirect: 'manual' })
    const back = new URL(atProvider.headers.get('location') ?? '')
    back.searchParams.set('state', 'forged')
    const done = await get(back.pathname + back.search, { cookie: cookiesOf(begun.headers['set-cookie']) })
    expect(done.headers.location).toBe('/?sign_in_failed=denied')
  })

  test('after ten minutes at the provider', async () => {
    const begun = await get('/api/v1/auth/login')
    const back = new URL(
      (await fetch(String(begun.headers.location), { redirect: 'manual' })).headers.get('location') ?? '',
    )
    world.now += 600_000
    const done = await get(back.pathname + back.search, { cookie: cookiesOf(begun.headers['set-cookie']) })
    expect(done.headers.location).toBe('/?sign_in_failed=expired')
  })

  test('with a forged session', async () => {
    expect((await get('/api/v1/config', { cookie: 'headroom_session=guess' })).statusCode).toBe(401)
  })
})

test('while the provider is unreachable, with a message and a new attempt next time', async () => {
  const gone = await OidcProvider.start()
  const issuer = new URL(gone.issuer)
  await gone.close()
  const redirectUrl = new URL('/api/v1/auth/callback', PUBLIC_URL)
  const oidc = createOidcProvider({ issuer, clientId: 'x', clientSecret: null, redirectUrl, scope: 'openid' })
  await expect(oidc.begin()).rejects.toMatchObject({ name: 'ProviderFault', kind: 'unreachable' })
  await expect(oidc.begin()).rejects.toMatchObject({ message: expect.stringContaining(issuer.host) })
})

test.each([
  '//evil.example.net',
  '/\\evil.example.net',
  'https://evil.example.net/',
  'javascript:alert(1)',
  '',
])('never with a redirection to %j', async (returnTo) => {
  expect((await signIn(returnTo)).location).toBe('/')
})

test('without a provider: there is no sign-in', async () => {
  const plain = await accessWorld()
  expect((await plain.ask('GET', '/api/v1/auth/session')).json()).toEqual({
    is_open: true,
    sign_in: [],
    provider: null,
    caller: { name: null, role: 'admin', expires_at: null },
  })
  expect((await plain.ask('GET', '/api/v1/auth/login')).statusCode).toBe(404)
  await plain.token('viewer')
  expect((await plain.ask('GET', '/api/v1/auth/session')).json()).toMatchObject({
    is_open: false,
    sign_in: ['token'],
    caller: null,
  })
  await plain.app.close()
})
