/**
 * `headroom exec` and `headroom port-forward` with a real controller, broker and GPU servers: into tasks of
 * the caller only, on servers that allow it, and nothing is left when one of the sides ends.
 */
import { spawn } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createConnection } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { freePort } from '../support/free-port.ts'
import { headroom, type Ended } from '../support/headroom-command.ts'
import { LiveCluster, processesNaming, until, type Member } from '../support/live-cluster.ts'
import { whyNoNatsServer } from '../support/nats-server.ts'
import { startHeadroom, type RunningCommand } from '../support/running-command.ts'

const SMALL = 'gpus:\n  - { vram_mib: 8Gi, swap: { out_mib_per_s: 100000, in_mib_per_s: 100000 } }\n'
const LARGE = SMALL.replace('8Gi', '64Gi')
const EXIT_CONFLICT = 5
const EXIT_DENIED = 7
const ECHO = 'require("net").createServer((c) => c.pipe(c)).listen(Number(process.argv[1]), "127.0.0.1")'

interface Audit {
  readonly actor: string | null
  readonly action: string
  readonly target: string
}

describe.skipIf(whyNoNatsServer() !== null)('a channel into a task', { timeout: 200_000 }, () => {
  let live: LiveCluster
  let server: Member
  let place: string
  let seconds = 70_000

  beforeAll(async () => {
    live = await LiveCluster.start()
    server = await live.startServer('alpha', SMALL, {}, '--allow-attach')
    await live.startServer('beta', LARGE)
    place = mkdtempSync(join(tmpdir(), 'headroom-channels-'))
    chmodSync(place, 0o755)
  }, 120_000)
  afterAll(async () => {
    await live.end()
    rmSync(place, { recursive: true, force: true })
  })

  const cli = (args: readonly string[], stdin?: string): Promise<Ended> =>
    headroom([...args], { env: { HEADROOM_URL: live.url }, ...(stdin === undefined ? {} : { stdin }) })
  const start = (args: readonly string[]): RunningCommand => startHeadroom(args, { HEADROOM_URL: live.url })

  async function task(name: string, command: readonly string[], vramMib = 1_000): Promise<string> {
    const { id } = await live.send<{ id: string }>('POST', '/tasks', {
      name,
      vram_mib: vramMib,
      command,
      env: { GREETING: 'hello' },
    })
    const state = async (): Promise<string> => (await live.get<{ state: string }>(`/tasks/${id}`)).state
    await until(`${name} runs`, async () => (await state()) === 'running')
    return id
  }
  const cancel = (id: string): Promise<unknown> => live.send('DELETE', `/tasks/${id}?now=true`)

  /** A command line that no other process has. */
  function sleeper(): readonly [seconds: string, isRunning: () => boolean] {
    const text = `${(seconds += 1)}.25`
    return [text, () => processesNaming(`sleep\0${text}`).length > 0]
  }

  it('runs a command as the task runs, with its output and exit code here', async () => {
    const id = await task('runs', ['sleep', '1000'])
    const script = 'echo $GREETING; pwd; cat /proc/1/comm; echo wrong >&2; exit 7'
    const ran = await cli(['exec', 'runs', '--', 'sh', '-c', script])
    expect(ran).toMatchObject({ code: 7, stderr: 'wrong\n' })
    expect(ran.stdout).toMatch(new RegExp(`^hello\n.*${id}.*\n`))
    expect(await cli(['exec', 'runs', '--', 'sh', '-c', 'kill -SEGV $$'])).toMatchObject({ code: 139 })
    expect(await cli(['exec', 'runs', '--', 'cat'], 'not passed')).toMatchObject({ code: 0, stdout: '' })
    expect(await cli(['exec', 'runs', '--', '/no/such/program'])).toMatchObject({
      code: 127,
      stderr: 'headroom: /no/such/program: No such file or directory\n',
    })
    await cancel(id)
  })

  it('names what is wrong with its arguments', async () => {
    const usage = async (...args: readonly string[]): Promise<string> => {
      const { code, stderr } = await cli(args)
      expect(code).toBe(2)
      return stderr
    }
    expect(await usage('exec', 'runs')).toContain('a command is required: headroom exec runs -- COMMAND')
    expect(await usage('exec', '-t', 'runs', '--', 'sh')).toContain(
      '-t requires a terminal for standard input and output',
    )
    expect(await usage('port-forward', 'runs')).toContain("missing required argument 'port'")
    expect(await usage('port-forward', 'runs', '80:70000')).toContain('"80:70000" must be LOCAL:PORT or PORT')
    expect(await usage('port-forward', 'runs', '0')).toContain('"0" must be LOCAL:PORT or PORT')
    expect((await cli(['exec', 'absent', '--', 'true'])).code).toBe(4)
  })

  it('passes 10 MB of input to a command, and 10 MB of output back', async () => {
    const id = await task('pipe', ['sleep', '1000'])
    const bytes = randomBytes(10 * 1024 * 1024)
    const sum = createHash('sha256').update(bytes).digest('hex')
    const running = start(['exec', '-i', 'pipe', '--', 'sh', '-c', 'tee copy | sha256sum'])
    running.process.stdin?.end(bytes)
    expect(await running.ended).toBe(0)
    expect(running.output().slice(0, 64)).toBe(sum)
    const back = start(['exec', 'pipe', '--', 'cat', 'copy'])
    const hash = createHash('sha256')
    back.process.stdout?.on('data', (piece: Buffer) => hash.update(piece))
    expect(await back.ended).toBe(0)
    expect(hash.digest('hex')).toBe(sum)
    await cancel(id)
  })

  it('gives a command a terminal', async () => {
    const id = await task('terminal', ['sleep', '1000'])
    const inner = 'stty size; tty; trap "echo caught; exit 9" INT; echo ready; while :; do sleep 0.1; done'
    writeFileSync(join(place, 'inner.sh'), inner, { mode: 0o644 })
    const client = `${process.execPath} --import ./cli/require-node.mjs cli/main.ts`
    const outer = `stty rows 33 cols 111; exec ${client} exec -t terminal -- sh ${join(place, 'inner.sh')}`
    const child = spawn('script', ['-qec', outer, '/dev/null'], {
      env: { ...process.env, HEADROOM_URL: live.url, TERM: 'xterm' },
    })
    let output = ''
    child.stdout.on('data', (piece: Buffer) => (output += piece.toString()))
    const ended = new Promise<number | null>((done) => child.once('exit', done))
    await until('it is ready', () => output.includes('ready'))
    expect(output).toMatch(/33 111\r+\n\/dev\/pts\/\d+\r+\nready/)
    child.stdin.write('\u0003')
    expect(await ended).toBe(9)
    expect(output).toContain('caught')
    await cancel(id)
  })

  it('ends the command when the client, the controller, the server or the task ends', async () => {
    const id = await task('ends', ['sleep', '1000'])
    const begin = async (): Promise<readonly [RunningCommand, () => boolean]> => {
      const [text, isRunning] = sleeper()
      const running = start(['exec', 'ends', '--', 'sh', '-c', `setsid sleep ${text} & echo up; wait`])
      await running.says(/up/)
      await until('it runs', isRunning)
      return [running, isRunning]
    }
    const [killed, isKilledRunning] = await begin()
    killed.process.kill('SIGKILL')
    await until('nothing is left after the client', () => !isKilledRunning())

    const [interrupted, isInterruptedRunning] = await begin()
    interrupted.process.kill('SIGINT')
    expect(await interrupted.ended).toBe(130)
    await until('nothing is left after Ctrl-C', () => !isInterruptedRunning())

    const [served, isServedRunning] = await begin()
    await server.end('SIGKILL')
    await until('ends together with the server', () => !isServedRunning())
    expect(await served.ended).toBe(1)
    expect(served.output()).toMatch(/does not respond|server of the task restarted/)
    await server.start(async () =>
      (await live.nodes()).some(({ name, status }) => name === 'alpha' && status === 'up'),
    )
    await until('the task runs on', async () => (await cli(['exec', 'ends', '--', 'true'])).code === 0)

    const [led, isLedRunning] = await begin()
    await live.controller.end('SIGKILL')
    expect(await led.ended).toBe(3)
    expect(led.output()).toContain('the connection to the controller was lost')
    await until('nothing is left after the controller', () => !isLedRunning())
    await live.startController()
    await until(
      'the task is reached again',
      async () => (await cli(['exec', 'ends', '--', 'true'])).code === 0,
    )

    const [last, isLastRunning] = await begin()
    await cancel(id)
    expect(await last.ended).not.toBe(0)
    expect(isLastRunning()).toBe(false)
  })

  it('stops with the task, and is refused while the task is swapped out', async () => {
    const id = await task('swapped', ['sleep', '1000'])
    const residency = async (): Promise<string> =>
      (await live.get<{ residency: string }>(`/tasks/${id}`)).residency
    const running = start(['exec', '-i', 'swapped', '--', 'cat'])
    running.process.stdin?.write('one\n')
    await running.says(/one/)
    await until('it is idle', async () => (await cli(['task', 'swap-out', id])).code === 0)
    await until('it is swapped out', async () => (await residency()) === 'swapped_out')
    running.process.stdin?.write('two\n')
    const refused = await cli(['exec', 'swapped', '--', 'true'])
    expect(refused.code).toBe(EXIT_CONFLICT)
    expect(refused.stderr).toContain(`Task ${id} is swapped out and stopped. Try again when it is in VRAM`)
    expect(running.output()).toBe('one\n')
    await cli(['task', 'swap-in', id])
    await running.says(/two/)
    running.process.stdin?.end()
    expect(await running.ended).toBe(0)
    await cancel(id)
  })

  it('is refused where the server does not allow it, with the option that does', async () => {
    const id = await task('elsewhere', ['sleep', '1000'], 20_000)
    const refused = await cli(['exec', 'elsewhere', '--', 'true'])
    expect(refused.code).toBe(EXIT_CONFLICT)
    expect(refused.stderr).toContain(
      'Node beta does not allow access to running tasks. Start its GPU server with --allow-attach.',
    )
    await cancel(id)
  })

  it('forwards connections to a port of the task, and to no other port', async () => {
    const [port, other] = [await freePort(), await freePort()]
    const echo = (name: string, at: number): Promise<string> =>
      task(name, [process.execPath, '-e', ECHO, String(at)])
    const ids = [await echo('echo', port), await echo('other', other)]
    const running = start(['port-forward', 'echo', `0:${port}`, `0:${other}`, `0:${new URL(live.url).port}`])
    await running.says(/forwards to port \d+[^]*forwards to port \d+[^]*forwards to port \d+/)
    const [mine = 0, foreign = 0, api = 0] = [...running.output().matchAll(/127\.0\.0\.1:(\d+)/g)].map(
      ([, local]) => Number(local),
    )
    const bytes = randomBytes(3 * 1024 * 1024)
    await until('the task listens', async () => (await echoed(mine, Buffer.from('x'))).length === 1)
    const answers = await Promise.all(Array.from({ length: 4 }, () => echoed(mine, bytes)))
    for (const answer of answers) expect(answer.equals(bytes)).toBe(true)
    expect(await echoed(foreign, bytes)).toHaveLength(0)
    expect(await echoed(api, Buffer.from('GET / HTTP/1.0\r\n\r\n'))).toHaveLength(0)
    for (const refused of [other, Number(new URL(live.url).port)])
      expect(running.output()).toContain(`No process of task ${ids[0] ?? ''} listens on TCP port ${refused}.`)
    running.process.kill('SIGINT')
    expect(await running.ended).toBe(0)
    await Promise.all(ids.map(cancel))
  })

  it('is open to the owner of the task only, and audited without its bytes', async () => {
    const id = await task('owned', ['sleep', '1000'])
    await cli(['exec', '-i', 'owned', '--', 'cat'], 'not in the audit log')
    const token = async (name: string, role: string, by?: string): Promise<string> => {
      const answer = await fetch(`${live.url}/api/v1/tokens`, {
        method: 'POST',
        headers: {
          'Content-Type': 'application/json',
          ...(by === undefined ? {} : { Authorization: `Bearer ${by}` }),
        },
        body: JSON.stringify({ name, role }),
      })
      return ((await answer.json()) as { secret: string }).secret
    }
    const admin = await token('root', 'admin')
    const [mine, theirs] = [await token('ann', 'submitter', admin), await token('bob', 'submitter', admin)]
    const as = (secret: string, ...args: readonly string[]): Promise<Ended> =>
      headroom([...args], { env: { HEADROOM_URL: live.url, HEADROOM_TOKEN: secret } })
    const own = (await as(mine, 'submit', '--vram', '1Gi', '--', 'sleep', '1000')).stdout.trim()
    await until('it runs', async () => (await as(mine, 'exec', own, '--', 'true')).code === 0)
    for (const other of [theirs, admin]) {
      const refused = await as(other, 'exec', own, '--', 'true')
      expect(refused.code).toBe(EXIT_DENIED)
      expect(refused.stderr).toContain('The task belongs to another user')
      expect((await as(other, 'exec', id, '--', 'true')).code).toBe(EXIT_DENIED)
    }
    const audit = async (): Promise<string> => {
      const answer = await fetch(`${live.url}/api/v1/audit?limit=200`, {
        headers: { Authorization: `Bearer ${admin}` },
      })
      return answer.text()
    }
    // Refusals are recorded after the answer.
    await until('the refusals are recorded', async () => /"actor":"bob"/.test(await audit()))
    const text = await audit()
    const { items } = JSON.parse(text) as { readonly items: readonly Audit[] }
    const ofTask = (task_id: string): readonly string[] =>
      items
        .filter(({ target }) => target.includes(task_id))
        .map(({ actor, action, target }) => `${actor ?? ''} ${action} ${target}`)
    expect(ofTask(own)).toContainEqual(
      expect.stringMatching(/^ann openChannel task \S+ attempt 1 channel \w{8}: exec \["true"\]$/),
    )
    expect(ofTask(own)).toContainEqual(expect.stringMatching(/^bob openChannel POST /))
    expect(ofTask(id)).toContainEqual(
      expect.stringMatching(
        /^ closeChannel task .*: exit code 0 after \d+ s, 20 bytes in, 20 out: exec \["cat"\]$/,
      ),
    )
    expect(text).not.toContain('not in the audit log')
    expect(readFileSync(live.path('controller/headroom.db')).includes('not in the audit log')).toBe(false)
  })
})

/** What returns until the other side closes the connection. */
function echoed(port: number, bytes: Buffer): Promise<Buffer> {
  return new Promise((resolve) => {
    const pieces: Buffer[] = []
    const socket = createConnection({ port, host: '127.0.0.1' })
    socket.on('data', (piece: Buffer) => pieces.push(piece))
    socket.on('error', () => undefined)
    socket.once('close', () => resolve(Buffer.concat(pieces)))
    socket.end(bytes)
  })
}
