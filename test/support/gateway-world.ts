/** A cluster with tokens, model servers on a declared GPU that fits one, and a gateway in front of them. */
import { request, type Agent, type IncomingHttpHeaders } from 'node:http'
import { connect, type Socket } from 'node:net'
import { writeFileSync } from 'node:fs'
import { freePort } from './free-port.ts'
import { headroom, LiveCluster, until, type Member } from './live-cluster.ts'
import { PORTS } from './proxied-task.ts'

const INVENTORY = JSON.stringify({ gpus: [{ model: 'declared', vram_mib: 24_576, swap: 'pinned-gen5' }] })
const VRAM_MIB = 16_000
export const HOST = 'models.example.org'
const ANSWER_LIMIT_MS = 60_000

export interface GatewayWorld {
  readonly cluster: LiveCluster
  readonly gpuServer: Member
  readonly gateway: Member
  readonly port: number
  readonly adminPort: number
  /** Of the owner alice, with the role endpoint. */
  readonly token: string
  /** Makes a token; returns its secret. */
  makeToken(name: string, role: string): Promise<string>
}

export async function startGatewayWorld(...options: readonly string[]): Promise<GatewayWorld> {
  const cluster = await LiveCluster.startClosed()
  try {
    await cluster.send('PUT', '/config', {
      default_vram_overcommit_percent: 200,
      idle_swap_out_seconds: 1,
      eager_swap_in_seconds: null,
      safety_reserve_mib: 0,
    })
    const range = ['--proxy-ports', `${PORTS.from}-${PORTS.to}`, '--proxy-address', '127.0.0.1']
    const gpuServer = await cluster.startServer('gpu', INVENTORY, {}, ...range, '--idle-after', '500ms')
    const makeToken = async (name: string, role: string): Promise<string> =>
      (await cluster.send<{ secret: string }>('POST', '/tokens', { name, role })).secret
    const file = cluster.path('gateway.token')
    writeFileSync(file, await makeToken('gateway', 'gateway'), { mode: 0o600 })
    const [port, adminPort] = [await freePort(), await freePort()]
    const where = ['--listen', `127.0.0.1:${port}`, '--admin', `127.0.0.1:${adminPort}`]
    const gateway = cluster.addMember(
      'gateway',
      [
        ...headroom('gateway', '--host-name', HOST, ...where),
        ...['--server', cluster.url, '--token-file', file, ...options],
      ],
      {},
    )
    await gateway.start(() => gateway.output.includes('listens on'))
    return {
      cluster,
      gpuServer,
      gateway,
      port,
      adminPort,
      makeToken,
      token: await makeToken('alice', 'endpoint'),
    }
  } catch (error) {
    await cluster.end()
    throw error
  }
}

/** Submits as alice. */
export async function submit(
  { cluster, makeToken }: GatewayWorld,
  name: string,
  command: (port: number) => readonly string[],
  more: object = {},
): Promise<{ readonly id: string; readonly port: number }> {
  const port = await freePort()
  const token = await makeToken('alice', 'submitter')
  const answer = await fetch(`${cluster.url}/api/v1/tasks`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${token}` },
    body: JSON.stringify({
      ...{ name, vram_mib: VRAM_MIB, command: command(port) },
      ports: [{ name: 'api', target: port, protocol: 'http' }],
      ...more,
    }),
  })
  if (!answer.ok) throw new Error(await answer.text())
  return { id: ((await answer.json()) as { id: string }).id, port }
}

export const residencyOf = async ({ cluster }: GatewayWorld, id: string): Promise<string> =>
  (await cluster.get<{ readonly residency: string }>(`/tasks/${id}`)).residency

export interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
  readonly isReused: boolean
}

export interface Asked {
  readonly token?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly method?: string
  readonly body?: string
  readonly agent?: Agent
}

/** Rejects without an answer. */
export function ask({ port, token }: GatewayWorld, path: string, asked: Asked = {}): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const sent = request({
      ...{ host: '127.0.0.1', port, path, method: asked.method ?? 'GET', agent: asked.agent ?? false },
      headers: { host: HOST, authorization: `Bearer ${asked.token ?? token}`, ...asked.headers },
      timeout: ANSWER_LIMIT_MS,
    })
    sent.once('timeout', () => sent.destroy(new Error('no answer')))
    sent.once('error', reject)
    sent.once('response', (response) => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (chunk: string) => (text += chunk))
      response.once('error', reject)
      response.once('end', () => {
        const { statusCode: status = 0, headers } = response
        resolve({ status, headers, text, isReused: sent.reusedSocket })
      })
    })
    sent.end(asked.body)
  })
}

/** Sends text as it is, and resolves with all that came until the connection ended. */
export async function askRaw(port: number, text: string): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  socket.setTimeout(ANSWER_LIMIT_MS, () => socket.destroy(new Error('no answer')))
  socket.write(text)
  let answer = ''
  for await (const chunk of socket.setEncoding('utf8')) answer += String(chunk)
  return answer
}

/** A line protocol after the handshake of a WebSocket, which a gateway does not look at. */
export async function openWebSocket({ port, token }: GatewayWorld, path: string): Promise<TestSocket> {
  const socket = connect(port, '127.0.0.1')
  const opened = new TestSocket(socket)
  const fields = ['Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13', 'Cookie: a=b']
  const head = [`GET ${path} HTTP/1.1`, `Host: ${HOST}`, `Authorization: Bearer ${token}`, ...fields]
  socket.write(`${head.join('\r\n')}\r\n\r\n`)
  await until('the handshake is answered', () => opened.text.includes('\r\n\r\n'))
  return opened
}

export class TestSocket {
  readonly socket: Socket
  text = ''
  isClosed = false

  constructor(socket: Socket) {
    this.socket = socket
    socket.on('data', (chunk: Buffer) => (this.text += chunk.toString()))
    socket.on('error', () => {})
    socket.on('close', () => (this.isClosed = true))
  }
}

/** Its metrics, one a line. */
export async function figuresOf({ adminPort }: GatewayWorld): Promise<string> {
  return (await fetch(`http://127.0.0.1:${adminPort}/metrics`)).text()
}
