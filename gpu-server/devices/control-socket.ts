/**
 * The control socket of a task (HEADROOM_SOCKET). A process that may open it sends lines of JSON: the task is
 * busy or idle, work waits for the task, or the task wants more memory. Input is hostile: bounded, checked,
 * and answered with an error.
 */
import { chmodSync, rmSync } from 'node:fs'
import { createServer, type Server, type Socket } from 'node:net'
import type { Mib } from '../../protocol/units.ts'
import { MAX_VRAM_MIB } from '../../protocol/limits.ts'

/** Receives checked messages. */
export interface ControlListener {
  /** The task works on its GPU, or became idle. */
  busy(isBusy: boolean): void
  /** Work waits for the task: sent by the task, or by a router while the task is stopped. */
  wanted(): void
  /** The task wants to use this total per GPU; call `answer` once it is decided. */
  allocate(mib: Mib, answer: (isGranted: boolean) => void): void
}

export interface ControlSocket {
  /** Refuses new connections, ends existing ones and removes the file. */
  close(): void
}

/** Maximum connections at a time; further ones are closed at once. */
const MAX_CONNECTIONS = 16
/** Maximum characters of one line. */
const MAX_LINE_LENGTH = 1_024
/** Maximum unanswered allocations of one connection. */
const MAX_WAITING = 8
/** 16 TiB on one GPU. */
/** Only the server's user, which is also its tasks' user, and root may connect. */
const MODE = 0o600
/** Processes in the group of the attempt may connect too. */
const GROUP_MODE = 0o660

type ControlMessage = { readonly busy: boolean } | { readonly want: true } | { readonly allocate_mib: Mib }

/**
 * Creates the socket; replaces what an earlier server left at that path. Rejects when it cannot be made (a
 * path over some 100 bytes, a missing folder).
 * @param group whose members may connect in addition to the server's user; null: no group
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
    else if (waiting >= MAX_WAITING) send({ error: `${MAX_WAITING} allocations are already waiting` })
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
    send({ error: `line is longer than ${MAX_LINE_LENGTH} characters` })
    socket.destroySoon()
  })
}

/** Returns an error text for an invalid line. */
function parse(line: string): ControlMessage | string {
  if (line.length > MAX_LINE_LENGTH) return `line is longer than ${MAX_LINE_LENGTH} characters`
  let value: unknown
  try {
    value = JSON.parse(line)
  } catch {
    return 'not JSON'
  }
  const entries =
    typeof value === 'object' && value !== null && !Array.isArray(value) ? Object.entries(value) : []
  const [[name, said] = ['', undefined], second] = entries
  if (second !== undefined || name === '')
    return 'a line must be one of {"busy": true or false}, {"want": true}, {"allocate_mib": N}'
  if (name === 'busy') return typeof said === 'boolean' ? { busy: said } : 'busy: must be true or false'
  if (name === 'want') return said === true ? { want: true } : 'want: must be true'
  if (name !== 'allocate_mib')
    return `${JSON.stringify(name.slice(0, 40))}: unknown; use busy, want or allocate_mib`
  const isMib = typeof said === 'number' && Number.isSafeInteger(said) && said >= 1 && said <= MAX_VRAM_MIB
  return isMib ? { allocate_mib: said } : `allocate_mib: must be an integer from 1 to ${MAX_VRAM_MIB}`
}
