/** Addresses for ports of tasks: proxies that a GPU server starts, orders, loses and finds again. */
import { connect } from 'node:net'
import { networkInterfaces } from 'node:os'
import { afterEach, expect, it } from 'vitest'
import {
  PortProxies,
  type PortProxiesOptions,
  type ProxiedTask,
} from '../../gpu-server/devices/port-proxies.ts'
import { guardProgram } from '../../gpu-server/guard/guard-program.ts'
import { freePort } from '../support/free-port.ts'
import { guardWorld, until, type GuardWorld } from '../support/guard-world.ts'
import { ECHO, ORDER, PORTS, proxiesOf, serving, TestClient } from '../support/proxied-task.ts'

const open: PortProxies<ProxiedTask>[] = []
afterEach(() => {
  for (const proxies of open.splice(0)) proxies.closeAll()
})

async function proxiesIn(
  { guards }: GuardWorld,
  more: Partial<PortProxiesOptions<ProxiedTask>> = {},
): Promise<{ proxies: PortProxies<ProxiedTask>; wanted: string[]; notes: string[] }> {
  const wanted: string[] = []
  const notes: string[] = []
  const proxies = new PortProxies<ProxiedTask>({
    program: await guardProgram(),
    folderOf: (taskId, attempt) => guards.folderOf(taskId, attempt),
    range: { address: '127.0.0.1', ports: PORTS },
    onRequest: ({ taskId }) => wanted.push(taskId),
    onNote: ({ taskId }, why) => notes.push(`${taskId}: ${why}`),
    ...more,
  })
  open.push(proxies)
  return { proxies, wanted, notes }
}

function taskOf(taskId: string, ports: readonly number[], more: ProxiedTask['start'] = {}): ProxiedTask {
  return { taskId, attempt: 1, start: { wakePorts: ports, ...more } }
}

function portOf(proxies: PortProxies<ProxiedTask>, task: ProxiedTask, at = 0): number {
  const { address, detail } = proxies.addressesOf(task)[at] ?? {}
  if (typeof address !== 'string') throw new Error(detail ?? 'no such port')
  return Number(/^127\.0\.0\.1:(\d+)$/.exec(address)?.[1])
}

it('A task gets an address for each declared port, and HTTP only where it declares it', async () => {
  const world = await guardWorld()
  const [one, other] = [await serving(world, 'one', ECHO), await freePort()]
  const { proxies } = await proxiesIn(world)
  const task = taskOf('one', [one, other], { httpPorts: [other] })
  expect(proxies.addressesOf(task)).toMatchObject([{ target: one, address: null }, { target: other }])
  await proxies.open(task)
  const [first, second] = [portOf(proxies, task), portOf(proxies, task, 1)]
  expect(second).not.toBe(first)
  const client = await TestClient.open(first)
  client.socket.end('hello')
  await client.receives('hello')
  // Nothing listens on the other port of the task.
  expect((await fetch(`http://127.0.0.1:${second}/`)).status).toBe(503)
})

it('Requests that arrive while a task is out are reported once, and answered after its return', async () => {
  const world = await guardWorld()
  const target = await serving(world, 'order', ORDER)
  const { proxies, wanted } = await proxiesIn(world)
  const task = taskOf('order', [target])
  await proxies.open(task)
  expect(await proxies.hold(task)).toBe(true)
  const clients = [await TestClient.open(portOf(proxies, task)), await TestClient.open(portOf(proxies, task))]
  for (const client of clients) client.socket.write('hello')
  await until('it is reported', () => wanted.length > 0)
  await proxies.pass(task)
  await clients[0]?.receives('0 hello')
  await clients[1]?.receives('1 hello')
  expect(wanted).toEqual(['order'])
  await proxies.hold(task)
  const late = await TestClient.open(portOf(proxies, task))
  late.socket.write('late')
  await until('it is reported again', () => wanted.length === 2)
  late.socket.destroy()
})

