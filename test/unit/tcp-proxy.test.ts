/** The proxy of tests that cuts connections keeps what it holds, in order. */
import { createConnection, createServer, type AddressInfo, type Socket } from 'node:net'
import { expect, it, vi } from 'vitest'
import { BOTH, TcpProxy } from '../support/tcp-proxy.ts'
import { WAIT } from '../support/wait.ts'

interface Ends {
  readonly proxy: TcpProxy
  readonly client: Socket
  readonly target: Socket
  /** What has arrived at the target and at the client. */
  readonly arrived: { atTarget: string; atClient: string }
  readonly closed: Set<'client' | 'target'>
}

async function ends(): Promise<Ends> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const proxy = await TcpProxy.start((server.address() as AddressInfo).port)
  const joined = new Promise<Socket>((resolve) => server.once('connection', resolve))
  const client = createConnection(proxy.port, '127.0.0.1')
  const target = await joined
  server.close()
  const arrived = { atTarget: '', atClient: '' }
  const closed = new Set<'client' | 'target'>()
  target.on('data', (data) => (arrived.atTarget += data.toString())).on('close', () => closed.add('target'))
  client.on('data', (data) => (arrived.atClient += data.toString())).on('close', () => closed.add('client'))
  return { proxy, client, target, arrived, closed }
}

it('Bytes and the end of a connection pass after the cut, and in the other direction at once', async () => {
  const { proxy, client, target, arrived, closed } = await ends()
  client.write('1')
  await vi.waitFor(() => expect(arrived.atTarget).toBe('1'), WAIT)
  proxy.cut(['to'])
  client.write('2')
  target.write('a')
  await vi.waitFor(() => expect(arrived.atClient).toBe('a'), WAIT)
  client.end('3')
  target.end('b')
  await vi.waitFor(() => expect([arrived.atClient, closed.has('client')]).toEqual(['ab', true]), WAIT)
  expect(arrived.atTarget).toBe('1')
  proxy.heal()
  await vi.waitFor(() => expect([arrived.atTarget, closed.has('target')]).toEqual(['123', true]), WAIT)
  await proxy.end()
})

it('Bytes at which the cut begins pass after it', async () => {
  const { proxy, client, arrived } = await ends()
  const seen = proxy.onSent('stop', 60_000, () => proxy.cut(BOTH))
  client.write('go on')
  await vi.waitFor(() => expect(arrived.atTarget).toBe('go on'), WAIT)
  client.write('; stop here')
  expect(await seen).toBe(true)
  client.write('; and more')
  expect(arrived.atTarget).toBe('go on')
  proxy.heal()
  await vi.waitFor(() => expect(arrived.atTarget).toBe('go on; stop here; and more'), WAIT)
  await proxy.end()
})
