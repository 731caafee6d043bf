import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { EndpointTable, servedPort } from '../../controller/api/endpoints/endpoint-table.ts'
import { hashOf, idIn } from '../../controller/api/auth/token-secrets.ts'
import type { EndpointsBody } from '../../controller/api/endpoints/schema.ts'
import { DurableEvents } from '../../controller/engine/durable-events.ts'
import type { Event } from '../../controller/model/event.ts'
import { accessWorld, type AccessWorld } from '../support/access-world.ts'

let world: AccessWorld
let gateway: string
beforeEach(async () => {
  world = await accessWorld({ allowedHosts: ['headroom.example', '*.internal'] })
  gateway = await world.token('gateway')
})
afterEach(() => world.app.close())

async function submit(owner: string, name: string, protocol: 'tcp' | 'http' = 'http'): Promise<string> {
  const token = await world.token('submitter', { name: owner })
  const body = { name, vram_mib: 1, command: ['x'], ports: [{ name: 'api', target: 8001, protocol }] }
  const answer = await world.ask('POST', '/api/v1/tasks', { token, body })
  expect(answer.statusCode).toBe(201)
  return answer.json<{ id: string }>().id
}

const endpoints = async (): Promise<EndpointsBody> =>
  (await world.ask('GET', '/api/v1/endpoints', { token: gateway })).json()

describe('GET /endpoints', () => {
  test('lists open tasks with an http port, and the digests of tokens for endpoints', async () => {
    const id = await submit('alice', 'chat')
    await submit('alice', 'database', 'tcp')
    const secret = await world.token('endpoint', { name: 'alice', expiresAt: world.now + 1_000 })
    expect(await endpoints()).toEqual({
      revision: expect.stringMatching(/^[0-9a-f]{64}$/),
      controller_hosts: ['headroom.example', '*.internal'],
      replicas: [
        {
          ...{ owner: 'alice', name: 'chat', task_id: id, attempt: 0 },
          ...{ state: 'pending', residency: null, is_engine: false },
        },
      ],
      tokens: [
        {
          ...{ id: idIn(secret), sha256: hashOf(secret), owner: 'alice' },
          expires_at: new Date(world.now + 1_000).toISOString(),
        },
      ],
    })
  })

  test('never contains a secret, a command or a label', async () => {
    await submit('alice', 'chat')
    const secret = await world.token('endpoint', { name: 'alice' })
    const text = JSON.stringify(await endpoints())
    expect(text).not.toContain(secret)
    expect(text).not.toContain('command')
  })

  test('names no address of a task that is not placed', async () => {
    const id = await submit('alice', 'chat')
    const path = `/api/v1/endpoints/${id}/address`
    expect((await world.ask('GET', path, { token: gateway })).statusCode).toBe(404)
  })
})

describe('a gateway that waits', () => {
  const source = new DurableEvents()
  const tokens: object[] = []
  const table = (): EndpointTable =>
    new EndpointTable({
      views: world.views,
      source,
      access: { book: { tokens: () => tokens } as never, hosts: world.access.hosts },
      mayWait: true,
    })
  const never = new AbortController().signal

  test('is answered as soon as a task is submitted, and when a token is made', async () => {
    const endpointTable = table()
    const first = await endpointTable.read(undefined, 60_000, never)
    const second = endpointTable.read(first.revision, 60_000, never)
    const id = await submit('alice', 'chat')
    source.publish([{ taskId: id } as Event])
    expect((await second).replicas).toMatchObject([{ task_id: id }])
    const third = endpointTable.read((await second).revision, 60_000, never)
    tokens.push({ role: 'endpoint', id: 'a', name: 'alice', secretHash: 'b', expiresAt: null })
    expect((await third).tokens).toMatchObject([{ id: 'a' }])
    endpointTable.close()
  })

  test('gets the same again when its time is over, it has gone, or the controller stops', async () => {
    const endpointTable = table()
    const { revision } = await endpointTable.read(undefined, 0, never)
    expect((await endpointTable.read(revision, 1, never)).revision).toBe(revision)
    const gone = new AbortController()
    const waits = endpointTable.read(revision, 60_000, gone.signal)
    gone.abort()
    expect((await waits).revision).toBe(revision)
    const stopped = endpointTable.read(revision, 60_000, never)
    endpointTable.close()
    expect((await stopped).revision).toBe(revision)
  })
})

test('An endpoint leads to the first port with HTTP, and for an engine to its first port', () => {
  const ports = [
    { name: 'rpc', target: 1, protocol: 'tcp' },
    { name: 'api', target: 2, protocol: 'http' },
  ] as const
  expect(servedPort({ ports })?.name).toBe('api')
  expect(servedPort({ ports, swapEngine: { kind: 'vllm', port: 1, level: 1 } })?.name).toBe('rpc')
  expect(servedPort({ ports: [ports[0]] })).toBeNull()
  expect(servedPort({})).toBeNull()
})