it('A return that is followed at once by a swap-out passes what was held, or reports it again', async () => {
  const world = await guardWorld()
  const { proxies, wanted } = await proxiesIn(world)
  const task = taskOf('echo', [await serving(world, 'echo', ECHO)])
  await proxies.open(task)
  await proxies.hold(task)
  const client = await TestClient.open(portOf(proxies, task))
  client.socket.write('hello')
  await until('it is reported', () => wanted.length > 0)
  void proxies.pass(task)
  await proxies.hold(task)
  // The connection to the task may be made only after it has begun to leave.
  await until('it is passed, or reported', () => client.text === 'hello' || wanted.length > 1)
  await proxies.pass(task)
  await client.receives('hello')
})

it('A request that arrives during a swap-out is reported again after the swap-out', async () => {
  const world = await guardWorld()
  const { proxies, wanted } = await proxiesIn(world)
  const task = taskOf('echo', [await serving(world, 'echo', ECHO)])
  await proxies.open(task)
  await proxies.hold(task)
  await proxies.left(task)
  expect(wanted).toEqual([])
  const client = await TestClient.open(portOf(proxies, task))
  client.socket.write('hello')
  await until('it is reported', () => wanted.length > 0)
  await proxies.left(task)
  expect(wanted).toEqual(['echo', 'echo'])
  client.socket.destroy()
})

it('Requests that were refused while the task was out are noted at its return', async () => {
  const world = await guardWorld()
  const task = taskOf('order', [await serving(world, 'order', ORDER)])
  const { proxies, notes } = await proxiesIn(world, { maxHeld: 2, holdMs: 400 })
  await proxies.open(task)
  await proxies.hold(task)
  const clients = await Promise.all([1, 2, 3].map(() => TestClient.open(portOf(proxies, task))))
  await until('all are refused', () => clients.every((client) => client.isClosed))
  await proxies.pass(task)
  expect(notes).toEqual(['order: its proxy refused 1 requests above its limits, and 2 after 0.4 s'])
  expect(proxies.totals).toEqual({ refused: 1, expired: 2 })
  await proxies.hold(task)
  await proxies.pass(task)
  expect(notes).toHaveLength(1)
})

it.skipIf(!hasIp6())('An address of IPv6 stands in brackets', async () => {
  const world = await guardWorld()
  const task = taskOf('echo', [await serving(world, 'echo', ECHO)])
  const { proxies } = await proxiesIn(world, { range: { address: '::1', ports: PORTS } })
  await proxies.open(task)
  const [found] = proxies.addressesOf(task)
  const port = Number(/^\[::1\]:(\d+)$/.exec(found?.address ?? '')?.[1])
  const client = await TestClient.open(port, '::1')
  client.socket.end('hello')
  await client.receives('hello')
})

it('Requests for a task that they do not wake are held, and not reported', async () => {
  const world = await guardWorld()
  const target = await serving(world, 'deaf', ORDER)
  const { proxies, wanted } = await proxiesIn(world)
  const task = taskOf('deaf', [target], { wakeOnRequest: false })
  await proxies.open(task)
  expect(await proxies.hold(task)).toBe(false)
  const client = await TestClient.open(portOf(proxies, task))
  client.socket.write('hello')
  await new Promise((done) => setTimeout(done, 200))
  expect([wanted, client.text, client.isClosed]).toEqual([[], '', false])
  await proxies.pass(task)
  await client.receives('0 hello')
})

it('The next server finds the proxy, its addresses and the requests that it holds', async () => {
  const world = await guardWorld()
  const task = taskOf('order', [await serving(world, 'order', ORDER)])
  const first = await proxiesIn(world)
  await first.proxies.open(task)
  const port = portOf(first.proxies, task)
  await first.proxies.hold(task)
  first.proxies.closeAll()
  const client = await TestClient.open(port)
  client.socket.write('held')
  const same = taskOf('order', task.start.wakePorts ?? [])
  // Without the option: what runs is kept.
  const next = await proxiesIn(world, { range: null })
  await next.proxies.adopt(same, true)
  await until('it is reported', () => next.wanted.length === 1)
  expect(portOf(next.proxies, same)).toBe(port)
  await next.proxies.pass(same)
  await client.receives('0 held')
  expect(first.wanted).toEqual([])
})

