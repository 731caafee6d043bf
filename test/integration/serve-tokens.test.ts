/** Access to `headroom serve`, from its first start. */
import { chmodSync, existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { headroom, temporaryFolder } from '../support/headroom-command.ts'
import { OidcProvider } from '../support/oidc-provider.ts'
import { serve, WITHOUT_HISTORY, type Served } from '../support/served.ts'

const folder = temporaryFolder()
const place = (name: string): string => join(folder, name)
const SECRET = 'a-secret-of-the-environment-0123456789'

async function statusOf(
  { url }: Served,
  path: string,
  token?: string,
  init: RequestInit = {},
): Promise<number> {
  const headers = {
    'Content-Type': 'application/json',
    ...(token === undefined ? {} : { Authorization: `Bearer ${token}` }),
  }
  return (await fetch(`${url}/api/v1${path}`, { ...init, headers })).status
}

describe('a controller that is reachable from other hosts', () => {
  test('refuses to start without a token, and says what to set', async () => {
    const env = {
      CONTROLLER_HTTP_HOST: '0.0.0.0',
      CONTROLLER_HTTP_PORT: '0',
      CONTROLLER_DATA_DIR: place('open'),
      LOG_LEVEL: 'error',
    }
    const { code, stdout, stderr } = await headroom(['serve'], { env })
    expect([code, stdout, stderr.trim().split('\n').length]).toEqual([1, '', 1])
    for (const word of ['CONTROLLER_HTTP_HOST', '0.0.0.0', 'CONTROLLER_ADMIN_TOKEN_FILE', '127.0.0.1'])
      expect(stderr).toContain(word)
  })

  test('starts with an admin token from a file', async () => {
    const file = place('admin.token')
    writeFileSync(file, `${SECRET}\n`, { mode: 0o644 })
    chmodSync(file, 0o644)
    const env = {
      CONTROLLER_HTTP_HOST: '0.0.0.0',
      CONTROLLER_ADMIN_TOKEN_FILE: file,
      LOG_LEVEL: 'warn',
      ...WITHOUT_HISTORY,
    }
    const served = await serve(place('closed'), env)
    const local = { ...served, url: served.url.replace('0.0.0.0', '127.0.0.1') }
    expect(served.output()).toContain('every user of this host may read')
    expect(served.output()).not.toContain(SECRET)
    expect([
      await statusOf(local, '/tokens'),
      await statusOf(local, '/tokens', SECRET),
      await statusOf(local, '/livez'),
    ]).toEqual([401, 200, 200])
    served.process.kill('SIGTERM')
    expect(await served.ended).toBe(0)
  })

  test.each([
    ['is not there', null, 'ENOENT'],
    ['is short', 'x'.repeat(31), 'it has 31 characters'],
    ['has two lines', `${SECRET}\n${SECRET}`, 'line breaks'],
    ['is huge', 'x'.repeat(10_000), 'longer'],
  ])('refuses to start when the file %s', async (name, text, why) => {
    const file = place(name.replaceAll(' ', '-'))
    if (text !== null) writeFileSync(file, text, { mode: 0o600 })
    const { code, stderr } = await headroom(['serve'], {
      env: { CONTROLLER_ADMIN_TOKEN_FILE: file, CONTROLLER_DATA_DIR: place('never') },
    })
    expect([code, stderr.trim().split('\n').length]).toEqual([2, 1])
    for (const part of ['CONTROLLER_ADMIN_TOKEN_FILE', file, '32 to 512 characters', why])
      expect(stderr).toContain(part)
    if (text !== null) expect(stderr).not.toContain(text.slice(0, 20))
    expect(existsSync(place('never'))).toBe(false)
  })
})

describe('a controller with an identity provider', () => {
  const secretFile = place('client.secret')

  test('may run without a token, and admits users who sign in there', async () => {
    const provider = await OidcProvider.start()
    writeFileSync(secretFile, `${provider.clientSecret}\n`, { mode: 0o600 })
    const served = await serve(place('provided'), {
      ...WITHOUT_HISTORY,
      CONTROLLER_HTTP_HOST: '0.0.0.0',
      CONTROLLER_OIDC_ISSUER: provider.issuer,
      CONTROLLER_OIDC_CLIENT_ID: provider.clientId,
      CONTROLLER_OIDC_CLIENT_SECRET_FILE: secretFile,
      CONTROLLER_OIDC_PUBLIC_URL: 'http://127.0.0.1:30080',
      CONTROLLER_OIDC_ROLES: 'gpu-operators=operator',
    })
    const url = served.url.replace('0.0.0.0', '127.0.0.1')
    const cookieOf = (answer: Response): string =>
      (answer.headers.getSetCookie().at(-1) ?? '').split(';', 1)[0] ?? ''
    try {
      expect((await fetch(`${url}/api/v1/config`)).status).toBe(401)
      const begun = await fetch(`${url}/api/v1/auth/login`, { redirect: 'manual' })
      const atProvider = await fetch(begun.headers.get('location') ?? '', { redirect: 'manual' })
      const back = new URL(atProvider.headers.get('location') ?? '')
      const done = await fetch(`${url}${back.pathname}${back.search}`, {
        redirect: 'manual',
        headers: { cookie: cookieOf(begun) },
      })
      expect([done.status, done.headers.get('location')]).toEqual([302, '/'])
      const headers = { cookie: cookieOf(done) }
      expect(await (await fetch(`${url}/api/v1/auth/session`, { headers })).json()).toMatchObject({
        caller: { name: 'ada@example.org', role: 'operator' },
      })
      expect((await fetch(`${url}/api/v1/config`, { headers })).status).toBe(200)
    } finally {
      served.process.kill('SIGTERM')
      expect(await served.ended).toBe(0)
      await provider.close()
    }
    expect(served.output()).not.toContain(provider.clientSecret)
  })

  test('refuses to start when its secret file is missing', async () => {
    const env = {
      CONTROLLER_OIDC_ISSUER: 'https://id.example.org',
      CONTROLLER_OIDC_CLIENT_ID: 'x',
      CONTROLLER_OIDC_CLIENT_SECRET_FILE: place('no.secret'),
      CONTROLLER_OIDC_PUBLIC_URL: 'https://headroom.example.org',
      CONTROLLER_OIDC_ROLES: '*=viewer',
      CONTROLLER_DATA_DIR: place('never'),
    }
    const { code, stderr } = await headroom(['serve'], { env })
    expect([code, stderr.trim().split('\n').length]).toEqual([2, 1])
    for (const part of ['CONTROLLER_OIDC_CLIENT_SECRET_FILE', 'no.secret', 'ENOENT'])
      expect(stderr).toContain(part)
  })
})

describe('the token commands', () => {
  const data = place('data')
  const token = (args: readonly string[]) => headroom(['token', ...args])
  const secretOf = async (name: string, role: string): Promise<string> => {
    const { code, stdout, stderr } = await token(['create', name, '--role', role, '--data-dir', data])
    expect([code, stdout.trim().split('\n').length], stderr).toEqual([0, 1])
    return stdout.trim()
  }

  test('create a first token that survives kill -9, as does its revocation', async () => {
    expect((await token(['create', 'alice', '--role', 'viewer', '--data-dir', data])).code).toBe(5)
    const root = await secretOf('root', 'admin')
    const file = place('root.token')
    writeFileSync(file, root, { mode: 0o600 })
    let served = await serve(data, WITHOUT_HISTORY)
    expect([await statusOf(served, '/config'), await statusOf(served, '/config', root)]).toEqual([401, 200])

    const online = [...['--server', served.url], ...['--token-file', file]]
    const made = await token([
      'create',
      'alice',
      '--role',
      'submitter',
      '--expires',
      '1h',
      '-o',
      'json',
      ...online,
    ])
    const alice = JSON.parse(made.stdout) as { id: string; secret: string }
    expect(await statusOf(served, '/tasks', alice.secret, { method: 'POST', body: '{"vram_mib": 1}' })).toBe(
      201,
    )
    expect((await token(['revoke', alice.id, ...online])).code).toBe(0)
    expect((await token(['create', 'bob', '--role', 'viewer', '--data-dir', data])).stderr).toContain(
      'A controller is using',
    )
    served.process.kill('SIGKILL')
    await served.ended

    served = await serve(data, WITHOUT_HISTORY)
    expect([
      await statusOf(served, '/config', alice.secret),
      await statusOf(served, '/config', root),
    ]).toEqual([401, 200])
    const audit = await headroom(['audit', '-o', 'jsonl', '--server', served.url, '--token-file', file])
    const actions = audit.stdout
      .trim()
      .split('\n')
      .map((line) => (JSON.parse(line) as { action: string }).action)
    expect(actions).toEqual(expect.arrayContaining(['createToken', 'submitTask', 'revokeToken']))
    served.process.kill('SIGTERM')
    await served.ended
    for (const name of ['headroom.db', 'headroom.db-wal']) {
      if (existsSync(join(data, name)))
        expect(readFileSync(join(data, name)).includes(root.slice(-43)), name).toBe(false)
    }
  })

  test('exit with 7 without a token, and say where a token comes from', async () => {
    const served = await serve(data, WITHOUT_HISTORY)
    const { code, stderr } = await headroom(['status', '--server', served.url])
    expect([code, stderr]).toEqual([7, expect.stringContaining('HEADROOM_TOKEN')])
    const missing = await headroom(['status', '--server', served.url, '--token-file', place('none')])
    expect([missing.code, missing.stderr]).toEqual([2, expect.stringContaining('--token-file')])
    served.process.kill('SIGTERM')
    await served.ended
  })

  test('write a generated secret for one user, and leave an existing one unchanged', async () => {
    const file = place('generated')
    expect((await token(['generate', '--out', file])).code).toBe(0)
    const secret = readFileSync(file, 'utf8')
    expect([secret.trim().length >= 32, (statSync(file).mode & 0o777).toString(8)]).toEqual([true, '600'])
    expect((await token(['generate', '--out', file])).code).toBe(0)
    expect(readFileSync(file, 'utf8')).toBe(secret)
  })
})
