/** One host without a controller: the same decisions in one process, over a Unix socket. */
import { execFile } from 'node:child_process'
import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { createClient, type Task } from '../../clients/typescript/client.ts'
import { newSecret } from '../../controller/api/auth/token-secrets.ts'
import { FROM_SOURCES_ENV, headroom as run, temporaryFolder } from '../support/headroom-command.ts'
import { until } from '../support/live-cluster.ts'
import { freePort } from '../support/free-port.ts'
import { OneHost } from '../support/one-host.ts'

const VRAM_MIB = 6_000
/** daemon: an ordinary user of every Linux host. */
const USER = 1
const ROOT = join(import.meta.dirname, '../..')
/** Compiled modules, which other users cannot write next to those of this user. */
const cache = temporaryFolder()
chmodSync(cache, 0o777)

describe('headroom gpu-server --standalone', { timeout: 300_000 }, () => {
  let host: OneHost
  const get = (id: string): Promise<Task> => host.client.tasks.get(id)
  const isIn = async (id: string, state: string): Promise<boolean> => (await get(id)).state === state

  describe('with settings that swap within seconds', () => {
    beforeAll(async () => {
      host = new OneHost()
      await host.startForSwaps()
    })
    afterAll(() => host.end())

    /** Submits with VENDOR_SWAP_FROM_VRAM. */
    const submitted = (swap: '0' | '1', command: readonly string[]): Promise<Task> =>
      createClient({
        url: host.url,
        environment: { VENDOR_SWAP_FROM_VRAM: swap },
      }).tasks.submit({ vram_mib: VRAM_MIB, command: [...command] })

    it('lets two tasks take turns on one GPU with VENDOR_SWAP_FROM_VRAM=1', async () => {
      const work = ['sleep', '8']
      const first = await submitted('1', work)
      await until('the first runs', () => isIn(first.id, 'running'))
      const second = await submitted('1', work)
      await until(
        'the second has the VRAM of the first',
        async () => (await get(first.id)).residency === 'swapped_out' && (await isIn(second.id, 'running')),
      )
      await host.untilCompleted([first.id, second.id])
      expect(await get(first.id)).toMatchObject({ attempt: 1, swap_outs: 1 })
    })

    it('lets no task take turns with VENDOR_SWAP_FROM_VRAM=0: the second waits for the end', async () => {
      const work = ['sleep', '4']
      const first = await submitted('0', work)
      await until('the first runs', () => isIn(first.id, 'running'))
      const second = await submitted('0', work)
      await until('the first is completed', async () => {
        const [waiting, task] = [await get(second.id), await get(first.id)]
        if (task.finished_at !== null) return true
        // The first may end between the two answers; the instants below say which came first.
        if (waiting.state !== 'pending') return false
        expect(task.state).toBe('running')
        // A task whose process has just ended has no residency.
        expect(['resident', 'none']).toContain(task.residency)
        return false
      })
      expect(await get(first.id)).toMatchObject({ state: 'completed' })
      await until('the second is completed', () => isIn(second.id, 'completed'))
      const [one, two] = [await get(first.id), await get(second.id)]
      const [began, ended] = [two.first_started_at, one.finished_at].map((at) => Date.parse(at ?? ''))
      expect(began).toBeGreaterThanOrEqual(ended ?? NaN)
      expect([one.swap_outs, two.swap_outs]).toEqual([0, 0])
    })

    it('recorded both, and the controller of the simulator decides the recording equally', async () => {
      await host.server.end('SIGTERM')
      const recording = join(host.folder, 'data/recording')
      const { code, stdout } = await run(['sim', 'redecide', recording, '--json'])
      const again = JSON.parse(stdout) as { readonly difference: unknown; readonly decisions: number }
      expect(again).toMatchObject({ difference: null })
      expect(again.decisions).toBeGreaterThan(2)
      expect(code).toBe(0)
    })
  })

  it('loses nothing acknowledged and runs nothing twice over kill -9', async () => {
    host = new OneHost()
    onTestFinished(() => host.end())
    const { client, folder, server } = host
    await host.start()
    await client.config.set({ safety_reserve_mib: 0, heartbeat_seconds: 1 })
    const mark = join(folder, 'marks')
    const once = (name: string, then: string): string[] => ['sh', '-c', `echo ${name} >> "${mark}"; ${then}`]
    writeFileSync(mark, '')
    chmodSync(mark, 0o666)
    const running = await client.tasks.submit({
      vram_mib: VRAM_MIB,
      noswap: 1,
      command: once('r', 'sleep 9'),
    })
    await until('the first runs', () => isIn(running.id, 'running'))
    const pending = []
    for (let i = 0; i < 20; i++)
      pending.push(
        await client.tasks.submit({ name: `p-${i}`, vram_mib: 2_000, command: once(`p${i}`, ':') }),
      )
    await server.end('SIGKILL')
    await host.start()
    const ids = [running, ...pending].map(({ id }) => id)
    await host.untilCompleted(ids)
    expect(await get(running.id)).toMatchObject({ attempt: 1, requeues: 0 })
    const lines = readFileSync(mark, 'utf8').trim().split('\n')
    expect(lines).toHaveLength(ids.length)
    expect(new Set(lines)).toEqual(new Set(['r', ...pending.map((_, i) => `p${i}`)]))
  })

  it('refuses a TCP port without a token, and other settings of a cluster', async () => {
    host = new OneHost()
    onTestFinished(() => host.end())
    const { folder } = host
    const options = ['gpu-server', '--standalone', '--socket', join(folder, 'other.sock')]
    const refused = (env: Record<string, string>) =>
      run([...options, '--device', 'process', '--inventory', join(folder, 'inventory.yaml')], {
        env: { CONTROLLER_DATA_DIR: join(folder, 'other'), NODE_STATE_DIR: join(folder, 'os'), ...env },
      })
    const tcp = await refused({ CONTROLLER_HTTP_PORT: '30081' })
    expect(tcp.stderr).toContain('CONTROLLER_HTTP_PORT is set and there is no token')
    expect(tcp.code).not.toBe(0)
    const cluster = await refused({ CONTROLLER_NATS_URL: 'nats://127.0.0.1:1' })
    expect(cluster).toMatchObject({ code: 2, stderr: expect.stringContaining('unset CONTROLLER_NATS_URL') })
    expect(await run(['gpu-server', '--socket', 'x'])).toMatchObject({ code: 2 })
  })

  it('serves TCP too when a port is set and a token exists, to the holders of a token only', async () => {
    const port = await freePort()
    const { secret } = newSecret()
    const folder = mkdtempSync(join(tmpdir(), 'headroom-token-'))
    writeFileSync(join(folder, 'token'), secret, { mode: 0o600 })
    host = new OneHost({
      CONTROLLER_HTTP_PORT: String(port),
      CONTROLLER_ADMIN_TOKEN_FILE: join(folder, 'token'),
    })
    onTestFinished(() => host.end())
    await host.start()
    const overTcp = (token: string | null) =>
      createClient({ url: `http://127.0.0.1:${port}`, token, attempts: 1 }).nodes.list()
    await expect(overTcp(null)).rejects.toMatchObject({ status: 401 })
    await expect(overTcp(`${secret}x`)).rejects.toMatchObject({ status: 401 })
    expect((await overTcp(secret)).items.map(({ name }) => name)).toEqual(['host'])
    expect((await host.client.session()).caller).toMatchObject({ role: 'admin' })
    rmSync(folder, { recursive: true })
  })

  it.runIf(process.getuid?.() === 0)(
    'serves one ordinary user over a socket in XDG_RUNTIME_DIR, which no other user can open',
    async () => {
      host = new OneHost({}, USER)
      onTestFinished(() => host.end())
      const { client, socket, folder } = host
      await host.start()
      expect(statSync(socket).mode & 0o777).toBe(0o600)
      const asUid = (uid: number, args: readonly string[], more: Record<string, string> = {}) =>
        asUser(uid, [process.execPath, join(ROOT, 'cli/main.ts'), ...args], {
          HOME: '/none',
          XDG_RUNTIME_DIR: join(folder, 'run'),
          ...more,
        })
      expect((await asUid(USER, ['status'])).stdout).toContain(`unix://${socket}`)
      expect((await asUid(USER, ['run', '--vram', '1Gi', '--', 'id', '-u'])).stdout).toBe(`${USER}\n`)
      expect((await client.tasks.list()).items.map(({ owner }) => owner)).toEqual(['daemon'])
      const other = await asUid(USER + 1, ['status'], { HEADROOM_URL: `unix://${socket}` })
      expect(other.stderr).toContain('permission denied')
      const login = await asUid(USER, ['login', `unix://${socket}`], { XDG_CONFIG_HOME: join(folder, 'cfg') })
      expect(login).toMatchObject({ stderr: '' })
      expect(login.stdout).toBe(
        `Authenticated as daemon, role admin. The current context is now local (unix://${socket}).\n`,
      )
    },
  )

  describe('over its socket', () => {
    beforeAll(async () => {
      host = new OneHost()
      await host.start()
    })
    afterAll(() => host.end())

    it('identifies 100 connections that come at once', async () => {
      const { url } = host
      const begin = performance.now()
      const sessions = await Promise.all(
        Array.from({ length: 100 }, () => createClient({ url, attempts: 1 }).session()),
      )
      console.log(`100 connections in ${(performance.now() - begin).toFixed(0)} ms`)
      expect(new Set(sessions.map(({ caller }) => caller?.role))).toEqual(new Set(['admin']))
    })

    it.runIf(process.getuid?.() === 0)(
      'knows its callers by their user: another user owns its tasks and is not an admin',
      async () => {
        const { client, socket, url } = host
        expect(statSync(socket).mode & 0o007).toBe(0)
        expect((await client.session()).caller).toMatchObject({ name: 'root', role: 'admin' })
        // As a member of the group may.
        chmodSync(socket, 0o666)
        const asDaemon = (...args: string[]) =>
          asUser(USER, [process.execPath, join(ROOT, 'cli/main.ts'), ...args], {
            HEADROOM_URL: url,
            HOME: '/',
          })
        const mine = await asDaemon('run', '--vram', '1Gi', '--detach', '--', 'true')
        expect(mine.stderr).toBe('')
        const { items } = await client.tasks.list()
        expect(items.map(({ owner }) => owner)).toEqual(['daemon'])
        const other = await client.tasks.submit({ vram_mib: 1_000, command: ['sleep', '30'] })
        expect((await asDaemon('task', 'cancel', other.id)).stderr).toContain('another user')
        expect((await asDaemon('config', 'set', 'idle_swap_out_seconds=7')).stderr).toContain('role')
      },
    )
  })
})

async function asUser(
  uid: number,
  [file = '', ...args]: readonly string[],
  env: Record<string, string>,
): Promise<{ readonly stderr: string; readonly stdout: string }> {
  return new Promise((resolve) => {
    const own = {
      PATH: process.env['PATH'] ?? '',
      HEADROOM_BUNDLED_PACKAGES: process.env['HEADROOM_BUNDLED_PACKAGES'] ?? '{}',
      XDG_CACHE_HOME: cache,
      ...FROM_SOURCES_ENV,
    }
    const about = { uid, gid: uid, env: { ...own, ...env }, cwd: '/' }
    const child = execFile(file, args, about, (_error, stdout, stderr) => resolve({ stdout, stderr }))
    // A command that asks for input fails instead of waiting.
    child.stdin?.end()
  })
}
