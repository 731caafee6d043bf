/**
 * `headroom work serve=PORT`: plays a model server for testing a cluster. It answers HTTP requests with the
 * checksum of its state, which it computes for each, and connections that ask for an upgrade with the same
 * line for each of theirs. It is busy while it answers. With `hooks` it moves its VRAM itself
 * (model-memory.ts), and a request waits until the memory is back.
 */
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { createInterface } from 'node:readline'

const STATE_BYTES = 1024 * 1024

/** Returns what `serve=PORT` or `serve=PORT hooks` say, or null for other steps. */
export function servedModel(
  steps: readonly string[],
): { readonly port: number; readonly hasHooks: boolean } | null {
  const [first = '', second] = steps
  const [, port] = /^serve=(\d{1,5})$/.exec(first) ?? []
  if (steps.length > 2 || (second !== undefined && second !== 'hooks')) return null
  if (port === undefined || Number(port) < 1 || Number(port) > 65_535) return null
  return { port: Number(port), hasHooks: second === 'hooks' }
}

/**
 * Never resolves.
 * @param onBusy called at the beginning and at the end of each answer
 * @param present resolves when the memory is in VRAM, with true if the request had to wait for that
 */
export async function serveModel(
  port: number,
  onBusy: (isBusy: boolean) => void,
  present: () => Promise<boolean>,
): Promise<never> {
  const state = randomBytes(STATE_BYTES)
  let answered = 0
  onBusy(false)
  const answer = async (): Promise<string> => {
    const waited = await present()
    onBusy(true)
    const checksum = createHash('sha256').update(state).digest('hex')
    answered += 1
    onBusy(false)
    return `${JSON.stringify({ checksum, answered, waited })}\n`
  }
  const server = createServer({ keepAlive: true, keepAliveTimeout: 0 }, (_request, response) => {
    void answer().then((text) => response.setHeader('Content-Type', 'application/json').end(text))
  })
  server.on('upgrade', (_request, socket) => {
    socket.on('error', () => socket.destroy())
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: lines\r\n\r\n')
    createInterface(socket).on('line', () => void answer().then((text) => socket.write(text)))
  })
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  process.stdout.write(`listening ${port}\n`)
  return new Promise(() => undefined)
}
