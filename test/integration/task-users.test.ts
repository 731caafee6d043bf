/** Access of a task to its server and to other tasks, by the users that they run as. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { until } from '../support/live-cluster.ts'
import { startNatsServer, whyNoNatsServer } from '../support/nats-server.ts'
import type { NatsServer } from '../support/nats-server.ts'
import { OneNodeController } from '../support/one-node-controller.ts'
import { startHeadroom } from '../support/running-command.ts'
import type { RunningCommand } from '../support/running-command.ts'
import { taskIdentity } from '../support/task-identity.ts'

const ROOT = join(import.meta.dirname, '../..')
const INVENTORY = 'gpus: [{ vram_mib: 8Gi, swap: pinned-gen4 }]\n'
const WITHIN_MS = 60_000
const isRoot = process.getuid?.() === 0
/** Exits with 0 if the process may connect to the Unix socket in its argument. */
const CONNECT =
  `require('net').connect(process.argv[1]).on('connect',()=>process.exit(0)).on('error',` +
  '(e)=>{console.log(e.code);process.exit(1)})'

describe.skipIf(whyNoNatsServer() !== null || !isRoot)('the users of tasks', { timeout: WITHIN_MS }, () => {
  let broker: NatsServer
  let folder: string
  let controller: OneNodeController
  let servers: RunningCommand[] = []

  beforeAll(async () => {
    broker = await startNatsServer()
  })
  afterAll(() => broker.kill())

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'headroom-users-'))
    chmodSync(folder, 0o711)
    writeFileSync(join(folder, 'gpus.yaml'), INVENTORY)
    controller = new OneNodeController(broker.url)
  })

  afterEach(async () => {
    const running = servers.at(-1)
    if (running?.process.exitCode === null)
      for (const { task_id: id } of lastTasks()) await controller.stop(id)
    await until('no task is left', () => lastTasks().length === 0)
    for (const server of servers) server.process.kill('SIGKILL')
    await Promise.all(servers.map((server) => server.ended))
    await controller.bus.close()
    rmSync(folder, { recursive: true, force: true })
    servers = []
  })

  function lastTasks(): readonly { readonly task_id: string }[] {
    return ['a', 'b'].map((id) => controller.task(id)).filter((task) => task !== undefined)
  }

  async function start(...options: readonly string[]): Promise<RunningCommand> {
    const args = [
      'gpu-server',
      '--device',
      'process',
      '--inventory',
      join(folder, 'gpus.yaml'),
      '--allow-exec',
      ...options,
    ]
    const hellos = controller.hellos.length
    const server = startHeadroom(args, {
      CONTROLLER_NATS_URL: broker.url,
      NODE_NAME: 'alpha',
      NODE_STATE_DIR: join(folder, 'state'),
    })
    servers.push(server)
    await controller.hello(hellos + 1)
    return server
  }

  /** Starts it and waits for its pid in the server's namespace. */
  async function run(name: string, script: string): Promise<number> {
    expect(await controller.start(name, ['sh', '-c', script])).toMatchObject({ outcome: 'accepted' })
    await controller.event(name, 'started')
    const started = readFileSync(join(folder, `state/guards/${name}.1/started`), 'utf8')
    return Number(/^command (\d+)/m.exec(started)?.[1])
  }

  async function outputOf(name: string): Promise<string> {
    await controller.event(name, 'finished')
    const log = await controller.readLog(name)
    return typeof log === 'string' ? log : Buffer.from(log.data, 'base64').toString()
  }

  it('are separate for each attempt, without access to files of other attempts or the server', async () => {
    await start(...taskIdentity())
    expect(controller.hellos[0]).toMatchObject({ task_identity: 'uid_per_attempt' })
    const pid = await run('a', 'echo secret > own; echo told; pwd; exec sleep 1000')
    const environ = (): string => readFileSync(`/proc/${pid}/environ`, 'latin1')
    await until('the command has replaced its guard', () => environ().includes('HEADROOM_SOCKET='))
    const [socket = '', home = ''] = ['HEADROOM_SOCKET', 'HOME'].map(
      (name) => new RegExp(`(?:^|\0)${name}=([^\0]*)`).exec(environ())?.[1],
    )
    const about = statSync(home)
    expect([about.mode & 0o777, about.uid, about.gid]).toEqual([0o700, uidOf(pid), uidOf(pid)])
    expect(uidOf(pid)).toBeGreaterThanOrEqual(1_000_000)

    const paths = [home, join(home, 'own'), `/proc/${pid}/environ`, `/proc/${pid}/root/`, `/proc/${pid}/cwd/`]
    const state = [
      '',
      'journal',
      'lock',
      'next-id',
      'guards',
      'guards/a.1',
      'guards/a.1/task.json',
      'guards/a.1/stdout.0',
      'work',
      's',
    ]
    const probes = [...paths, ...state.map((name) => join(folder, 'state', name))]
    const script = [
      'id -u; id -G',
      ...probes.map((path) => `{ cat ${path} || ls ${path}/; } >/dev/null 2>&1 && echo readable ${path}`),
      `'${process.execPath}' -e "${CONNECT}" ${socket} && echo connected`,
      `'${process.execPath}' -e "${CONNECT}" $HEADROOM_SOCKET && echo own socket`,
    ]
    const pidOfB = await run('b', `${script.join('\n')}\ntrue`)
    expect(pidOfB).not.toBe(pid)
    const [uid, groups, ...rest] = (await outputOf('b')).trimEnd().split('\n')
    expect(Number(uid)).toBe(uidOf(pid) + 1)
    expect(groups).toBe(uid)
    expect(rest).toEqual(['EACCES', 'own socket'])
  })

  it('are kept for adopted attempts by a restarted server, and given to no other attempt', async () => {
    const ids = taskIdentity()
    const first = await start(...ids)
    const pid = await run('a', 'exec sleep 1000')
    first.process.kill('SIGKILL')
    await first.ended
    // Without a record of the next id it starts at the beginning of the range.
    rmSync(join(folder, 'state/next-id'))
    await start(...ids)
    const other = await run('b', 'exec sleep 1000')
    expect(uidOf(other)).toBe(uidOf(pid) + 1)
    const environ = readFileSync(`/proc/${pid}/environ`, 'latin1')
    const socket = /HEADROOM_SOCKET=([^\0]*)/.exec(environ)?.[1] ?? ''
    await until('its socket is there again', () => existsSync(socket))
    expect([await connects(socket, uidOf(pid)), await connects(socket, uidOf(other))]).toEqual([true, false])
  })

  it('cannot read the remains of earlier attempts, and empty folders are removed', async () => {
    await start(...taskIdentity())
    await run('a', 'mkdir -m 777 kept; touch kept/file; chmod 777 .')
    await run('b', 'true')
    await controller.event('a', 'finished')
    await controller.event('b', 'finished')
    const work = join(folder, 'state/work')
    const kept = join(work, '.ended/a.1')
    const attempts = () => readdirSync(work).filter((name) => !name.startsWith('.'))
    await until('one is kept', () => existsSync(kept) && attempts().length === 0)
    // Only the server enters the folder above it; the user of a later attempt may have the same id.
    expect([statSync(join(work, '.ended')).uid, statSync(join(work, '.ended')).mode & 0o777]).toEqual([
      0, 0o700,
    ])
    await until('its user owns it again', () => statSync(kept).uid >= 1_000_000)
    expect(statSync(kept).mode & 0o777).toBe(0o700)
    expect(existsSync(join(kept, 'kept/file'))).toBe(true)
  })

  it('share one --task-user, with separate folders and inaccessible control sockets', async () => {
    const server = await start('--task-user', 'nobody')
    expect(controller.hellos[0]).toMatchObject({ task_identity: 'task_user' })
    expect(server.output()).toContain('all tasks share one user')
    const pid = await run('a', 'exec sleep 1000')
    const socket = /HEADROOM_SOCKET=([^\0]*)/.exec(readFileSync(`/proc/${pid}/environ`, 'latin1'))?.[1] ?? ''
    const connect = (path: string): string =>
      `'${process.execPath}' -e "${CONNECT}" ${path} && echo connected`
    await run('b', `id -un; basename "$PWD"; ${connect(socket)}; ${connect('$HEADROOM_SOCKET')}`)
    expect((await outputOf('b')).trimEnd().split('\n')).toEqual(['nobody', 'b.1', 'EACCES', 'connected'])
  })

  it('are root only with --task-user root, and the log says so', async () => {
    const server = await start('--task-user', 'root')
    expect(controller.hellos[0]).toMatchObject({ task_identity: 'root' })
    expect(server.output()).toContain('tasks run as root')
    await run('a', 'id -u')
    expect(await outputOf('a')).toBe('0\n')
  })

  it('cannot run in an inaccessible folder or next to a readable key: a refusal in one line', async () => {
    chmodSync(folder, 0o700)
    const args = [
      'gpu-server',
      '--device',
      'process',
      '--inventory',
      join(folder, 'gpus.yaml'),
      '--allow-exec',
    ]
    const env = { CONTROLLER_NATS_URL: broker.url, NODE_STATE_DIR: join(folder, 'state') }
    const closed = startHeadroom(args, env)
    expect(await closed.ended).toBe(1)
    expect(closed.output()).toMatch(
      new RegExp(`^headroom: ${folder}/state: tasks cannot enter ${folder}, .*chmod o\\+x ${folder}\n$`),
    )
    chmodSync(folder, 0o711)
    const key = join(folder, 'node.nk')
    writeFileSync(key, 'SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY\n', { mode: 0o644 })
    const open = startHeadroom(args, { ...env, CONTROLLER_NATS_NKEY_FILE: key })
    expect(await open.ended).toBe(1)
    expect(open.output()).toMatch(
      /^headroom: \S+node\.nk can be read by the users that tasks run as: chown root \S+ && chmod 600 \S+\n$/,
    )
  })

  it('are that of a server without root only with --tasks-as-me, which the log explains', async () => {
    const gpus = join(folder, 'gpus.yaml')
    const asNobody = async (
      url: string,
      ...options: string[]
    ): Promise<readonly [code: number | null, output: string]> => {
      const env = {
        ...process.env,
        CONTROLLER_NATS_URL: url,
        NODE_STATE_DIR: join(folder, 'unprivileged'),
        NODE_V8_COVERAGE: '',
      }
      const args = [
        'cli/main.ts',
        'gpu-server',
        '--device',
        'process',
        '--inventory',
        gpus,
        '--allow-exec',
        ...options,
      ]
      const child = spawn(process.execPath, ['--import', join(ROOT, 'cli/require-node.mjs'), ...args], {
        cwd: ROOT,
        env,
        uid: 65534,
        gid: 65534,
      })
      let output = ''
      child.stderr.on('data', (chunk: Buffer) => {
        output += chunk.toString()
        if (output.includes('GPU server runs')) child.kill('SIGKILL')
      })
      const [code] = (await once(child, 'close')) as [number | null]
      return [code, output]
    }
    const [refused, why] = await asNobody(broker.url)
    expect([refused, why]).toEqual([
      2,
      expect.stringMatching(
        /^error: a server that does not run as root [^\n]*run it as root[^\n]*--tasks-as-me[^\n]*\n$/,
      ),
    ])
    const [far, whyFar] = await asNobody('nats://192.0.2.1:4222', '--tasks-as-me')
    expect([far, whyFar]).toEqual([
      2,
      expect.stringMatching(/^error: --tasks-as-me accepts a broker without keys on loopback only[^\n]*\n$/),
    ])
    chmodSync(folder, 0o777)
    const [, output] = await asNobody(broker.url, '--tasks-as-me')
    expect(output).toContain('tasks run as the user of this server')
    expect(output).toContain('the broker requires no key; accepted because it is on loopback')
  })
})

function uidOf(pid: number): number {
  return Number(/^Uid:\t(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1])
}

async function connects(socket: string, uid: number): Promise<boolean> {
  const child = spawn(process.execPath, ['-e', CONNECT, socket], { uid, gid: uid, stdio: 'ignore' })
  const [code] = (await once(child, 'exit')) as [number]
  return code === 0
}
