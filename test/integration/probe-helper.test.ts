/**
 * The helper for probes of pods, with the command line that admission writes: against real servers, and in
 * namespaces that stand for a container whose processes are stopped.
 */
import { spawn, spawnSync } from 'node:child_process'
import { globSync, mkdirSync, mkdtempSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { createServer as createHttp2Server, type ServerHttp2Stream } from 'node:http2'
import { createServer as createHttpsServer } from 'node:https'
import { type AddressInfo, createServer as createTcpServer, type Server } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { DEFAULT_ADMISSION } from '../../operator/admission/admission-options.ts'
import { admitPod } from '../../operator/admission/admit-pod.ts'
import type { Probe } from '../../operator/contract/kubernetes.ts'
import { makeCertificates } from '../support/certificates.ts'
import { freePort } from '../support/free-port.ts'
import { temporaryFolder } from '../support/headroom-command.ts'
import { aPod } from '../support/kubernetes/objects.ts'
import { buildProbeHelper, hasGo } from '../support/kubernetes/probe-helper.ts'
import { WAIT } from '../support/wait.ts'

const NAMESPACES = ['--user', '--map-root-user', '--pid', '--mount', '--fork', '--kill-child']

/** Null: the helper can be built, and run away from the processes of this machine. */
function whyNot(): string | null {
  const why = !hasGo()
    ? 'Go is not installed (https://go.dev/dl)'
    : spawnSync('unshare', [...NAMESPACES, '--mount-proc', 'true'], { stdio: 'ignore' }).status !== 0
      ? 'this user may not make namespaces with a /proc of their own'
      : null
  if (why !== null) process.stderr.write(`skipped: ${why}\n`)
  return why
}

const folder = temporaryFolder()
const helper = join(folder, 'headroom-probe-helper')
const ended: (() => unknown)[] = []
afterAll(() => {
  for (const end of ended.splice(0)) end()
})

/** What admission writes into the pod, with the folder of this test instead of that of the pod. */
function argsOf(probe: Probe, kind: 'livenessProbe' | 'readinessProbe' = 'livenessProbe'): readonly string[] {
  const pod = aPod()
  const containers = [{ name: 'c0', [kind]: { timeoutSeconds: 60, ...probe } }]
  const options = { ...DEFAULT_ADMISSION, helperImage: 'registry.example/p:1' }
  const admitted = admitPod({ ...pod, spec: { ...pod.spec, containers } }, options)
  if (!admitted.ok) expect.fail(JSON.stringify(admitted.faults))
  const [, ...args] = admitted.pod.spec.containers[0]?.[kind]?.exec?.command ?? []
  expect(args.length).toBeGreaterThan(0)
  // As the kubelet expands commands.
  return args.map((arg) => arg.replaceAll('$$', '$').replace('/headroom-probe/', `${folder}/`))
}

interface Result {
  readonly code: number
  readonly output: string
}

/** Returns once its last process has closed its output. */
function run(program: string, args: readonly string[], heard: string[] = []): Promise<Result> {
  const env = { ...process.env, HEADROOM_POD_IP: '127.0.0.1' }
  const child = spawn(program, args, { env, stdio: ['ignore', 'pipe', 'pipe'] })
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (data: Buffer) => heard.push(data.toString()))
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code) => resolve({ code: code ?? -1, output: heard.join('') }))
  })
}

/** In a container of its own in which nothing is stopped; the network is that of this machine. */
const alone = (args: readonly string[]): Promise<Result> =>
  run('unshare', [...NAMESPACES, '--mount-proc', helper, ...args])

async function listening(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  ended.push(() => server.close())
  return (server.address() as AddressInfo).port
}

