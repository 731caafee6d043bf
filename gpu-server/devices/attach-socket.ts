/**
 * The socket where a process registers itself for a lease: one line of JSON per request, which is checked and
 * answered with an error if it is not valid.
 */
import type { Socket } from 'node:net'
import type { SocketPeer } from '../guard/socket-peer.ts'
import { openLineSocket, type LineSocket } from './line-socket.ts'

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

/** A connection that sends nothing for so long is closed. */
const SILENT_MS = 10_000

/** Replaces what an earlier server left at that path. Rejects when it cannot be made. */
export function openAttachSocket(
  path: string,
  group: number | null,
  peerOf: (socket: Socket) => Promise<SocketPeer>,
  listener: AttachListener,
): Promise<LineSocket> {
  return openLineSocket({
    path,
    group,
    silentMs: SILENT_MS,
    accept: async (socket, send) => {
      const peer = await peerOf(socket)
      return (line) => send(answerTo(line, peer, listener))
    },
  })
}

function answerTo(line: string, peer: SocketPeer, listener: AttachListener): AttachAnswer {
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
