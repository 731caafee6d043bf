/** Channels into tasks of real guards: commands besides that of the task, and connections to its ports. */
import { createHash, randomBytes } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { TaskChannels } from '../../gpu-server/channels/task-channels.ts'
import { encodeWindow, FRAME, FrameReader } from '../../protocol/channel-frames.ts'
import { guardProgram } from '../../gpu-server/guard/guard-program.ts'
import {
  attemptFolder,
  guardWorld,
  isRoot,
  membersOf,
  NOBODY,
  until,
  type GuardWorld,
} from '../support/guard-world.ts'
import { freePort } from '../support/free-port.ts'
import { TestChannel } from '../support/task-channel.ts'

const open: TaskChannels[] = []
afterEach(() => {
  for (const channels of open.splice(0)) channels.closeAll()
})

async function channelsOf({ guards }: GuardWorld): Promise<TaskChannels> {
  const channels = new TaskChannels({ program: await guardProgram(), guards })
  open.push(channels)
  return channels
}

/** The marks of processes in the environment identify what is left of an attempt. */
function livingOf(world: GuardWorld, taskId: string): readonly number[] {
  return membersOf(attemptFolder(world.folder, taskId))
}

describe.each([
  ['isolated', true],
  ['plain', false],
])('a command that is added to a task (%s)', (_, isIsolated) => {
  it('runs as the task does, and passes its output and exit code on', async () => {
    const world = await guardWorld({ isIsolated })
    const user = isRoot ? { uid: NOBODY, gid: NOBODY } : null
    await world.sh('host', 'sleep 1000', {
      user,
      env: { PATH: process.env['PATH'] ?? '', GREETING: 'hello' },
    })
    const script =
      'echo $GREETING; pwd; id -u; grep NoNewPrivs /proc/self/status; ' +
      'grep -E "Sig(Ign|Blk)" /proc/self/status; ls /proc/self/fd | wc -l; echo wrong >&2; exit 7'
    const channel = await TestChannel.exec(await channelsOf(world), 'host', script)
    await until('it ends', () => channel.end !== null)
    expect(channel.end).toEqual({ kind: 'exit', code: 7 })
    const uid = isRoot ? NOBODY : (process.getuid?.() ?? 0)
    expect(channel.out.toString().split('\n').slice(0, 7)).toEqual([
      'hello',
      expect.stringMatching(/^\//),
      String(uid),
      'NoNewPrivs:\t1',
      'SigBlk:\t0000000000000000',
      'SigIgn:\t0000000000000000',
      '4',
    ])
    expect(channel.err).toBe('wrong\n')
  })

  it('is started once if the request for it is repeated; another one gets no channel of its id', async () => {
    const world = await guardWorld({ isIsolated })
    await world.sh('twice', 'sleep 1000')
    const channels = await channelsOf(world)
    const marks = `${world.folder}/marks`
    const target = (script: string) =>
      ({ kind: 'exec', command: ['sh', '-c', script], terminal: null }) as const
    const script = `echo started >> ${marks}; sleep 1000`
    const ask = (of: ReturnType<typeof target>) =>
      new Promise((done) => channels.open({ taskId: 'twice', attempt: 1 }, 'one', of, done))
    expect(await Promise.all([ask(target(script)), ask(target(script))])).toEqual([null, null])
    expect(await ask(target(script))).toBe(null)
    expect(await ask(target('true'))).toEqual({ refused: 'channel_exists' })
    expect(channels.count).toBe(1)
    await until('it has started', () => existsSync(marks) && readFileSync(marks, 'utf8') !== '')
    expect(readFileSync(marks, 'utf8')).toBe('started\n')
  })

  it('passes 10 MB through its input and output unchanged', async () => {
    const world = await guardWorld({ isIsolated })
    await world.sh('pipe', 'sleep 1000')
    const channel = await TestChannel.exec(await channelsOf(world), 'pipe', 'tee /dev/stderr | sha256sum')
    const bytes = randomBytes(10 * 1024 * 1024)
    for (let at = 0; at < bytes.length; at += 65_536) await channel.send(bytes.subarray(at, at + 65_536))
    await channel.sendEnd()
    await until('it ends', () => channel.end !== null)
    expect(channel.end).toEqual({ kind: 'exit', code: 0 })
    expect(channel.out.toString().slice(0, 64)).toBe(createHash('sha256').update(bytes).digest('hex'))
  })

  it('is killed with all that it started when its client has gone', async () => {
    const world = await guardWorld({ isIsolated })
    await world.sh('gone', 'exec sleep 1000')
    await until('the task runs', () => livingOf(world, 'gone').length === 1)
    const script =
      'trap "" TERM HUP; (setsid sh -c "trap \\"\\" TERM HUP; echo up; sleep 1000 & wait") & wait'
    const channel = await TestChannel.exec(await channelsOf(world), 'gone', script)
    await until('it runs', () => channel.out.toString() === 'up\n')
    await until('all of it runs', () => livingOf(world, 'gone').length >= 4)
    channel.close()
    await until('only the task is left', () => livingOf(world, 'gone').length === 1)
    expect(world.exits).toEqual([])
  })

  it('ends its descendants with itself, and is ended with the task', async () => {
    const world = await guardWorld({ isIsolated })
    await world.sh('both', 'exec sleep 1000')
    await until('the task runs', () => livingOf(world, 'both').length === 1)
    const channels = await channelsOf(world)
    const first = await TestChannel.exec(channels, 'both', '(setsid sleep 1000) & echo done')
    await until('it ends', () => first.end !== null)
    expect(first.end).toEqual({ kind: 'exit', code: 0 })
    expect(livingOf(world, 'both')).toHaveLength(1)
    const second = await TestChannel.exec(channels, 'both', 'exec sleep 1000')
    world.guards.kill('both', 1)
    await until('it ends', () => second.end !== null)
    await world.exitOf('both')
    expect(livingOf(world, 'both')).toEqual([])
  })

  it('stops while the task is suspended, and is then refused', async () => {
    const world = await guardWorld({ isIsolated })
    await world.sh('stopped', 'exec sleep 1000')
    const channels = await channelsOf(world)
    const channel = await TestChannel.exec(channels, 'stopped', 'while read line; do echo $line; done')
    await channel.send('one\n')
    await until('it answers', () => channel.out.toString() === 'one\n')
    await world.guards.suspend('stopped', 1)
    await channel.send('two\n')
    const target = { kind: 'exec', command: ['true'], terminal: null } as const
    expect(await TestChannel.open(channels, 'stopped', target)).toBe('the task is stopped')
    expect(channel.out.toString()).toBe('one\n')
    await world.guards.resume('stopped', 1)
    await until('it continues', () => channel.out.toString() === 'one\ntwo\n')
    await world.guards.suspend('stopped', 1)
    channel.close()
    await until('it is killed while it is stopped', () => livingOf(world, 'stopped').length === 1)
  })

  it('has a terminal of the size of that of its client', async () => {
    const world = await guardWorld({ isIsolated })
    await world.sh('tty', 'exec sleep 1000', { user: isRoot ? { uid: NOBODY, gid: NOBODY } : null })
    // A shell that is interrupted just before it starts a command runs its trap after that command.
    const script =
      'tty; echo $TERM; stty size; read line; stty size; ' +
      'trap "echo interrupted; exit 9" INT; echo go; while :; do sleep 0.1; done'
    const terminal = { rows: 30, columns: 100, kind: 'xterm' }
    const target = { kind: 'exec', command: ['sh', '-c', script], terminal } as const
    const channel = await TestChannel.open(await channelsOf(world), 'tty', target)
    if (typeof channel === 'string') throw new Error(channel)
    await until('it has said its size', () => channel.out.includes('30 100'))
    expect(channel.out.toString()).toMatch(/^\/dev\/pts\/\d+\r\nxterm\r\n30 100\r\n/)
    const [window] = new FrameReader().take(encodeWindow(40, 132))
    await channel.send(window?.content ?? '', FRAME.window)
    await channel.send('next\n')
    await until('it has been resized', () => channel.out.includes('40 132'))
    await until('it waits', () => channel.out.includes('go\r\n'))
    await channel.send('\u0003')
    await until('it ends', () => channel.end !== null)
    expect(channel.out.toString()).toContain('interrupted')
    expect(channel.end).toEqual({ kind: 'exit', code: 9 })
  })

  it('says why a program cannot run, and how many commands may', async () => {
    const world = await guardWorld({ isIsolated })
    await world.sh('limits', 'exec sleep 1000')
    const channels = await channelsOf(world)
    const absent = { kind: 'exec', command: ['/no/such/program'], terminal: null } as const
    const channel = await TestChannel.open(channels, 'limits', absent)
    if (typeof channel === 'string') throw new Error(channel)
    await until('it ends', () => channel.end !== null)
    expect(channel.end).toEqual({ kind: 'exit', code: 127 })
    expect(channel.err).toBe('headroom: /no/such/program: No such file or directory\n')
    for (let i = 0; i < 4; i++) await TestChannel.exec(channels, 'limits', 'exec sleep 1000')
    const more = { kind: 'exec', command: ['true'], terminal: null } as const
    expect(await TestChannel.open(channels, 'limits', more)).toMatch(/too many commands run in the task/)
    expect(await TestChannel.open(channels, 'absent', more)).toBe('unknown_attempt')
  })
})

const LISTEN =
  'const s = require("net").createServer((c) => c.pipe(c)); ' +
  's.listen(Number(process.argv[1]), process.argv[2])'

function listening(port: number, host: string): string {
  return `exec ${process.execPath} -e '${LISTEN}' ${port} ${host}`
}

describe('a port of a task', () => {
  it.each(['127.0.0.1', '0.0.0.0', '::1', '::'])('is reached where the task listens on %s', async (host) => {
    const world = await guardWorld()
    const port = await freePort()
    await world.sh('server', listening(port, host))
    const channels = await channelsOf(world)
    const channel = await openPort(channels, 'server', port)
    const bytes = randomBytes(1024 * 1024)
    for (let at = 0; at < bytes.length; at += 65_536) await channel.send(bytes.subarray(at, at + 65_536))
    await channel.sendEnd()
    await until('it ends', () => channel.end !== null)
    expect(channel.end).toEqual({ kind: 'closed' })
    expect(channel.out.equals(bytes)).toBe(true)
  })

  it('is refused when another process listens there, or none', async () => {
    const world = await guardWorld()
    const port = await freePort()
    await world.sh('other', listening(port, '127.0.0.1'))
    await world.sh('mine', 'exec sleep 1000')
    const channels = await channelsOf(world)
    await openPort(channels, 'other', port)
    expect(await TestChannel.open(channels, 'mine', { kind: 'port', port })).toBe('port_closed')
    const server = createServer()
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
    const foreign = (server.address() as AddressInfo).port
    expect(await TestChannel.open(channels, 'mine', { kind: 'port', port: foreign })).toBe('port_closed')
    server.close()
    expect(await TestChannel.open(channels, 'absent', { kind: 'port', port })).toBe('unknown_attempt')
  })
})

/** A task needs a moment until it listens. */
async function openPort(channels: TaskChannels, taskId: string, port: number): Promise<TestChannel> {
  const until30s = performance.now() + 30_000
  for (;;) {
    const channel = await TestChannel.open(channels, taskId, { kind: 'port', port })
    if (typeof channel !== 'string') return channel
    if (channel !== 'port_closed' || performance.now() > until30s) throw new Error(channel)
  }
}
