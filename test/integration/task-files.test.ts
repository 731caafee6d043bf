/**
 * Files of tasks with real processes: a folder is uploaded, its program runs in a copy on the GPU server, and
 * its results are copied back, through controller and broker.
 */
import { createHash, randomBytes } from 'node:crypto'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { headroom, type Ended } from '../support/headroom-command.ts'
import { LiveCluster, until } from '../support/live-cluster.ts'
import { whyNoNatsServer } from '../support/nats-server.ts'

const INVENTORY = 'gpus:\n  - { vram_mib: 8Gi, swap: { out_mib_per_s: 100000, in_mib_per_s: 100000 } }\n'
const MIB = 1024 * 1024
const isRoot = process.getuid?.() === 0

interface Task {
  readonly id: string
  readonly state: string
  readonly wait: { readonly reason: string; readonly sentence: string } | null
}

describe.skipIf(whyNoNatsServer() !== null)('a task with a folder', { timeout: 300_000 }, () => {
  let live: LiveCluster
  let project: string

  beforeAll(async () => {
    live = await LiveCluster.start()
    await live.startServer('alpha', INVENTORY, { NODE_WORK_RETENTION_SECONDS: '3600' })
  }, 120_000)
  afterAll(async () => live.end())
  beforeEach(() => {
    project = mkdtempSync(join(tmpdir(), 'headroom-project-'))
  })
  afterEach(() => rmSync(project, { recursive: true, force: true }))

  const cli = (args: readonly string[], cwd = project): Promise<Ended> =>
    headroom([...args], { cwd, env: { HEADROOM_URL: live.url } })
  const put = (path: string, content: string | Buffer, mode = 0o644): void => {
    mkdirSync(join(project, path, '..'), { recursive: true })
    writeFileSync(join(project, path), content, { mode })
  }
  const blobs = (): readonly string[] =>
    readdirSync(live.path('controller/files'), { recursive: true, encoding: 'utf8' }).filter((name) =>
      /[0-9a-f]{64}$/.test(name),
    )

  it('runs its program in a copy of the folder, and its result is copied back', async () => {
    const weights = randomBytes(9 * MIB + 5)
    put(
      'train.sh',
      '#!/bin/sh\nmkdir -p out/deep && sha256sum <data/weights.bin | cut -c1-64 >out/deep/sum\n',
    )
    put('tool', '#!/bin/sh\necho from tool\n', 0o755)
    put('data/weights.bin', weights)
    put('data/empty', '')
    put('secret.key', 'not uploaded')
    put('.headroomignore', '*.key\n')
    symlinkSync('data/weights.bin', join(project, 'latest'))
    const ran = await cli([
      'run',
      '--name',
      'train',
      '--vram',
      '1Gi',
      '--workdir',
      '.',
      '--',
      'sh',
      '-c',
      SCRIPT,
    ])
    expect(ran).toMatchObject({ code: 0, stderr: '' })
    expect(ran.stdout).toBe(`from tool\n${9 * MIB + 5}\nno key\n`)
    const [{ id } = { id: '' }] = (await live.get<{ items: Task[] }>('/tasks?q=train')).items

    const listed = await cli(['artifacts', id, '-o', 'json'])
    const paths = (JSON.parse(listed.stdout) as { path: string; kind: string; bytes: number }[]).map(
      ({ path, kind, bytes }) => [path, kind, bytes],
    )
    expect(paths).toContainEqual(['out/deep/sum', 'file', 65])
    expect(paths).toContainEqual(['latest', 'link', 0])
    expect(paths).toContainEqual(['data/empty', 'file', 0])
    expect(await cli(['cp', `${id}:out/deep/sum`, '.'])).toMatchObject({ code: 0 })
    expect(readFileSync(join(project, 'sum'), 'utf8').trim()).toBe(
      createHash('sha256').update(weights).digest('hex'),
    )
    expect(await cli(['cp', `${id}:`, 'copied'])).toMatchObject({ code: 0 })
    expect(readFileSync(join(project, 'copied/data/weights.bin')).equals(weights)).toBe(true)
    expect((await cli(['cp', `${id}:latest`, '-'])).code).toBe(0)
    expect((await cli(['cp', `${id}:nothing`, '.'])).code).toBe(4)
  })

  it('sends only chunks that the controller does not have', async () => {
    put('a', randomBytes(5 * MIB))
    put('b', 'first')
    const run = ['run', '--vram', '1Gi', '--workdir', project, '--', 'true']
    expect((await cli(run, tmpdir())).code).toBe(0)
    const before = new Set(blobs())
    put('b', 'second')
    expect((await cli(run, tmpdir())).code).toBe(0)
    // The new content of `b`, and the new manifest.
    expect(blobs().filter((name) => !before.has(name))).toHaveLength(2)
  })

  it('is read while it runs, and has a folder of its own', async () => {
    put('serve.sh', 'echo ready >state; while [ ! -e stop ]; do sleep 0.1; done\n')
    const command = ['--', 'sh', 'serve.sh']
    const submitted = await cli(['submit', '--vram', '1Gi', '--workdir', '.', ...command])
    const id = submitted.stdout.trim()
    await until('it runs', async () => (await live.get<Task>(`/tasks/${id}`)).state === 'running')
    await until('its file is there', async () => (await cli(['cp', `${id}:state`, '-'])).stdout === 'ready\n')
    await live.send('DELETE', `/tasks/${id}?now=true`)
    await until('it has ended', async () => (await live.get<Task>(`/tasks/${id}`)).state === 'cancelled')
    await until('its file is kept', async () => (await cli(['cp', `${id}:state`, '-'])).stdout === 'ready\n')
    if (!isRoot) return
    const kept = join(live.path('alpha'), 'work/.ended')
    expect(statSync(kept).mode & 0o777).toBe(0o700)
    expect(statSync(join(kept, `${id}.1`)).uid).toBeGreaterThan(1_000)
    expect(existsSync(join(live.path('alpha'), 'work', `${id}.1`))).toBe(false)
  })

  it('starts in a folder of the host with --cwd, and is put off where its user cannot enter it', async () => {
    const shared = join(live.folder, 'shared')
    mkdirSync(shared, { mode: 0o755 })
    writeFileSync(join(shared, 'train.sh'), 'pwd; ls "$HEADROOM_WORK" | wc -l\n')
    const ran = await cli(['run', '--vram', '1Gi', '--cwd', shared, '--', 'sh', 'train.sh'])
    expect(ran).toMatchObject({ code: 0, stdout: `${shared}\n0\n` })
    const { id } = await live.send<Task>('POST', '/tasks', {
      vram_mib: 1_000,
      command: ['true'],
      cwd: join(live.folder, 'missing'),
    })
    const task = (): Promise<Task> => live.get<Task>(`/tasks/${id}`)
    await until('it is refused', async () => (await task()).wait?.reason === 'START_REFUSED')
    expect((await task()).wait?.sentence).toMatch(/working directory .*missing: No such file/)
    await live.send('DELETE', `/tasks/${id}`)
  })

  it('is refused with a link that leads out of the folder, before anything is sent', async () => {
    symlinkSync('/etc/passwd', join(project, 'passwd'))
    const ran = await cli(['run', '--vram', '1Gi', '--workdir', '.', '--', 'true'])
    expect(ran.code).toBe(2)
    expect(ran.stderr).toMatch(/passwd: target must be relative; exclude it in \.headroomignore/)
  })

  it('is described by a task file, and `apply` compares its content', async () => {
    put('src/hello.sh', 'echo hello; sleep 1000\n')
    put('hello.task.yaml', 'name: hello\nvram_mib: 1Gi\nworkdir: src\ncommand: [sh, hello.sh]\n')
    expect((await cli(['apply', '-f', 'hello.task.yaml'])).stdout).toMatch(/created/)
    expect((await cli(['apply', '-f', 'hello.task.yaml'])).stdout).toMatch(/unchanged/)
    put('src/hello.sh', 'echo hello again; sleep 1000\n')
    expect((await cli(['apply', '-f', join(project, 'hello.task.yaml')], tmpdir())).stderr).toMatch(
      /workdir cannot be changed/,
    )
    expect((await cli(['cancel', '--now', 'hello'])).code).toBe(0)
  })

  const SCRIPT =
    'sh train.sh && ./tool && stat -Lc %s latest && if [ -e secret.key ]; then echo key; else echo no key; fi'
})

it.skipIf(whyNoNatsServer() !== null)(
  'A work folder is removed after its retention, and the largest amount is limited',
  { timeout: 300_000 },
  async () => {
    const live = await LiveCluster.start()
    try {
      await live.startServer('alpha', INVENTORY, { NODE_WORK_LIMIT_MIB: '4' })
      const kept = join(live.path('alpha'), 'work/.ended')
      const run = async (): Promise<string> => {
        const { id } = await live.send<Task>('POST', '/tasks', {
          vram_mib: 1_000,
          command: ['sh', '-c', 'head -c 3000000 /dev/zero >zeros'],
        })
        await until('it has ended', async () => (await live.get<Task>(`/tasks/${id}`)).state === 'completed')
        await until('its folder is kept', () => existsSync(join(kept, `${id}.1`)))
        return id
      }
      const first = await run()
      const second = await run()
      await until('the oldest is removed', () => !existsSync(join(kept, `${first}.1`)))
      expect(existsSync(join(kept, `${second}.1/zeros`))).toBe(true)
      await expect(live.get(`/tasks/${first}/files`)).rejects.toThrow(/404.*removed after the retention time/)
    } finally {
      await live.end()
    }
  },
)
