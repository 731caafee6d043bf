/** A cheap client: each connection sends the same bytes again as soon as the response has arrived. */
import { connect, type Socket } from 'node:net'
import type { DurationMs } from '../../../protocol/units.ts'

export interface Load {
  readonly port: number
  readonly request: Buffer
  readonly status: number
  readonly connections: number
  readonly forMs: DurationMs
}

/** Bytes of one HTTP/1.1 request on a connection that stays open. */
export function requestBytes(method: string, path: string, body: unknown = undefined): Buffer {
  const text = body === undefined ? '' : JSON.stringify(body)
  const head = [`${method} ${path} HTTP/1.1`, 'Host: 127.0.0.1']
  if (body !== undefined)
    head.push('Content-Type: application/json', `Content-Length: ${Buffer.byteLength(text)}`)
  return Buffer.from(`${head.join('\r\n')}\r\n\r\n${text}`)
}

/**
 * Responses per second. Rejects when one has another status. The client never sleeps: otherwise waking it
 * would cost the server CPU time, more so when it is slow.
 */
export async function answersPerSecond(load: Load): Promise<number> {
  const startedAt = performance.now()
  let isOver = false
  const stayAwake = (): void => {
    if (!isOver) setImmediate(stayAwake)
  }
  stayAwake()
  const counts = await Promise.all(
    Array.from({ length: load.connections }, () => keepAsking(load, startedAt + load.forMs)),
  )
  isOver = true
  return (1000 * counts.reduce((sum, count) => sum + count, 0)) / (performance.now() - startedAt)
}

function keepAsking({ port, request, status }: Load, until: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(request))
    let count = 0
    onAnswers(socket, (answered) => {
      if (answered !== status) {
        socket.destroy()
        return reject(new Error(`${request.toString().split('\r\n')[0]} was answered with ${answered}`))
      }
      count += 1
      if (performance.now() < until) return void socket.write(request)
      socket.destroy()
      resolve(count)
    })
    socket.once('error', reject)
    socket.once('end', () => reject(new Error('the server closed the connection')))
  })
}

/** Calls back with the status of each response once it is complete. Responses must state their length. */
function onAnswers(socket: Socket, tell: (status: number) => void): void {
  let rest: Buffer = Buffer.alloc(0)
  socket.on('data', (chunk: Buffer) => {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
    for (;;) {
      const headEnd = rest.indexOf('\r\n\r\n')
      if (headEnd < 0) return
      const head = rest.toString('latin1', 0, headEnd)
      const length = Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0)
      if (rest.length < headEnd + 4 + length) return
      rest = rest.subarray(headEnd + 4 + length)
      tell(Number(head.slice(9, 12)))
    }
  })
}
