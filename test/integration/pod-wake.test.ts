/** Requests wake pods that an agent has stopped. The pods are real servers whose cgroups are folders. */
import { execFile, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { afterEach, beforeAll, beforeEach, expect, it, vi } from 'vitest'
import { ProcessAccelerator } from '../../gpu-server/devices/process-accelerator.ts'
import { guardProgram } from '../../gpu-server/guard/guard-program.ts'
import { stateOf } from '../../gpu-server/guard/process-table.ts'
import { SocketWatch } from '../../gpu-server/devices/socket-watch.ts'
import { PodAgent } from '../../gpu-server/pods/pod-agent.ts'
import { PodCgroups } from '../../gpu-server/pods/pod-cgroups.ts'
import type { PodOrder } from '../../protocol/agent-messages.ts'
import { isRoot } from '../support/guard-world.ts'
import { WAIT } from '../support/wait.ts'

const run = promisify(execFile)
/** Answers HTTP on two ports. */
const SERVER = `
const { createServer } = require('node:http')
const made = [1, 2].map(() => createServer((_, answer) => answer.end('answer')))
const ready = () => process.stdout.write(JSON.stringify(made.map((each) => each.address().port)) + '\\n')
made[0].listen(0, '127.0.0.1', () => made[1].listen(0, '127.0.0.1', ready))`
const IN_NETWORK = ['unshare', '--net', 'sh', '-c', 'ip link set lo up; exec "$@"', 'sh']
const VRAM_MIB = 1_024

interface Server {
  readonly pid: number
  readonly ports: readonly [number, number]
  readonly facts: Pick<PodOrder, 'pod' | 'containers' | 'gpus' | 'vram_mib'>
}

let program: string
let folder: string
let agent: PodAgent
let requests = 0
const children: ChildProcess[] = []
const sockets: Socket[] = []
beforeAll(async () => {
  program = await guardProgram()
})
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'headroom-pod-wake-'))
  requests = 0
  await open()
})
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy()
  for (const child of children.splice(0)) child.kill('SIGKILL')
  await agent.close()
  rmSync(folder, { recursive: true })
})

async function open(watches = true): Promise<void> {
  const now = (): number => Math.floor(performance.now())
  const wait = (ms: number) => delay(ms)
  const onNote = (line: string): never => expect.fail(line)
  const gpus = [{ model: 'X', physicalMib: 4 * VRAM_MIB, swapMs: () => 0 }]
  agent = await PodAgent.open({
    ...{ node: 'a', stateFolder: folder, hostSwapMib: 4 * VRAM_MIB, idleAfterMs: 100, now, wait },
    accelerator: new ProcessAccelerator({ gpus, now, wait }),
    cgroups: new PodCgroups(folder),
    whyNot: () => null,
    watch: watches ? (onRequest) => new SocketWatch({ program, onRequest, onNote }) : null,
    onRequest: () => (requests += 1),
    onNote,
  })
}

async function serve(pod: string, prefix: readonly string[] = []): Promise<Server> {
  const [file = '', ...args] = [...prefix, process.execPath, '-e', SERVER]
  const child = spawn(file, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  children.push(child)
  const ports = await new Promise<[number, number]>((resolve) => {
    createInterface(child.stdout).once('line', (line) => resolve(JSON.parse(line) as [number, number]))
  })
  const { pid = 0 } = child
  const id = pod.charCodeAt(0).toString(16).repeat(32)
  const cgroup = join(folder, `cri-containerd-${id}.scope`)
  mkdirSync(cgroup)
  writeFileSync(join(cgroup, 'cgroup.procs'), `${pid}\n`)
  return { pid, ports, facts: { pod, containers: [id], gpus: [0], vram_mib: VRAM_MIB } }
}

let orders = 0
type Wake = Pick<PodOrder, 'wake_ports' | 'wake_on_request'>
type Pod = readonly [Server, Wake]
async function ordered(wanted: 'in' | 'out', ...pods: readonly Pod[]): Promise<void> {
  told(wanted, (orders += 1), ...pods)
  await agent.settled()
}
function told(wanted: 'in' | 'out', order: number, ...pods: readonly Pod[]): void {
  agent.obey({ pods: pods.map(([{ facts }, wake]) => ({ ...facts, ...wake, wanted, order })) })
}
const reportOf = ({ facts }: Server) => agent.report().pods.find(({ pod }) => pod === facts.pod)
const isWanted = (server: Server, wanted = true): Promise<void> =>
  vi.waitFor(async () => {
    await agent.sample()
    expect(reportOf(server)?.wants_gpu).toBe(wanted)
  }, WAIT)

/** Idle and swapped out. */
async function out(...pods: readonly Pod[]): Promise<void> {
  told('in', 0, ...pods)
  for (const [server] of pods) await isWanted(server, false)
  await ordered('out', ...pods)
  for (const [server] of pods) {
    expect(stateOf(server.pid)).toBe('T')
    expect(reportOf(server)).toMatchObject({ residency: 'out', wants_gpu: false })
  }
}

async function requested(port: number): Promise<void> {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => {})
  sockets.push(socket)
  await once(socket, 'connect')
}

