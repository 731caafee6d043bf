/**
 * The socket where a process registers itself for a lease: one line of JSON per request. Input is hostile:
 * bounded, checked, and answered with an error.
 */
import { chmodSync, chownSync, rmSync } from 'node:fs'
import { createServer, type Server, type Socket } from 'node:net'
import type { SocketPeer } from '../guard/socket-peer.ts'

/** The process at the other end of the connection asks. */
export interface AttachListener {
  attach(token: string, peer: SocketPeer): AttachAnswer
  detach(peer: SocketPeer): AttachAnswer
  busy(isBusy: boolean, peer: SocketPeer): AttachAnswer
}

export type AttachAnswer =
  | { readonly attached: true; readonly environment: Readonly<Record<string, string>> }
  | { readonly detached: true }
  | { readonly busy: boolean }
  | { readonly error: string }

export interface AttachSocket {
  /** Refuses new connections, ends existing ones and removes the file. */
  close(): void
}

/** Maximum connections at a time; further ones are closed at once. */
const MAX_CONNECTIONS = 16
/** A connection that sends nothing for so long is closed. */
const SILENT_MS = 10_000
const MAX_LINE_LENGTH = 1_024
const MODE = 0o600
const GROUP_MODE = 0o660

/** Replaces what an earlier server left at that path. Rejects when it cannot be made. */
export function openAttachSocket(
  path: string,
  group: number | null,
  peerOf: (socket: Socket) => Promise<SocketPeer>,
  listener: AttachListener,
): Promise<AttachSocket> {
  rmSync(path, { force: true })
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    if (sockets.size >= MAX_CONNECTIONS) return void socket.destroy()
    sockets.add(socket)
    socket.on('error', () => socket.destroy())
    socket.once('close', () => sockets.delete(socket))
    socket.setTimeout(SILENT_MS, () => socket.destroy())
    peerOf(socket).then(
      (peer) => serve(socket, peer, listener),
      () => socket.destroy(),
    )
  })
  return listening(server, path, group, sockets)
}

function listening(
  server: Server,
  path: string,
  group: number | null,
  sockets: ReadonlySet<Socket>,
): Promise<AttachSocket> {
  const close = (): void => {
    server.close()
    for (const socket of sockets) socket.destroy()
    rmSync(path, { force: true })
  }
  return new Promise((resolve, reject) => {
    const mask = process.umask(0o077)
    server.once('error', reject)
    server.listen(path, () => {
      server.off('error', reject)
      server.on('error', () => {})
      try {
        if (group !== null) chownSync(path, process.getuid?.() ?? 0, group)
        chmodSync(path, group === null ? MODE : GROUP_MODE)
        resolve({ close })
      } catch (error) {
        close()
        reject(error instanceof Error ? error : new Error(String(error)))
      }
    })
    process.umask(mask)
  })
}

function serve(socket: Socket, peer: SocketPeer, listener: AttachListener): void {
  let rest = ''
  socket.setEncoding('utf8')
  socket.on('data', (chunk: string) => {
    const lines = (rest + chunk).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) if (!socket.destroyed) send(socket, answerTo(line, peer, listener))
    if (rest.length <= MAX_LINE_LENGTH) return
    send(socket, { error: `line is longer than ${MAX_LINE_LENGTH} characters` })
    socket.destroySoon()
  })
  socket.resume()
}

function send(socket: Socket, answer: AttachAnswer): void {
  if (!socket.destroyed) socket.write(`${JSON.stringify(answer)}\n`)
}

function answerTo(line: string, peer: SocketPeer, listener: AttachListener): AttachAnswer {
  if (line.length > MAX_LINE_LENGTH) return { error: `line is longer than ${MAX_LINE_LENGTH} characters` }
  const [name, value] = memberOf(line)
  if (name === 'attach' && typeof value === 'string') return listener.attach(value, peer)
  if (name === 'detach' && value === true) return listener.detach(peer)
  if (name === 'busy' && typeof value === 'boolean') return listener.busy(value, peer)
  return { error: 'a line must be one of {"attach": TOKEN}, {"busy": true or false}, {"detach": true}' }
}

/** Returns the only member of an object; otherwise an empty name. */
function memberOf(line: string): readonly [string, unknown] {
  try {
    const value: unknown = JSON.parse(line)
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
    const [first, second] = isObject ? Object.entries(value) : []
    return first === undefined || second !== undefined ? ['', null] : first
  } catch {
    return ['', null]
  }
}
