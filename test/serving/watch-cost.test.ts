/** What the socket watch costs: 200 stopped tasks with 2,000 sockets. */
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { createInterface } from 'node:readline'
import { setTimeout as pause } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { SocketWatch, type WatchedTask } from '../../gpu-server/devices/socket-watch.ts'
import { guardProgram } from '../../gpu-server/guard/guard-program.ts'
import { descendantsOf, isRunnable, stateOf } from '../../gpu-server/guard/process-table.ts'
import { until } from '../support/live-cluster.ts'

const TASKS = 200
const CONNECTIONS = 9
const MEASURED_MS = 10_000
/** The watch looks less often when its looks would cost more than 0.8%. */
const MAX_SHARE = 0.01

const LISTENER = `
const net = require('node:net'), ports = []
let accepted = 0
const accept = (connection) => {
  connection.on('error', () => {})
  if (++accepted === ${TASKS * CONNECTIONS}) console.log('accepted')
}
for (let i = 0; i < ${TASKS}; i++) {
  const server = net.createServer(accept).listen(0, '127.0.0.1', () => {
    if (ports.push(server.address().port) === ${TASKS}) console.log(JSON.stringify(ports))
  })
}
`

it(`costs at most 1% of a core for ${TASKS} tasks`, async () => {
  const listener = spawn(process.execPath, ['-e', LISTENER], { stdio: ['ignore', 'pipe', 'inherit'] })
  const pid = listener.pid ?? 0
  const wanted: WatchedTask[] = []
  const watch = new SocketWatch<WatchedTask>({
    program: await guardProgram(),
    onRequest: (task) => wanted.push(task),
    onNote: (line) => expect.unreachable(line),
  })
  const clients: Socket[] = []
  try {
    const lines = createInterface(listener.stdout)[Symbol.asyncIterator]()
    const ports = JSON.parse((await lines.next()).value as string) as number[]
    for (const port of ports) for (let i = 0; i < CONNECTIONS; i++) clients.push(await connected(port))
    // The kernel completes a connection before the process accepts it, and until then it is a request.
    expect((await lines.next()).value).toBe('accepted')
    process.kill(pid, 'SIGSTOP')
    await until('it is stopped', () => stateOf(pid) === 'T')
    const tasks = ports.map((port) => ({
      start: { isLease: false, wakePorts: [port] },
      processIds: () => [pid],
    }))
    for (const task of tasks) expect(await watch.watch(task)).toBe(true)
    const [watcher = 0] = descendantsOf(process.pid).filter(isWatching)
    const [from, usedBefore] = [performance.now(), cpuMsOf(watcher)]
    await pause(MEASURED_MS)
    const share = (cpuMsOf(watcher) - usedBefore) / (performance.now() - from)
    process.stdout.write(`socket watch: ${(share * 100).toFixed(2)}% of a core, ${TASKS} tasks, `)
    process.stdout.write(`${TASKS * (CONNECTIONS + 1)} sockets, and the other ends of the connections\n`)
    expect(wanted).toEqual([])
    clients.at(-1)?.write('x')
    await until('the request is reported', () => wanted.length === 1)
    expect(share).toBeLessThanOrEqual(MAX_SHARE)
  } finally {
    watch.close()
    for (const client of clients) client.destroy()
    listener.kill('SIGKILL')
  }
})

async function connected(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1')
  await new Promise((resolve, reject) => socket.once('connect', resolve).once('error', reject))
  return socket
}

function isWatching(pid: number): boolean {
  return isRunnable(pid) && readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('\0--sockets\0')
}

/** In user and kernel mode. */
function cpuMsOf(pid: number): number {
  return Number(readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ')[0]) / 1e6
}