describe.skipIf(whyNot() !== null)('The helper for probes', () => {
  beforeAll(() => {
    buildProbeHelper(helper)
  })

  it('Installs itself for all users, also over a copy that is in use', async () => {
    const target = join(folder, 'installed')
    const install = () => run('sh', ['-c', 'umask 077; exec "$0" "$@"', helper, 'install', target])
    expect(await install()).toEqual({ code: 0, output: '' })
    expect(statSync(target).mode & 0o777).toBe(0o755)
    const command = [target, 'exec', '--timeout', '600', '--', 'sleep', '600']
    const user = spawn('unshare', [...NAMESPACES, '--mount-proc', ...command], { stdio: 'ignore' })
    ended.push(() => user.kill('SIGKILL'))
    await vi.waitFor(() => expect(childrenOf(user.pid!).flatMap(childrenOf)).not.toEqual([]), WAIT)
    expect(await install()).toEqual({ code: 0, output: '' })
    expect(readFileSync(target).equals(readFileSync(helper))).toBe(true)
    expect((await run(helper, ['install', '/proc/nowhere/probe'])).code).toBe(1)
  })

  it('TCP: succeeds if the port accepts connections', async () => {
    const port = await listening(createTcpServer((socket) => socket.end()))
    expect(await alone(argsOf({ tcpSocket: { port } }))).toEqual({ code: 0, output: '' })
    const refused = await alone(argsOf({ tcpSocket: { port: await freePort() } }))
    expect(refused).toEqual({ code: 1, output: expect.stringContaining('connection refused') as string })
  })

  describe('HTTP', () => {
    const seen: { readonly url: string; readonly headers: NodeJS.Dict<string | string[]> }[] = []
    let port = 0
    beforeAll(async () => {
      const server = createServer(({ url = '', headers }, response) => {
        seen.push({ url, headers })
        const status = Number(/\d{3}/.exec(url)?.[0] ?? 200)
        if (url === '/slow') return
        const location = url.endsWith('away') ? 'http://192.0.2.1/' : '/?404'
        response.writeHead(status, status === 302 ? { location } : {}).end('x'.repeat(50_000))
      })
      port = await listening(server)
      ended.push(() => server.closeAllConnections())
    })

    it('Sends path, query and headers as the kubelet does', async () => {
      const httpHeaders = [
        { name: 'Host', value: 'model.example' },
        { name: 'X-Key', value: 'a: $(B) $$' },
      ]
      const path = '/health?full=$(YES)'
      expect(await alone(argsOf({ httpGet: { port, path, httpHeaders } }))).toEqual({ code: 0, output: '' })
      expect(seen.at(-1)).toMatchObject({
        url: path,
        headers: {
          ...{ host: 'model.example', 'x-key': 'a: $(B) $$', accept: '*/*' },
          'user-agent': 'kube-probe/headroom',
        },
      })
      await alone(argsOf({ httpGet: { port, path: 'bare' } }))
      expect(seen.at(-1)).toMatchObject({ url: '/bare', headers: { host: `127.0.0.1:${port}` } })
    })

    it.each([
      ['/?200', 0],
      ['/?399', 0],
      ['/?400', 1],
      ['/?503', 1],
      // Followed on the same host; a redirect to another host is a success.
      ['/?302', 1],
      ['/?302&away', 0],
    ])('%s exits with %i', async (path, code) => {
      expect((await alone(argsOf({ httpGet: { port, path } }))).code).toBe(code)
    })

    it('An answer that takes longer than the timeout is a failure', async () => {
      const slow = await alone(argsOf({ httpGet: { port, path: '/slow' }, timeoutSeconds: 1 }))
      expect(slow).toEqual({ code: 1, output: expect.stringContaining('deadline exceeded') as string })
    })

    it('HTTPS needs no certificate that can be verified', async () => {
      makeCertificates(folder, 'DNS:elsewhere')
      const text = (name: string): string => readFileSync(join(folder, name), 'utf8')
      const own = { cert: text('server.pem'), key: text('server.key') }
      const secure = await listening(createHttpsServer(own, (_request, response) => response.end()))
      const httpGet = { port: secure, scheme: 'HTTPS' }
      expect(await alone(argsOf({ httpGet }))).toEqual({ code: 0, output: '' })
      expect((await alone(argsOf({ httpGet: { port, scheme: 'HTTPS' } }))).code).toBe(1)
    })
  })

  it.each([
    ['', 0, 'SERVING'],
    ['model', 0, 'SERVING'],
    ['asleep', 1, 'is not SERVING'],
    ['unknown', 1, 'gRPC status "5" no such service'],
  ])('gRPC: the service "%s" exits with %i', async (service, code, output) => {
    const server = createHttp2Server()
    server.on('stream', answerHealth)
    const grpc = { port: await listening(server), ...(service === '' ? {} : { service }) }
    const result = await alone(argsOf({ grpc }))
    expect(result.code).toBe(code)
    if (code !== 0) expect(result.output).toContain(output)
  })

  it('exec: the command decides, and its processes end with the timeout', async () => {
    const command = (text: string) => ({ exec: { command: ['sh', '-c', text] } })
    expect(await alone(argsOf(command('echo fine')))).toEqual({ code: 0, output: 'fine\n' })
    expect(await alone(argsOf(command('echo bad >&2; exit 3')))).toEqual({
      ...{ code: 1, output: expect.stringMatching(/bad\n/) as string },
    })
    expect((await alone(argsOf({ exec: { command: ['/absent'] } }))).code).toBe(1)
    const inside = await container()
    expect((await inside.probe(argsOf({ ...command('sleep 1000 & wait'), timeoutSeconds: 1 }))).code).toBe(1)
  })

  it('While the container is stopped it succeeds, and readiness repeats its last result', async () => {
    const { port, signal, probe } = await container()
    const live = argsOf({ httpGet: { port, path: '/?200' } })
    const ready = (path: string) => argsOf({ httpGet: { port, path } }, 'readinessProbe')
    const codes = async () => [(await probe(live)).code, (await probe(ready('/?200'))).code]

    await signal('SIGSTOP')
    // Before the first result.
    expect(await codes()).toEqual([0, 1])
    await signal('SIGCONT')
    expect(await codes()).toEqual([0, 0])
    await signal('SIGSTOP')
    expect(await codes()).toEqual([0, 0])
    await signal('SIGCONT')
    expect((await probe(ready('/?500'))).code).toBe(1)
    await signal('SIGSTOP')
    expect(await codes()).toEqual([0, 1])
    const again = await probe(ready('/?200'))
    expect(again.output).toContain('swapped out, and its last check failed')
  })

  it.each<[string, (port: number) => Probe]>([
    ['HTTP', (port) => ({ httpGet: { port, path: '/slow' }, timeoutSeconds: 300 })],
    ['exec', () => ({ exec: { command: ['sh', '-c', 'echo asked; sleep 300'] }, timeoutSeconds: 300 })],
  ])('A check by %s succeeds if the container is stopped meanwhile', async (_kind, probeOf) => {
    const { port, signal, probe, said } = await container()
    const result = probe(argsOf(probeOf(port)), said)
    await vi.waitFor(() => expect(said.join('')).toContain('asked'), WAIT)
    await signal('SIGSTOP')
    expect((await result).code).toBe(0)
  })

  // A file /proc of its own, with the cgroup of the helper: its number is in no row.
  it.each([
    ['A stopped process', 0, { 7: ['/', 'T'] }],
    ['A process that the driver holds', 0, { 7: ['/', 'S'], 8: ['/', 't'] }],
    ['A stopped process of another container', 1, { 1: ['/../pause', 'S'], 7: ['/../other', 'T'] }],
    ['A stopped process 1, whatever its cgroup,', 0, { 1: ['/init.scope', 'T'] }],
    ['A running process with a name like a state', 1, { 1: ['/', 'S', 'x) T ('], 7: ['/', 'Z'] }],
  ])('%s makes a check that fails exit with %i', async (_title, code, processes) => {
    const proc = mkdtempSync(join(folder, 'proc-'))
    const put = (pid: string, [cgroup, state, name = 'a']: readonly (string | undefined)[]): void => {
      mkdirSync(join(proc, pid))
      writeFileSync(join(proc, pid, 'cgroup'), `0::${cgroup}\n`)
      writeFileSync(join(proc, pid, 'stat'), `${pid} (${name}) ${state} 1 1`)
    }
    put('self', ['/', 'R'])
    for (const [pid, about] of Object.entries(processes)) put(pid, about)
    const args = argsOf({ tcpSocket: { port: await freePort() } })
    const script = 'mount --bind "$0" /proc && exec "$@"'
    const inside = ['--user', '--map-root-user', '--mount', 'sh', '-c', script, proc, helper, ...args]
    expect((await run('unshare', inside)).code).toBe(code)
  })
})

