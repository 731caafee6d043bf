/**
 * Sign-in with claims from UserInfo: with the npm package oidc-provider as it is, and with a faulty provider.
 */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { createOidcProvider } from '../../controller/adapters/oidc-provider.ts'
import { Sessions } from '../../controller/api/auth/sessions.ts'
import { SignIn } from '../../controller/api/auth/sign-in.ts'
import type { AccessRegistry } from '../../controller/engine/inputs/commands/access-registry.ts'
import { accessWorld, type AccessWorld } from '../support/access-world.ts'
import { OidcProvider } from '../support/oidc-provider.ts'
import { StandardOidcProvider } from '../support/standard-oidc-provider.ts'

const PUBLIC_URL = 'http://headroom.example.org:30080'
const HOST = { host: 'headroom.example.org:30080' }
const CALLBACK = new URL('/api/v1/auth/callback', PUBLIC_URL)
const JSON_ONLY = { accept: 'application/json' }

const RULES = {
  nameClaim: 'email',
  rolesClaim: 'groups',
  roles: [
    { value: 'gpu-admins', role: 'admin' as const },
    { value: 'people', role: 'viewer' as const },
  ],
}

interface Client {
  readonly issuer: string
  readonly clientId: string
  readonly clientSecret: string
}

let world: AccessWorld | null = null
let begun: SignIn

async function serving({ issuer, clientId, clientSecret }: Client, scope: string): Promise<AccessWorld> {
  const now = (): number => world?.now ?? 0
  const provider = createOidcProvider({
    issuer: new URL(issuer),
    clientId,
    clientSecret,
    redirectUrl: CALLBACK,
    scope,
  })
  const signIn = (book: AccessRegistry) => {
    const sessions = new Sessions({ book, now, lifetimeMs: 3_600_000, settings: '' })
    return new SignIn({ provider, rules: RULES, sessions, now, isSecure: false })
  }
  world = await accessWorld({ signIn, allowedHosts: ['headroom.example.org'] })
  begun = world.access.signIn!
  return world
}

afterEach(async () => {
  await world?.app.close()
  world = null
})

const get = (path: string, headers: Record<string, string> = {}) =>
  world!.ask('GET', path, { headers: { ...HOST, ...headers } })

function cookiesOf(header: string | string[] | undefined): string {
  const set = [header ?? []].flat().filter((each) => !each.includes('Max-Age=0'))
  return set.map((each) => each.split(';', 1)[0]).join('; ')
}

describe('a provider whose ID tokens contain only the subject', () => {
  let provider: StandardOidcProvider

  beforeAll(async () => {
    const people = {
      ann: { email: 'ann@example.org', email_verified: true, groups: ['gpu-admins'] },
      eve: { email: 'eve@example.org', email_verified: false, groups: ['gpu-admins'] },
      bob: { email: 'bob@example.org', email_verified: true, groups: ['visitors'] },
    }
    provider = await StandardOidcProvider.start({ redirectUri: CALLBACK.href, people })
  })
  afterAll(() => provider.close())

  async function signIn(name: string, scope = 'openid email groups') {
    await serving(provider, scope)
    const login = await get('/api/v1/auth/login', JSON_ONLY)
    expect([login.statusCode, login.headers.location]).toEqual([200, undefined])
    const { location } = login.json<{ location: string }>()
    const back = await provider.signIn(location, name, PUBLIC_URL)
    const cookie = cookiesOf(login.headers['set-cookie'])
    const done = await get(back.pathname + back.search, { cookie, ...JSON_ONLY })
    expect(done.statusCode).toBe(200)
    return {
      location: done.json<{ location: string }>().location,
      cookie: cookiesOf(done.headers['set-cookie']),
    }
  }

  test('supplies name and role in UserInfo', async () => {
    const { location, cookie } = await signIn('ann')
    expect(location).toBe('/')
    expect((await get('/api/v1/auth/session', { cookie })).json()).toMatchObject({
      caller: { name: 'ann@example.org', role: 'admin' },
    })
  })

  test('is checked like an ID token: an unverified address or a foreign group is refused', async () => {
    expect((await signIn('eve')).location).toBe('/?sign_in_failed=no_role')
    expect((await signIn('bob')).location).toBe('/?sign_in_failed=no_role')
  })

  test('is named in a failure with the claim, its sources, and the scope', async () => {
    await serving(provider, 'openid email')
    const { url, id } = await begun.begin('/')
    const back = await provider.signIn(url, 'ann', PUBLIC_URL)
    expect(await begun.finish(id, back.searchParams)).toMatchObject({
      ok: false,
      failure: 'no_role',
      why:
        'the claim groups is missing, and no rule gives all users a role (searched in the ID token ' +
        'and UserInfo; does CONTROLLER_OIDC_SCOPE request it?)',
    })
  })
})

describe('the UserInfo response', () => {
  let provider: OidcProvider

  beforeAll(async () => {
    provider = await OidcProvider.start()
  })
  afterAll(() => provider.close())

  async function outcome(idToken: Record<string, unknown>, userInfo: Record<string, unknown> | null) {
    provider.claims = idToken
    provider.userInfo = userInfo
    await serving(provider, 'openid email')
    const { url, id } = await begun.begin('/')
    const back = new URL((await fetch(url, { redirect: 'manual' })).headers.get('location') ?? '')
    return begun.finish(id, back.searchParams)
  }

  test('for another subject than the ID token is refused', async () => {
    const result = await outcome(
      { sub: 'u1' },
      { sub: 'u2', email: 'ann@example.org', groups: ['gpu-admins'] },
    )
    expect(result).toMatchObject({ ok: false, failure: 'denied', why: expect.stringContaining('UserInfo') })
  })

  test('does not replace claims of the ID token', async () => {
    const groups = ['people']
    const result = await outcome(
      { sub: 'u1', groups },
      { sub: 'u1', email: 'ann@example.org', groups: ['gpu-admins'] },
    )
    expect(result).toMatchObject({ ok: true, caller: { name: 'ann@example.org', role: 'viewer' } })
  })

  test('that cannot be read is named as the cause', async () => {
    const result = await outcome({ sub: 'u1' }, { email: 'no subject' })
    expect(result).toMatchObject({ ok: false, failure: 'denied', why: expect.stringContaining('UserInfo') })
  })

  test('that does not exist is named as the cause', async () => {
    expect(await outcome({ sub: 'u1', groups: ['people'] }, null)).toMatchObject({
      ok: false,
      why:
        'the claim email is missing (searched in the ID token: the provider has no UserInfo; does ' +
        'CONTROLLER_OIDC_SCOPE request it?)',
    })
  })
})

test('does not prevent the redirection of a browser', async () => {
  const provider = await OidcProvider.start()
  await serving(provider, 'openid')
  for (const accept of ['text/html,application/xhtml+xml,*/*;q=0.8', 'text/html, application/json', '*/*']) {
    expect((await get('/api/v1/auth/login', { accept })).statusCode).toBe(302)
    expect((await get('/api/v1/auth/callback', { accept })).statusCode).toBe(302)
  }
  await provider.close()
})
