/**
 * The contents of an image and an installed package: the build, without the sources, with only the copied
 * files.
 */
import { execFile } from 'node:child_process'
import { chmodSync, cpSync, existsSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, it } from 'vitest'
import { temporaryFolder, write } from '../support/headroom-command.ts'
import { startNatsServer, whyNoNatsServer } from '../support/nats-server.ts'
import { startHeadroom } from '../support/running-command.ts'
import { getJson, serve } from '../support/served.ts'
import { taskIdentity } from '../support/task-identity.ts'

const ROOT = join(import.meta.dirname, '../..')
const run = promisify(execFile)

describe('the build', { timeout: 300_000 }, () => {
  const folder = temporaryFolder()
  // Tasks enter it, each as a separate user.
  chmodSync(folder, 0o711)
  const main = join(folder, 'dist/cli/main.js')
  const headroom = (...args: string[]) => run(process.execPath, [main, ...args], { cwd: folder })

  beforeAll(async () => {
    // A make process inside `make test` would inherit its flags.
    const { MAKEFLAGS: _MAKEFLAGS, MAKELEVEL: _MAKELEVEL, ...env } = process.env
    await run('make', ['--silent', 'build', `DIST=${join(folder, 'dist')}`], { cwd: ROOT, env })
    for (const path of ['package.json', 'scenarios'])
      cpSync(join(ROOT, path), join(folder, path), { recursive: true })
    symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
  }, 120_000)

  it('serves the API and the page with a working store', async () => {
    const served = await serve(join(folder, 'data'), { NODE_ENV: 'production' }, [main])
    const page = await fetch(`${served.url}/`)
    expect([page.status, page.headers.get('content-type')]).toEqual([
      200,
      expect.stringContaining('text/html'),
    ])
    expect(await getJson(`${served.url}/readyz`)).toMatchObject({ status: 'ready' })
    served.process.kill('SIGTERM')
    expect(await served.ended).toBe(0)
  })

  it('finds its scenarios, and the modules of its worker processes', async () => {
    const sweep = [
      'sim',
      'sweep',
      'scenarios/swap-fairness-basic.scenario.yaml',
      '--overcommit',
      '0..50:50',
      '--seeds',
      '1..2',
      '--jobs',
      '2',
      '--json',
    ]
    const { stdout } = await headroom(...sweep)
    expect((JSON.parse(stdout) as { readonly runs: readonly unknown[] }).runs).toHaveLength(4)
  })

  it('contains the client module with its types', async () => {
    const code =
      "import('headroom/client').then(({ createClient }) => console.log(Object.keys(createClient()).join()))"
    const { stdout } = await run(process.execPath, ['-e', code], { cwd: folder })
    expect(stdout).toMatch(/^url,tasks,nodes,/)
    expect(existsSync(join(folder, 'dist/clients/typescript/client.d.ts'))).toBe(true)
  })

  it.skipIf(whyNoNatsServer() !== null)(
    'runs as a GPU server, finds its guard, and runs a task to its end',
    async () => {
      const broker = await startNatsServer()
      const env = { CONTROLLER_NATS_URL: broker.url, LOG_LEVEL: 'info' }
      const served = await serve(join(folder, 'live'), env, [main])
      const inventory = write(
        folder,
        'inventory.yaml',
        'gpus: [{ model: declared, vram_mib: 8192, swap: pinned-gen4 }]\n',
      )
      const command = [
        'gpu-server',
        '--device',
        'process',
        '--inventory',
        inventory,
        '--allow-exec',
        '--stop-tasks',
        ...taskIdentity(),
      ]
      const server = startHeadroom(
        command,
        { ...env, NODE_NAME: 'packed', NODE_STATE_DIR: join(folder, 'state') },
        [main],
      )
      await server.says(/GPU server runs/)
      const submitted = await fetch(`${served.url}/api/v1/tasks`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify({ vram_mib: 1024, command: ['sh', '-c', 'exit 7'] }),
      })
      const { id } = (await submitted.json()) as { readonly id: string }
      const seen = () =>
        getJson<{ readonly state: string; readonly exit_code: number | null }>(
          `${served.url}/api/v1/tasks/${id}`,
        )
      await expect.poll(seen, { timeout: 60_000 }).toMatchObject({ state: 'failed', exit_code: 7 })
      for (const { process: part, ended } of [server, served]) {
        part.kill('SIGTERM')
        expect(await ended).toBe(0)
      }
      await broker.kill()
    },
  )

  it('prints its version', async () => {
    expect((await headroom('--version')).stdout).toMatch(/^\d+\.\d+\.\d+\n$/)
  })
})
