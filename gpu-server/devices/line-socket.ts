/**
 * A Unix socket whose clients send lines of JSON and receive lines of JSON. Input is hostile: connections and
 * lines are bounded.
 */
import { chmodSync, chownSync, rmSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { isMainThread } from 'node:worker_threads'

export interface LineSocket {
  /** Refuses new connections, ends existing ones and removes the file. */
  close(): void
}

export type SendLine = (answer: object) => void
export type ReceiveLine = (line: string) => void

export interface LineSocketOptions {
  readonly path: string
  /** Group with members that may connect, in addition to the server's user and root; null: no group. */
  readonly group: number | null
  /** Replaced in tests, which do not run as root. */
  readonly chown?: (path: string, uid: number, gid: number) => void
  /** A connection that sends nothing for so long is closed; null: never. */
  readonly silentMs: number | null
  /** Returns the receiver of a connection's lines; a rejection closes the connection. */
  readonly accept: (socket: Socket, send: SendLine) => ReceiveLine | Promise<ReceiveLine>
}

/** Maximum connections at a time; further ones are closed at once. */
const MAX_CONNECTIONS = 16
/** Maximum characters of one line. */
const MAX_LINE_LENGTH = 1_024
const TOO_LONG = { error: `line is longer than ${MAX_LINE_LENGTH} characters` }
const MODE = 0o600
const GROUP_MODE = 0o660

/**
 * Creates the socket; replaces what an earlier server left at that path. Rejects when it cannot be made (a
 * path over some 100 bytes, a missing folder).
 */
export function openLineSocket(options: LineSocketOptions): Promise<LineSocket> {
  const { path, group, chown = chownSync } = options
  rmSync(path, { force: true })
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    if (sockets.size >= MAX_CONNECTIONS) return void socket.destroy()
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
    void serve(socket, options)
  })
  const close = (): void => {
    server.close()
    for (const socket of sockets) socket.destroy()
    rmSync(path, { force: true })
  }
  return new Promise((resolve, reject) => {
    // No other user may connect before the file has its group and mode. A thread cannot set the mask.
    const mask = isMainThread ? process.umask(0o077) : null
    server.once('error', reject)
    server.listen(path, () => {
      server.off('error', reject)
      server.on('error', () => {})
      try {
        if (group !== null) chown(path, process.getuid?.() ?? 0, group)
        chmodSync(path, group === null ? MODE : GROUP_MODE)
        resolve({ close })
      } catch (error) {
        close()
        reject(error instanceof Error ? error : new Error(String(error)))
      }
    })
    if (mask !== null) process.umask(mask)
  })
}

async function serve(socket: Socket, { silentMs, accept }: LineSocketOptions): Promise<void> {
  const send: SendLine = (answer) => {
    if (!socket.destroyed) socket.write(`${JSON.stringify(answer)}\n`)
  }
  socket.on('error', () => socket.destroy())
  if (silentMs !== null) socket.setTimeout(silentMs, () => socket.destroy())
  let receive: ReceiveLine
  try {
    receive = await accept(socket, send)
  } catch {
    return void socket.destroy()
  }
  let rest = ''
  socket.setEncoding('utf8')
  socket.on('data', (chunk: string) => {
    const lines = (rest + chunk).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) {
      if (socket.destroyed) return
      if (line.length > MAX_LINE_LENGTH) send(TOO_LONG)
      else receive(line)
    }
    if (rest.length <= MAX_LINE_LENGTH) return
    send(TOO_LONG)
    socket.destroySoon()
  })
  // The lookup of the peer has paused the socket.
  socket.resume()
}
