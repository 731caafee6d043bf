import { createServer } from 'node:net'

/** Below the ports that the kernel gives to outgoing connections, which could take one before its use. */
const FROM = 10_000
const COUNT = 10_000

/** Returns a port that is currently free. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = FROM + Math.floor(Math.random() * COUNT)
    if (await isFree(port)) return port
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  })
}
