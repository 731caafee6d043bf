/**
 * `headroom work serve=PORT`: plays a model server for testing a cluster. It answers HTTP requests with the
 * checksum of its state, which it computes for each, and connections that ask for an upgrade with the same
 * line for each of theirs. It is busy while it answers.
 */
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { createInterface } from 'node:readline'

const STATE_BYTES = 1024 * 1024

/** Returns the port of `serve=PORT`, or null for other steps. */
export function servedPort(steps: readonly string[]): number | null {
  const [, port] = steps.length === 1 ? (/^serve=(\d{1,5})$/.exec(steps[0] ?? '') ?? []) : []
  return port === undefined || Number(port) < 1 || Number(port) > 65_535 ? null : Number(port)
}

/**
 * Never resolves.
 * @param onBusy called at the beginning and at the end of each answer
 */
export async function serveModel(port: number, onBusy: (isBusy: boolean) => void): Promise<never> {
  const state = randomBytes(STATE_BYTES)
  let answered = 0
  onBusy(false)
  const answer = (): string => {
    onBusy(true)
    const checksum = createHash('sha256').update(state).digest('hex')
    answered += 1
    onBusy(false)
    return `${JSON.stringify({ checksum, answered })}\n`
  }
  const server = createServer({ keepAlive: true, keepAliveTimeout: 0 }, (_request, response) => {
    response.setHeader('Content-Type', 'application/json').end(answer())
  })
  server.on('upgrade', (_request, socket) => {
    socket.on('error', () => socket.destroy())
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: lines\r\n\r\n')
    createInterface(socket).on('line', () => socket.write(answer()))
  })
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  process.stdout.write(`listening ${port}\n`)
  return new Promise(() => undefined)
}
