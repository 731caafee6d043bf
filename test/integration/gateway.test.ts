/** `headroom gateway` in front of tasks that share a declared GPU. */
import { once } from 'node:events'
import { Agent, request, type IncomingMessage } from 'node:http'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  ask,
  figuresOf,
  HOST,
  openWebSocket,
  residencyOf,
  startGatewayWorld,
  submit,
  type GatewayWorld,
} from '../support/gateway-world.ts'
import { headroom, killed, processesNaming, until } from '../support/live-cluster.ts'

const CLIENTS = 50
/** Answers with its name and what it got; upgraded connections get their lines back. */
const SERVER = `
  const [name, port] = process.argv.slice(1)
  const server = require('node:http').createServer((request, answer) => {
    const { url, method, headers } = request
    if (url === '/hang') return void answer.write('half')
    let body = ''
    request.on('data', (chunk) => (body += chunk))
    request.on('end', () => {
      answer.setHeader('Set-Cookie', 'evil=1')
      answer.end(JSON.stringify({ name, url, method, body, headers }))
    })
  })
  server.on('upgrade', (request, socket) => {
    socket.on('error', () => {})
    const fields = ['Connection: Upgrade', 'Upgrade: websocket', 'Set-Cookie: a=b']
    socket.write(['HTTP/1.1 101 Switching Protocols', ...fields].join('\\r\\n') + '\\r\\n\\r\\n')
    socket.pipe(socket)
  })
  setTimeout(() => server.listen({ port: Number(port), host: '127.0.0.1' }), Number(process.argv[3] ?? 0))`
const serving =
  (name: string, ...more: readonly string[]) =>
  (port: number): readonly string[] => [process.execPath, '-e', SERVER, name, String(port), ...more]

interface Got {
  readonly name: string
  readonly url: string
  readonly method: string
  readonly body: string
  readonly headers: Readonly<Record<string, string>>
}

let world: GatewayWorld
let chat: { readonly id: string; readonly port: number }
beforeAll(async () => {
  world = await startGatewayWorld()
  chat = await submit(world, 'chat', serving('chat'))
  await submit(world, 'code', serving('code'))
})
afterAll(() => world?.cluster.end())

const got = async (path: string, asked = {}): Promise<Got> => {
  const { status, text } = await ask(world, path, asked)
  if (status !== 200) throw new Error(`${status} ${text}`)
  return JSON.parse(text) as Got
}

/** How a request ends whose answer has begun. */
function endOf(path: string, token: string): { begun: Promise<unknown>; end: Promise<string> } {
  const headers = { host: HOST, authorization: `Bearer ${token}` }
  const sent = request({ host: '127.0.0.1', port: world.port, path, headers }).end()
  const answer = once(sent, 'response') as Promise<[IncomingMessage]>
  const end = answer.then(async ([response]) => {
    const ends = [once(response, 'end').then(() => 'answered'), once(response, 'close').then(() => 'closed')]
    response.resume()
    return Promise.race(ends).catch(() => 'closed')
  })
  return { begun: answer, end }
}

/** The other one needs the GPU. */
async function putChatToSleep(): Promise<void> {
  await until('chat is out', async () => {
    if ((await residencyOf(world, chat.id)) === 'swapped_out') return true
    await got('/alice/code/')
    return false
  })
}

