/** A fake controller behind a real socket, for tests of the client and the command. */
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll } from 'vitest'
import { createApi, type ApiOptions } from '../../controller/api/server.ts'
import { FakeController } from './api-world.ts'

export interface Asked {
  readonly url: string
  readonly world: FakeController
  close(): Promise<void>
}

/** Serves the API of a fake engine until the tests of the file have ended. */
export async function askedApi(
  options: Partial<ApiOptions> = {},
  world = new FakeController(),
  port = 0,
): Promise<Asked> {
  const app = createApi({
    commands: world.commands,
    views: world.views,
    version: '0.0.0-test',
    inVirtualTime: true,
    events: world.durable,
    ...options,
  })
  afterAll(() => app.close())
  return { world, url: await app.listen({ host: '127.0.0.1', port }), close: () => app.close() }
}

/** Serves any other handler; returns its address. */
export async function askedServer(listener: RequestListener): Promise<string> {
  const server = createServer(listener)
  afterAll(() => {
    server.closeAllConnections()
    server.close()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** Returns an address on loopback without a listener. */
export async function deadAddress(): Promise<string> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return `http://127.0.0.1:${port}`
}