/** Answers grpc.health.v1.Health/Check. */
function answerHealth(stream: ServerHttp2Stream, headers: NodeJS.Dict<string | string[]>): void {
  const isCheck = headers[':path'] === '/grpc.health.v1.Health/Check' && headers['te'] === 'trailers'
  const parts: Buffer[] = []
  stream.on('data', (part: Buffer) => parts.push(part))
  stream.on('end', () => {
    const message = Buffer.concat(parts).subarray(5)
    const isWhole = Buffer.concat(parts).readUInt32BE(1) === message.length
    const name = message.length === 0 ? '' : message.subarray(2).toString()
    const isNamed = message.length === 0 || (message[0] === 10 && message[1] === name.length)
    const type = { ':status': 200, 'content-type': 'application/grpc' }
    const status = { '': 1, model: 1, asleep: 2 }[name]
    if (!isCheck || !isWhole || !isNamed || status === undefined) {
      stream.respond({ ...type, 'grpc-status': '5', 'grpc-message': 'no such service' }, { endStream: true })
      return
    }
    stream.respond(type, { waitForTrailers: true })
    stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }))
    stream.end(Buffer.from([0, 0, 0, 0, 2, 8, status]))
  })
}

const SERVER = `
const server = require('node:http').createServer(({ url }, response) => {
  if (url === '/slow') return console.log('asked')
  response.writeHead(Number(url.slice(-3))).end()
})
server.listen(0, '127.0.0.1', () => console.log('port', server.address().port))
`

