/** The socket watch on real processes, which are stopped and run as tasks are (design: wake on request). */
import { execFile, spawn, type ChildProcess } from 'node:child_process'
import { copyFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { SocketWatch, type WatchedTask } from '../../gpu-server/devices/socket-watch.ts'
import { guardProgram } from '../../gpu-server/guard/guard-program.ts'
import { descendantsOf, isRunnable, stateOf } from '../../gpu-server/guard/process-table.ts'
import { isRoot, until } from '../support/guard-world.ts'

const run = promisify(execFile)
let program = ''
const cleanups: (() => void)[] = []
beforeAll(async () => {
  program = await guardProgram()
})
afterEach(() => {
  for (const clean of cleanups.splice(0).reverse()) clean()
})

/** Listens on two TCP ports and a Unix socket, accepts connections and reads nothing. */
const SERVER = `
const net = require('node:net')
const accept = (c) => { c.on('error', () => {}); c.pause(); process.stdout.write('accepted\\n') }
const a = net.createServer({ pauseOnConnect: true }, accept), b = net.createServer(() => {})
const u = net.createServer({ pauseOnConnect: true }, accept)
const ready = () =>
  process.stdout.write(JSON.stringify([a.address().port, b.address().port]) + '\\n')
a.listen({ port: 0, host: '127.0.0.1', backlog: 2 }, () =>
  b.listen(0, '127.0.0.1', () => u.listen(process.argv[1], ready)))
`

interface Server {
  readonly child: ChildProcess
  readonly ports: readonly [number, number]
  readonly path: string
  /** Connections that it has accepted. */
  readonly accepted: () => number
  stop(): Promise<void>
  task(more?: Partial<WatchedTask['start']>): WatchedTask
}

async function server(prefix: readonly string[] = []): Promise<Server> {
  const folder = mkdtempSync(join(tmpdir(), 'headroom-sockets-'))
  const path = join(folder, 'unix')
  const [file = '', ...args] = [...prefix, process.execPath, '-e', SERVER, path]
  const child = spawn(file, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  const pids = (): number[] => [child.pid ?? 0, ...descendantsOf(child.pid ?? 0)]
  cleanups.push(() => {
    for (const pid of pids().reverse()) process.kill(pid, 'SIGKILL')
    rmSync(folder, { recursive: true, force: true })
  })
  let accepted = 0
  const ports = await new Promise<[number, number]>((resolve) => {
    createInterface(child.stdout).on('line', (line) => {
      if (line === 'accepted') accepted += 1
      else resolve(JSON.parse(line) as [number, number])
    })
  })
  return {
    child,
    ports,
    path,
    accepted: () => accepted,
    async stop() {
      for (const pid of pids()) process.kill(pid, 'SIGSTOP')
      await until('its processes are stopped', () => pids().every((pid) => stateOf(pid) === 'T'))
    },
    task: (more = {}) => ({ start: { isLease: false, ...more }, processIds: pids }),
  }
}

/** Other test files run in threads of this process, and have watchers of their own. */
function isWatching(pid: number, guard: string): boolean {
  return isRunnable(pid) && readFileSync(`/proc/${pid}/cmdline`, 'utf8') === `${guard}\0--sockets\0`
}

function watchWorld(guard = program) {
  const wanted: WatchedTask[] = []
  const notes: string[] = []
  const watch = new SocketWatch<WatchedTask>({
    program: guard,
    onRequest: (task) => wanted.push(task),
    onNote: (line) => notes.push(line),
  })
  cleanups.push(() => watch.close())
  return { watch, wanted, notes }
}

async function client(to: number | string): Promise<Socket> {
  const socket = typeof to === 'string' ? connect(to) : connect(to, '127.0.0.1')
  socket.on('error', () => {})
  cleanups.push(() => socket.destroy())
  await new Promise((resolve) => socket.once('connect', resolve))
  return socket
}

/** Several looks of the watch have passed: a request to another task has been seen after it arrived. */
async function looksPass(world: ReturnType<typeof watchWorld>): Promise<void> {
  const other = await server()
  await other.stop()
  const task = other.task()
  await world.watch.watch(task)
  await client(other.ports[0])
  await until('a later request is reported', () => world.wanted.includes(task))
  world.watch.forget(task)
}

describe('a stopped task', () => {
  it('is woken by a connection that it has not accepted', async () => {
    const world = watchWorld()
    const one = await server()
    await one.stop()
    const task = one.task({ wakeOnRequest: true })
    expect(await world.watch.watch(task)).toBe(true)
    await looksPass(world)
    expect(world.wanted).not.toContain(task)
    await client(one.ports[0])
    await until('the request is reported', () => world.wanted.includes(task))
  })

  it('is woken by bytes on a connection that was open before, not by the connection or its end', async () => {
    const world = watchWorld()
    const one = await server()
    const [kept, closed] = [await client(one.ports[0]), await client(one.ports[0])]
    await until('both are accepted', () => one.accepted() === 2)
    await one.stop()
    const task = one.task({ wakePorts: [one.ports[0]] })
    await world.watch.watch(task)
    closed.end()
    await looksPass(world)
    expect(world.wanted).not.toContain(task)
    kept.write('GET / HTTP/1.1')
    await until('the request is reported', () => world.wanted.includes(task))
  })

  it('is woken by a Unix socket of its own, unless it declares ports', async () => {
    const world = watchWorld()
    const one = await server()
    const kept = await client(one.path)
    await until('it is accepted', () => one.accepted() === 1)
    await one.stop()
    const [any, ported] = [one.task(), one.task({ wakePorts: [one.ports[0]] })]
    await world.watch.watch(ported)
    kept.write('x')
    await looksPass(world)
    expect(world.wanted).not.toContain(ported)
    world.watch.forget(ported)
    await world.watch.watch(any)
    await until('the request is reported', () => world.wanted.includes(any))
  })

  it('is not woken by a request to a port that it does not declare', async () => {
    const world = watchWorld()
    const one = await server()
    await one.stop()
    const task = one.task({ wakePorts: [one.ports[1]] })
    expect(await world.watch.watch(task)).toBe(true)
    await client(one.ports[0])
    await looksPass(world)
    expect(world.wanted).not.toContain(task)
    await client(one.ports[1])
    await until('the request is reported', () => world.wanted.includes(task))
  })

  it('can be woken only if it declares so and listens on what it declares', async () => {
    const { watch } = watchWorld()
    const one = await server()
    await one.stop()
    expect(await watch.watch(one.task())).toBe(false)
    expect(await watch.watch(one.task({ wakePorts: [1] }))).toBe(false)
    expect(await watch.watch(one.task({ wakeOnRequest: false, wakePorts: [one.ports[0]] }))).toBe(false)
    expect(await watch.watch(one.task({ wakePorts: [1, one.ports[0]] }))).toBe(true)
  })

  it('has its full accept queues counted, until it runs again', async () => {
    const { watch } = watchWorld()
    const one = await server()
    await one.stop()
    const task = one.task({ wakePorts: [one.ports[0]] })
    await watch.watch(task)
    // One more than its backlog of 2; the next would wait for its connection.
    for (let i = 0; i < 3; i++) await client(one.ports[0])
    await until('the full queue is counted', () => watch.fullQueues === 1)
    watch.forget(task)
    expect(watch.fullQueues).toBe(0)
  })

  it('is watched again when the process that watches is killed', async () => {
    const guard = join(mkdtempSync(join(tmpdir(), 'headroom-guard-')), 'guard')
    copyFileSync(program, guard)
    cleanups.push(() => rmSync(dirname(guard), { recursive: true }))
    const world = watchWorld(guard)
    const one = await server()
    await one.stop()
    const task = one.task()
    await world.watch.watch(task)
    const watchers = descendantsOf(process.pid).filter((pid) => isWatching(pid, guard))
    expect(watchers).toHaveLength(1)
    for (const pid of watchers) process.kill(pid, 'SIGKILL')
    await client(one.ports[0])
    await until('the request is reported', () => world.wanted.includes(task))
    expect(world.notes).toEqual([expect.stringContaining('SIGKILL')])
  })

  it.runIf(isRoot)('is watched in a network namespace of its own, as a container has one', async () => {
    const world = watchWorld()
    const one = await server(['unshare', '--net', 'sh', '-c', 'ip link set lo up; exec "$@"', 'sh'])
    await one.stop()
    const task = one.task({ wakePorts: [one.ports[0]] })
    expect(await world.watch.watch(task)).toBe(true)
    await client((await server()).ports[0])
    await looksPass(world)
    expect(world.wanted).not.toContain(task)
    const [inside = 0] = descendantsOf(one.child.pid ?? 0).concat(one.child.pid ?? 0)
    const code = `require('node:net').connect(${one.ports[0]}, '127.0.0.1').on('connect', process.exit)`
    await run('nsenter', ['--net', '--target', String(inside), process.execPath, '-e', code])
    await until('the request is reported', () => world.wanted.includes(task))
  })
})

describe('a running task', () => {
  it('has a request while bytes wait to be read, and none while its connections are idle', async () => {
    const { watch } = watchWorld()
    const one = await server()
    const task = one.task()
    const kept = await client(one.ports[0])
    await until('it is accepted', () => one.accepted() === 1)
    expect(await watch.hasRequest(task)).toBe(false)
    kept.write('x')
    let hasRequest = false
    await until('the bytes are seen', () => {
      void watch.hasRequest(task).then((has) => (hasRequest ||= has))
      return hasRequest
    })
    expect(await watch.hasRequest(one.task({ wakePorts: [one.ports[1]] }))).toBe(false)
    expect(await watch.hasRequest(one.task({ wakeOnRequest: false }))).toBe(false)
  })
})