it.skipIf(!isRoot)(
  'A pod with a network of its own (takes root) is woken, and answers when it runs',
  async () => {
    const [inside, outside] = [await serve('p', IN_NETWORK), await serve('q')]
    const [port] = inside.ports
    await out(
      [inside, { wake_ports: [...inside.ports, ...outside.ports] }],
      [outside, { wake_ports: outside.ports }],
    )
    await requested(outside.ports[0])
    await isWanted(outside)
    expect(reportOf(inside)?.wants_gpu).toBe(false)
    const code = `fetch('http://127.0.0.1:${port}').then((answer) => answer.text()).then(console.log)`
    const asked = run('nsenter', ['--net', '--target', String(inside.pid), process.execPath, '-e', code])
    await isWanted(inside)
    expect(requests).toBe(2)
    await ordered('in', [inside, { wake_ports: [port] }], [outside, {}])
    expect((await asked).stdout).toBe('answer\n')
  },
)

it('A request to a port that is not declared wakes nothing', async () => {
  const [server, none, other] = [await serve('p'), await serve('q'), await serve('r')]
  await out([server, { wake_ports: [server.ports[0]] }], [none, {}], [other, { wake_ports: other.ports }])
  await requested(server.ports[1])
  await requested(none.ports[0])
  // Arrives later, and is reported.
  await requested(other.ports[0])
  await isWanted(other)
  expect([server, none].map((each) => reportOf(each)?.wants_gpu)).toEqual([false, false])
  expect(requests).toBe(1)
})

it('No probe is needed if the pod declares so, and listens on a port that counts', async () => {
  const pods: readonly Pod[] = [
    [await serve('p'), { wake_on_request: true }],
    [await serve('q'), { wake_on_request: true, wake_ports: [1] }],
  ]
  const [undeclared, declared] = [await serve('r'), await serve('s')]
  await out(
    ...pods,
    [undeclared, { wake_ports: undeclared.ports }],
    [declared, { wake_ports: declared.ports, wake_on_request: true }],
  )
  expect(agent.report().pods.map(({ wakeable }) => wakeable)).toEqual([undefined, undefined, undefined, true])
  await ordered('in', [declared, { wake_ports: declared.ports, wake_on_request: true }])
  expect(reportOf(declared)?.wakeable).toBeUndefined()
})

it('Ports that are declared while the pod is out count from then on, and others count no more', async () => {
  const [server, other] = [await serve('p'), await serve('q')]
  await out([server, { wake_ports: server.ports }], [other, {}])
  told('out', orders, [server, {}], [other, { wake_ports: other.ports }])
  await requested(server.ports[0])
  await requested(other.ports[0])
  await isWanted(other)
  expect(reportOf(server)?.wants_gpu).toBe(false)
})

it('A pod that no request can wake any more returns, because no probe would bring it back', async () => {
  const server = await serve('p')
  await out([server, { wake_ports: server.ports, wake_on_request: true }])
  told('out', orders, [server, {}])
  await isWanted(server)
  expect(reportOf(server)?.wakeable).toBeUndefined()
})

it('The next agent continues to watch, without an answer of an operator', async () => {
  const server = await serve('p')
  await out([server, { wake_ports: server.ports, wake_on_request: true }])
  await agent.close()
  await open()
  expect(reportOf(server)).toMatchObject({ residency: 'out', wants_gpu: false, wakeable: true })
  await requested(server.ports[0])
  await isWanted(server)
})

it('A pod that was swapped out to wait for requests returns if the next agent cannot watch', async () => {
  const server = await serve('p')
  await out([server, { wake_ports: server.ports, wake_on_request: true }])
  await agent.close()
  await open(false)
  expect(reportOf(server)).toMatchObject({ residency: 'out', wants_gpu: true })
})

it('A request that waits for a running pod counts as use', async () => {
  const server = await serve('p')
  told('in', 0, [server, { wake_ports: server.ports }])
  await isWanted(server, false)
  // It cannot accept, and the agent does not know why.
  process.kill(server.pid, 'SIGSTOP')
  await requested(server.ports[0])
  await isWanted(server)
})

it.skipIf(!isRoot)('The rights of the agent are enough for the network of a pod (takes root)', async () => {
  const chart = join(import.meta.dirname, '../../deploy/helm/headroom/templates/agent.yaml')
  const [, named = ''] = /drop: \[ALL\], add: \[([A-Z_, ]+)\]/.exec(readFileSync(chart, 'utf8')) ?? []
  const rights = named.split(', ').map((name) => `+${name.toLowerCase()}`)
  const server = await serve('p', IN_NETWORK)
  const bounded = ['--no-new-privs', '--bounding-set', ['-all', ...rights].join(',')]
  const watch = spawn('setpriv', [...bounded, program, '--sockets'], { stdio: ['pipe', 'pipe', 'inherit'] })
  children.push(watch)
  const answer = once(createInterface(watch.stdout), 'line')
  watch.stdin.write(`watch 1 ${server.ports.join(',')} ${server.pid}\n`)
  expect(await answer).toEqual(['watching 1 2'])
})
