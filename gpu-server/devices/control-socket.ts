/**
 * The control socket of a task (HEADROOM_SOCKET): a process that may open it says in lines of JSON whether
 * the task is busy, that work waits for it, or that it wants to hold more memory. What comes in is hostile:
 * bounded, checked, and answered with what is wrong.
 */
import { chmodSync, rmSync } from 'node:fs'
import { createServer, type Server, type Socket } from 'node:net'
import type { Mib } from '../../protocol/units.ts'

/** What was said, once it has been checked. */
export interface ControlListener {
  /** The task works on its GPU, or has run dry. */
  busy(isBusy: boolean): void
  /** Work waits for it: said by the task, or by whoever routes work to it while it stands still. */
  wanted(): void
  /** It would take so much on each GPU, all in all; `answer` once it is decided. */
  allocate(mib: Mib, answer: (isGranted: boolean) => void): void
}

export interface ControlSocket {
  /** No more connections, those there are end, the file is gone. */
  close(): void
}

/** Connections at a time; more are closed at once. */
const MAX_CONNECTIONS = 16
/** Characters of one line. */
const MAX_LINE_LENGTH = 1_024
/** Allocations of one connection that wait for their answer. */
const MAX_WAITING = 8
/** 16 TiB on one GPU. */
const MAX_MIB = 16_777_216
/** Only the user of the server, who is that of its tasks as well, and root may connect. */
const MODE = 0o600
/** Processes in the group of the attempt may connect, too. */
const GROUP_MODE = 0o660

type ControlMessage = { readonly busy: boolean } | { readonly want: true } | { readonly allocate_mib: Mib }

/**
 * Rejects when the socket cannot be made (a path over some 100 bytes, a folder that is not there). What an
 * earlier server left at that path is replaced.
 * @param group whose members may connect beside the server's own user; null: no other may
 */
export function openControlSocket(
  path: string,
  group: number | null,
  listener: ControlListener,
  chown: (path: string, uid: number, gid: number) => void,
): Promise<ControlSocket> {
  rmSync(path, { force: true })
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    if (sockets.size >= MAX_CONNECTIONS) return void socket.destroy()
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
    serveConnection(socket, listener)
  })
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(path, () => {
      server.off('error', reject)
      server.on('error', () => {})
      try {
        if (group !== null) chown(path, process.getuid?.() ?? 0, group)
        chmodSync(path, group === null ? MODE : GROUP_MODE)
      } catch (error) {
        server.close()
        reject(error instanceof Error ? error : new Error(String(error)))
        return
      }
      resolve({ close: () => closeAll(server, sockets, path) })
    })
  })
}

function closeAll(server: Server, sockets: ReadonlySet<Socket>, path: string): void {
  server.close()
  for (const socket of sockets) socket.destroy()
  rmSync(path, { force: true })
}

function serveConnection(socket: Socket, listener: ControlListener): void {
  let rest = ''
  let waiting = 0
  const send = (answer: Readonly<Record<string, unknown>>): void => {
    if (!socket.destroyed) socket.write(`${JSON.stringify(answer)}\n`)
  }
  const receive = (line: string): void => {
    const message = parse(line)
    if (typeof message === 'string') return send({ error: message })
    if ('busy' in message) listener.busy(message.busy)
    else if ('want' in message) listener.wanted()
    else if (waiting >= MAX_WAITING) send({ error: `${MAX_WAITING} allocations wait already` })
    else {
      waiting += 1
      listener.allocate(message.allocate_mib, (isGranted) => {
        waiting -= 1
        send({ allocate_mib: message.allocate_mib, granted: isGranted })
      })
    }
  }
  socket.setEncoding('utf8')
  socket.on('error', () => socket.destroy())
  socket.on('data', (chunk: string) => {
    const lines = (rest + chunk).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) if (line.trim() !== '' && !socket.destroyed) receive(line)
    if (rest.length <= MAX_LINE_LENGTH) return
    send({ error: `a line of more than ${MAX_LINE_LENGTH} characters` })
    socket.destroySoon()
  })
}

/** A string says what is wrong. */
function parse(line: string): ControlMessage | string {
  if (line.length > MAX_LINE_LENGTH) return `a line of more than ${MAX_LINE_LENGTH} characters`
  let value: unknown
  try {
    value = JSON.parse(line)
  } catch {
    return 'no JSON'
  }
  const entries =
    typeof value === 'object' && value !== null && !Array.isArray(value) ? Object.entries(value) : []
  const [[name, said] = ['', undefined], second] = entries
  if (second !== undefined || name === '')
    return 'one of {"busy": true or false}, {"want": true}, {"allocate_mib": N} in a line'
  if (name === 'busy') return typeof said === 'boolean' ? { busy: said } : 'busy: must be true or false'
  if (name === 'want') return said === true ? { want: true } : 'want: must be true'
  if (name !== 'allocate_mib')
    return `${JSON.stringify(name.slice(0, 40))}: is not known; busy, want and allocate_mib are`
  const isMib = typeof said === 'number' && Number.isSafeInteger(said) && said >= 1 && said <= MAX_MIB
  return isMib ? { allocate_mib: said } : `allocate_mib: must be an integer from 1 to ${MAX_MIB}`
}
