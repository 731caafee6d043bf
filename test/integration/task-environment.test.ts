/**
 * Environment variables and secrets of a task with real processes: the task gets them, and their values are
 * found nowhere else.
 */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { globSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { headroom } from '../support/headroom-command.ts'
import { LiveCluster, until } from '../support/live-cluster.ts'
import { whyNoNatsServer } from '../support/nats-server.ts'

const INVENTORY = 'gpus:\n  - { vram_mib: 8Gi, swap: { out_mib_per_s: 100000, in_mib_per_s: 100000 } }\n'
const PLAIN = 'plain-value-4f1d0c6e'
const SECRET = 'secret-value-93b27a51 with "quotes" and $dollars'
/** Prints the checksum of both values, so that its output holds neither. */
const SCRIPT = 'printf "%s|%s|$GREETING" "$PLAIN" "$KEY" | sha256sum | cut -c1-64; sleep 2'

interface Task {
  readonly id: string
  readonly state: string
  readonly wait: { readonly reason: string; readonly sentence: string } | null
}

describe.skipIf(whyNoNatsServer() !== null)('a task with an environment', () => {
  let cluster: LiveCluster | null = null
  afterEach(async () => cluster?.end())

  it('gets its values over a restart of the controller, and they are found nowhere else', async () => {
    const live = (cluster = await LiveCluster.start({ CONTROLLER_RECORD: 'true', LOG_LEVEL: 'trace' }))
    await live.send('PUT', '/secrets/api-key', { value: SECRET })
    const { id } = await live.send<Task>('POST', '/tasks', {
      vram_mib: 1_000,
      command: ['sh', '-c', SCRIPT],
      env: { PLAIN, GREETING: 'hello' },
      secrets: { KEY: 'api-key' },
    })
    await live.controller.end('SIGKILL')
    await live.startController()
    await live.startServer('alpha', INVENTORY)
    const task = (): Promise<Task> => live.get<Task>(`/tasks/${id}`)
    await until('it runs', async () => (await task()).state === 'running')
    expect(await live.get(`/tasks/${id}/env`)).toEqual({ env: { PLAIN, GREETING: 'hello' } })
    expect(execFileSync('ps', ['-eo', 'args'], { encoding: 'utf8' })).not.toMatch(/plain-value|secret-value/)
    expect(holdersIn(live.folder)).toEqual([])
    writeFileSync(live.path('control'), `xx${PLAIN}xx`)
    expect(holdersIn(live.folder)).toEqual([live.path('control')])
    rmSync(live.path('control'))
    await until('it has ended', async () => (await task()).state === 'completed')
    const { data: output } = await live.get<{ readonly data: string }>(`/tasks/${id}/logs`)
    expect(Buffer.from(output, 'base64').toString().trim()).toBe(
      createHash('sha256').update(`${PLAIN}|${SECRET}|hello`).digest('hex'),
    )
    const data = live.path('controller')
    const backup = await headroom(['backup', live.path('backup.db'), '--data-dir', data])
    expect(backup.code).toBe(0)
    expect(holdersIn(live.folder)).toEqual([])
    expect(JSON.stringify(await live.get('/snapshot'))).not.toMatch(/plain-value|secret-value/)
    expect(live.controller.output).not.toMatch(/plain-value|secret-value/)
    expect(statSync(join(data, 'secrets.key')).mode & 0o777).toBe(0o600)
  })

  it('is refused at the start without its key, and waits with a reason if the key is given up', async () => {
    const live = (cluster = await LiveCluster.start())
    const { id } = await live.send<Task>('POST', '/tasks', {
      vram_mib: 1_000,
      command: ['true'],
      env: { PLAIN },
    })
    await live.controller.end('SIGTERM')
    rmSync(join(live.path('controller'), 'secrets.key'))
    await expect(live.startController()).rejects.toThrow(
      /0 secrets and the variables of 1 task were encrypted with another key/,
    )
    await live.startController('--new-secrets-key')
    await live.startServer('alpha', INVENTORY)
    const task = (): Promise<Task> => live.get<Task>(`/tasks/${id}`)
    await until('it is refused', async () => (await task()).wait?.reason === 'START_REFUSED')
    expect((await task()).wait?.sentence).toContain('environment_unreadable')
  })
})

/** Files below the folder that contain a value, as text, in Base64 or in JSON. */
function holdersIn(folder: string): readonly string[] {
  const forms = [PLAIN, SECRET.slice(0, 21), Buffer.from(PLAIN).toString('base64').slice(0, 20)]
  return globSync('**', { cwd: folder, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((file) => {
      const bytes = readFileSync(file)
      return forms.some((form) => bytes.includes(form))
    })
}