describe('a gateway', () => {
  it('holds a request while its task starts, and answers it when the task listens', async () => {
    const late = await submit(world, 'late', serving('late', '1500'), { vram_mib: 100 })
    expect((await ask(world, '/alice/late/v1/x?y=1', { method: 'POST', body: 'hello' })).text).toContain(
      '"hello"',
    )
    await world.cluster.send('DELETE', `/tasks/${late.id}?now=true`)
  })

  it('wakes a task that the driver has stopped, and passes what the client sent', async () => {
    await putChatToSleep()
    const answer = await got('/alice/chat/v1/models?a=b', { method: 'PUT', body: 'x'.repeat(300_000) })
    expect(answer).toMatchObject({ name: 'chat', url: '/v1/models?a=b', method: 'PUT' })
    expect(answer.body).toHaveLength(300_000)
    expect(await figuresOf(world)).toMatch(
      /headroom_gateway_wake_seconds_count\{owner="alice",endpoint="chat"\} [1-9]/,
    )
  })

  it(`answers ${CLIENTS} requests that arrive at once while the task is out`, async () => {
    await putChatToSleep()
    const answers = await Promise.all(Array.from({ length: CLIENTS }, () => got('/alice/chat/')))
    expect(answers.map(({ name }) => name)).toEqual(Array.from({ length: CLIENTS }, () => 'chat'))
  })

  it('answers on a connection of the client that was open before the task left', async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    try {
      await ask(world, '/alice/chat/', { agent })
      await putChatToSleep()
      expect(await ask(world, '/alice/chat/', { agent })).toMatchObject({ status: 200, isReused: true })
    } finally {
      agent.destroy()
    }
  })

  it('passes a WebSocket, and wakes the task for what arrives on it', async () => {
    const opened = await openWebSocket(world, '/alice/chat/ws')
    expect(opened.text).toMatch(/^HTTP\/1.1 101 /)
    expect(opened.text.toLowerCase()).not.toContain('set-cookie')
    await putChatToSleep()
    opened.socket.write('after the wake')
    await until('the task answers', () => opened.text.endsWith('after the wake'))
    opened.socket.destroy()
  })

  it('ends a request soon whose task is killed, before and within its answer', async () => {
    const victim = await submit(world, 'victim', serving('victim'), { vram_mib: 100 })
    await until('it answers', async () => (await ask(world, '/alice/victim/')).status === 200)
    const within = endOf('/alice/victim/hang', world.token)
    await within.begun
    for (const pid of processesNaming(`victim\0${victim.port}`)) killed(pid)
    expect(await within.end).toBe('closed')
    await until('the task has ended', async () => (await ask(world, '/alice/victim/')).status === 404)
  })

  it('ends what uses a token soon after the token is revoked', async () => {
    const body = { name: 'alice', role: 'endpoint' }
    const made = await world.cluster.send<{ id: string; secret: string }>('POST', '/tokens', body)
    await until(
      'it is known',
      async () => (await ask(world, '/alice/chat/', { token: made.secret })).status === 200,
    )
    const hangs = endOf('/alice/chat/hang', made.secret)
    await hangs.begun
    await world.cluster.send('DELETE', `/tokens/${made.id}`)
    expect(await hangs.end).toBe('closed')
    expect((await ask(world, '/alice/chat/', { token: made.secret })).status).toBe(401)
  })
})

describe('a gateway that is killed', () => {
  it('closes its connections, and serves after a restart, also while the controller is away', async () => {
    await putChatToSleep()
    const closed = ask(world, '/alice/chat/').catch(() => 'closed')
    await until('it is held', async () => /held_requests.*chat"\} 1/.test(await figuresOf(world)))
    await world.gateway.end('SIGKILL')
    expect(await closed).toBe('closed')
    const before = world.gateway.output.length
    await world.gateway.start(() => world.gateway.output.slice(before).includes('listens on'))
    expect(await got('/alice/chat/')).toMatchObject({ name: 'chat' })
    await world.cluster.controller.end('SIGKILL')
    expect(await got('/alice/chat/')).toMatchObject({ name: 'chat' })
    await world.cluster.startController()
    expect(await got('/alice/code/')).toMatchObject({ name: 'code' })
  })

  it('ends by a signal at once when no request is open', async () => {
    await world.gateway.end('SIGTERM')
    const before = world.gateway.output.length
    await world.gateway.start(() => world.gateway.output.slice(before).includes('listens on'))
    expect(world.gateway.output).not.toContain('Error')
  })
})

it('A gateway does not start with a host name of the controller', async () => {
  const { cluster } = world
  for (const [name, why] of [
    ['localhost', 'localhost is a name that every program on this host can use'],
    ['127.0.0.1', 'must be a host name'],
  ] as const) {
    const command = headroom('gateway', '--host-name', name, '--server', cluster.url)
    const refused = cluster.addMember('refused', command, {})
    await expect(refused.start(() => false)).rejects.toThrow(why)
  }
})