/** Namespaces as of a container, with a server as process 1. */
async function container() {
  const child = spawn('unshare', [...NAMESPACES, '--mount-proc', process.execPath, '-e', SERVER], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  ended.push(() => child.kill('SIGKILL'))
  const said: string[] = []
  child.stdout.on('data', (data: Buffer) => said.push(data.toString()))
  const port = await vi.waitFor(() => {
    const [, text] = /port (\d+)/.exec(said.join('')) ?? []
    if (text === undefined) throw new Error(`the server has not started: ${said.join('')}`)
    return Number(text)
  }, WAIT)
  const [first = 0] = childrenOf(child.pid!)
  return {
    ...{ port, said },
    /** Returns once the server has stopped, or continues. */
    async signal(name: 'SIGSTOP' | 'SIGCONT'): Promise<void> {
      process.kill(first, name)
      const isStopped = () => /^State:\s+T/m.test(readFileSync(`/proc/${first}/status`, 'utf8'))
      await vi.waitFor(() => expect(isStopped()).toBe(name === 'SIGSTOP'), WAIT)
    },
    /** Runs the helper as the kubelet does: in all namespaces of the container. */
    probe(args: readonly string[], heard?: string[]): Promise<Result> {
      const all = ['--target', String(first), '--user', '--pid', '--mount', '--preserve-credentials']
      return run('nsenter', [...all, helper, ...args], heard)
    },
  }
}

/** A child belongs to the thread that started it; a Go program may use any of its threads. */
function childrenOf(pid: number): readonly number[] {
  return globSync(`/proc/${pid}/task/*/children`).flatMap((path) =>
    readFileSync(path, 'utf8').split(' ').filter(Boolean).map(Number),
  )
}
