/** `headroom login` and contexts, with a controller that requires tokens. */
import { chmodSync, existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { connectionOf, settingsPath } from '../../clients/typescript/connection.ts'
import { accessWorld, type AccessWorld } from '../support/access-world.ts'
import { askedApi, deadAddress } from '../support/asked.ts'
import { headroom as run, temporaryFolder, type Ended } from '../support/headroom-command.ts'

const home = temporaryFolder()
const NO_VARIABLES = {
  HEADROOM_URL: '',
  VENDOR_CONTROLLER_URL: '',
  HEADROOM_TOKEN: '',
  XDG_CONFIG_HOME: home,
}
const FILE = join(home, 'headroom', 'client.json')

const headroom = (
  args: readonly string[],
  { stdin, env = {} }: { readonly stdin?: string; readonly env?: Record<string, string> } = {},
): Promise<Ended> =>
  run(args, { env: { ...NO_VARIABLES, ...env }, ...(stdin === undefined ? {} : { stdin }) })

describe('contexts', { timeout: 300_000 }, () => {
  let world: AccessWorld
  let url: string
  let secret: string

  beforeAll(async () => {
    world = await accessWorld()
    secret = await world.token('viewer', { name: 'ann' })
    url = await world.app.listen({ host: '127.0.0.1', port: 0 })
  })
  beforeEach(() => rmSync(join(home, 'headroom'), { recursive: true, force: true }))
  afterAll(() => world.app.close())

  const login = (): Promise<Ended> =>
    headroom(['login', `${url}/`, '--name', 'lab'], { stdin: `${secret}\n` })

  it('are stored by login, readable by their owner only, and used by the next command', async () => {
    expect((await headroom(['task', 'list'])).code).toBe(3)
    expect(await login()).toEqual({
      code: 0,
      stdout: `Authenticated as ann, role viewer. The current context is now lab (${url}).\n`,
      stderr: '',
    })
    expect(JSON.parse(readFileSync(FILE, 'utf8'))).toEqual({
      current_context: 'lab',
      contexts: { lab: { url, token: secret } },
    })
    expect([statSync(FILE).mode & 0o777, statSync(join(home, 'headroom')).mode & 0o777]).toEqual([
      0o600, 0o700,
    ])
    expect(await headroom(['task', 'list'])).toMatchObject({ code: 0, stderr: '' })
    const list = await headroom(['context', 'list', '-o', 'json'])
    expect(JSON.parse(list.stdout)).toEqual([{ name: 'lab', url, has_token: true, is_current: true }])
    expect(list.stdout).not.toContain(secret)
  })

  it('are not stored for a wrong token, no token, or an address without a controller', async () => {
    const refused = await headroom(['login', url], { stdin: 'wrong' })
    expect(refused).toMatchObject({ code: 7, stdout: '' })
    expect(await headroom(['login', url], { stdin: '' })).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('no token on stdin') as string,
    })
    expect((await headroom(['login', await deadAddress()])).code).toBe(3)
    expect(await headroom(['login', 'gpus:30080'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('"gpus:30080" is not the address of a controller') as string,
    })
    expect(existsSync(FILE)).toBe(false)
  })

  it('take the address from HEADROOM_URL where login names none', async () => {
    const env = { HEADROOM_URL: `${url},${await deadAddress()}` }
    expect(await headroom(['login', '--name', 'lab'], { stdin: secret, env })).toEqual({
      code: 0,
      stdout: `Authenticated as ann, role viewer. The current context is now lab (${url}).\n`,
      stderr: 'headroom: HEADROOM_URL is set and takes precedence over the context\n',
    })
  })

  it('are switched and removed by name; a controller without authentication needs no token', async () => {
    await login()
    const { url: open } = await askedApi()
    expect((await headroom(['login', open])).stdout).toBe(
      `No authentication required. The current context is now ${new URL(open).host} (${open}).\n`,
    )
    expect((await headroom(['context', 'use', 'lab'])).stdout).toBe('lab: current context\n')
    expect(await headroom(['context', 'use', 'labb'])).toMatchObject({
      code: 4,
      stderr: `headroom: Context "labb" not found. Contexts: lab, ${new URL(open).host}.\n`,
    })
    expect((await headroom(['context', 'remove', 'lab'])).stdout).toMatch(
      /^lab: removed; there is no current/,
    )
    expect(JSON.parse(readFileSync(FILE, 'utf8'))).toEqual({
      contexts: { [new URL(open).host]: { url: open } },
    })
  })

  it('are refused if others can read a token, in one line that says what to do', async () => {
    await login()
    chmodSync(FILE, 0o644)
    expect(await headroom(['task', 'list'])).toEqual({
      code: 2,
      stdout: '',
      stderr: `${FILE} contains a token and others can read it. Run \`chmod 600 ${FILE}\`.\n`,
    })
    expect((await headroom(['task', 'list', '--server', url])).code).toBe(7)
    chmodSync(FILE, 0o600)
    writeFileSync(FILE, '{"contexts": []}')
    expect(await headroom(['context', 'list'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(`${FILE} must be {"current_context"`) as string,
    })
  })

  it('come after options and variables, and their token is sent to their address only', async () => {
    await login()
    const env = { XDG_CONFIG_HOME: home }
    expect(settingsPath(env)).toBe(FILE)
    expect(connectionOf({}, env)).toEqual({ url, token: secret, source: 'context "lab"' })
    expect(connectionOf({}, { ...env, HEADROOM_TOKEN: 'other' })).toMatchObject({ url, token: 'other' })
    expect(connectionOf({}, { ...env, VENDOR_CONTROLLER_URL: 'http://a' })).toMatchObject({
      url: 'http://a',
      token: null,
    })
    expect(connectionOf({ url: 'http://b' }, { ...env, HEADROOM_URL: 'http://a' })).toMatchObject({
      url: 'http://b',
      token: null,
    })
    expect((await headroom(['login', url], { stdin: secret, env: { HEADROOM_URL: url } })).stderr).toBe(
      'headroom: HEADROOM_URL is set and takes precedence over the context\n',
    )
  })
})
