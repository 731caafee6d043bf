/**
 * Readers of the event stream, in a separate process. A number from the parent is the required number of
 * readers; the process reports when all receive events.
 */
import { connect, type Socket } from 'node:net'

const [port, path] = [Number(process.argv[2]), process.argv[3] ?? '']
const request = `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`
let sockets: readonly Socket[] = []
let bytes = 0

process.on('message', (count: number) => {
  for (const socket of sockets) socket.destroy()
  const told = bytes
  bytes = 0
  void Promise.all(Array.from({ length: count }, follow)).then((open) => {
    sockets = open
    process.send?.(told)
  })
})
process.once('disconnect', () => process.exit(0))

/** Resolves once it is connected: its position was sent. */
function follow(): Promise<Socket> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(request))
    let head = ''
    const until = (chunk: Buffer): void => {
      head += chunk.toString('latin1')
      if (!head.includes('\nid: ')) return
      socket.off('data', until)
      socket.on('data', (more) => (bytes += more.length))
      resolve(socket)
    }
    socket.on('data', until)
    socket.once('error', (error) => {
      throw error
    })
  })
}
