import { createServer } from 'node:net'

/** Below the ports that the kernel gives to outgoing connections, which could take one before its use. */
const FROM = 10_000
const COUNT = 10_000

let last = Math.floor(Math.random() * COUNT)

/** Returns a port that is currently free. This process gets it once: what uses it may start later. */
export async function freePort(): Promise<number> {
  for (;;) {
    last = (last + 1) % COUNT
    const port = FROM + last
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