it('A server whose predecessor held requests and died before the swap-out passes them', async () => {
  const world = await guardWorld()
  const task = taskOf('order', [await serving(world, 'order', ORDER)])
  const first = await proxiesIn(world)
  await first.proxies.open(task)
  await first.proxies.hold(task)
  first.proxies.closeAll()
  const client = await TestClient.open(portOf(first.proxies, task))
  client.socket.write('held')
  const next = await proxiesIn(world)
  await next.proxies.adopt(task, false)
  await client.receives('0 held')
  expect(next.wanted).toEqual([])
})

it('A proxy that is killed is started again on the same port, and holds what it held', async () => {
  const world = await guardWorld()
  const task = taskOf('order', [await serving(world, 'order', ORDER)])
  const { proxies, wanted, notes } = await proxiesIn(world)
  await proxies.open(task)
  await proxies.hold(task)
  const port = portOf(proxies, task)
  const lost = await TestClient.open(port)
  lost.socket.write('lost')
  await until('it is reported', () => wanted.length === 1)
  const folder = world.guards.folderOf('order', 1) ?? ''
  const [pid = 0] = proxiesOf(folder)
  process.kill(pid, 'SIGKILL')
  await until('its connection is lost', () => lost.isClosed || lost.isEnded)
  await until('another one runs', () => proxiesOf(folder).some((other) => other !== pid))
  await expect
    .poll(() => proxies.addressesOf(task))
    .toEqual([{ target: task.start.wakePorts?.[0], address: `127.0.0.1:${port}`, detail: null }])
  const client = await TestClient.open(port)
  client.socket.write('again')
  await until('it is reported', () => wanted.length === 2)
  await proxies.pass(task)
  await client.receives('0 again')
  expect(notes).toEqual(['order: its proxy has ended; it is started again, and its connections are lost'])
})

it('Without the option, or without a free port, the reason stands in place of the address', async () => {
  const world = await guardWorld()
  const target = await serving(world, 'echo', ECHO)
  const task = taskOf('echo', [target])
  const off = await proxiesIn(world, { range: null })
  await off.proxies.open(task)
  expect(off.proxies.addressesOf(task)).toEqual([
    { target, address: null, detail: 'its server has no --proxy-ports' },
  ])
  expect(await off.proxies.hold(task)).toBe(false)
  expect(off.notes).toEqual([])
  const ports = { from: target, to: target }
  const full = await proxiesIn(world, { range: { address: '127.0.0.1', ports } })
  await full.proxies.open(task)
  expect(full.proxies.addressesOf(task)).toEqual([
    { target, address: null, detail: 'no port of the range is free' },
  ])
  expect(full.notes).toEqual(['echo: its ports have no address: no port of the range is free'])
})

it('A task that has ended takes its proxy with it, and the next one gets another port', async () => {
  const world = await guardWorld()
  const [one, two] = [
    taskOf('one', [await serving(world, 'one', ECHO)]),
    taskOf('two', [await serving(world, 'two', ECHO)]),
  ]
  const { proxies, notes } = await proxiesIn(world)
  await proxies.open(one)
  const port = portOf(proxies, one)
  world.guards.kill('one', 1)
  await world.exitOf('one')
  proxies.close(one)
  await until('its port is closed', () => proxiesOf(`${world.folder}/guards/one.1`).length === 0)
  await proxies.open(two)
  expect(portOf(proxies, two)).not.toBe(port)
  const refused = connect(port, '127.0.0.1')
  await new Promise((done) => refused.once('error', done))
  expect(notes).toEqual([])
})

function hasIp6(): boolean {
  return Object.values(networkInterfaces()).some((all) => all?.some(({ address }) => address === '::1'))
}
