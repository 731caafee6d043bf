/**
 * The control socket of a task (HEADROOM_SOCKET). A process that may open it sends lines of JSON: the task is
 * busy or idle, work waits for the task, or the task wants more memory. Each is checked, and answered with an
 * error if it is not valid.
 */
import type { Mib } from '../../protocol/units.ts'
import { MAX_VRAM_MIB } from '../../protocol/limits.ts'
import { openLineSocket, type LineSocket, type ReceiveLine, type SendLine } from './line-socket.ts'

/** Receives checked messages. */
export interface ControlListener {
  /** The task works on its GPU, or became idle. */
  busy(isBusy: boolean): void
  /** Work waits for the task: sent by the task, or by a router while the task is stopped. */
  wanted(): void
  /** The task wants to use this total per GPU; call `answer` once it is decided. */
  allocate(mib: Mib, answer: (isGranted: boolean) => void): void
}

/** Maximum unanswered allocations of one connection. */
const MAX_WAITING = 8

type ControlMessage = { readonly busy: boolean } | { readonly want: true } | { readonly allocate_mib: Mib }

/** @param group whose members, the processes of the attempt, may connect as well; null: no group */
export function openControlSocket(
  path: string,
  group: number | null,
  listener: ControlListener,
  chown: (path: string, uid: number, gid: number) => void,
): Promise<LineSocket> {
  const accept = (_socket: unknown, send: SendLine): ReceiveLine => receiverOf(listener, send)
  return openLineSocket({ path, group, chown, silentMs: null, accept })
}

function receiverOf(listener: ControlListener, send: SendLine): ReceiveLine {
  let waiting = 0
  return (line) => {
    if (line.trim() === '') return
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
}

/** Returns an error text for an invalid line. */
function parse(line: string): ControlMessage | string {
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
