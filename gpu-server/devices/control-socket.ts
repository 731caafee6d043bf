/**
 * The control socket of a task (HEADROOM_SOCKET). A process that may open it sends lines of JSON: the task is
 * busy or idle, work waits for the task, or the task wants more memory. A process that moves its data out of
 * VRAM itself registers for orders, and answers them. Each line is checked, and answered with an error if it
 * is not valid.
 */
import type { Socket } from 'node:net'
import type { Mib } from '../../protocol/units.ts'
import { MAX_VRAM_MIB } from '../../protocol/limits.ts'
import type { HookOrder } from '../core/swap-steps.ts'
import { openLineSocket, type LineSocket, type ReceiveLine, type SendLine } from './line-socket.ts'

/** Receives checked messages. */
export interface ControlListener {
  /** The task works on its GPU, or became idle. */
  busy(isBusy: boolean): void
  /** Work waits for the task: sent by the task, or by a router while the task is stopped. */
  wanted(): void
  /** The task wants to use this total per GPU; call `answer` once it is decided. */
  allocate(mib: Mib, answer: (isGranted: boolean) => void): void
  /** This connection takes the orders of its swap hooks, until `left`. */
  swaps(send: SendLine): void
  left(send: SendLine): void
  /** An order of its hooks is carried out. Null: it does not say what stays in VRAM. */
  hookDone(send: SendLine, order: HookOrder, residentMib: Mib | null): void
}

/** Maximum unanswered allocations of one connection. */
const MAX_WAITING = 8

type ControlMessage =
  | { readonly busy: boolean }
  | { readonly want: true }
  | { readonly allocate_mib: Mib }
  | { readonly swaps: true }
  | { readonly suspended: { readonly resident_mib?: Mib } }
  | { readonly resumed: true }

/** @param group whose members, the processes of the attempt, may connect as well; null: no group */
export function openControlSocket(
  path: string,
  group: number | null,
  listener: ControlListener,
  chown: (path: string, uid: number, gid: number) => void,
): Promise<LineSocket> {
  const accept = (connection: Socket, send: SendLine): ReceiveLine => {
    connection.once('close', () => listener.left(send))
    return receiverOf(listener, send)
  }
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
    else if ('swaps' in message) listener.swaps(send)
    else if ('suspended' in message)
      listener.hookDone(send, 'suspend', message.suspended.resident_mib ?? null)
    else if ('resumed' in message) listener.hookDone(send, 'resume', null)
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
  const parser = second === undefined ? PARSERS[name] : undefined
  if (parser !== undefined) return parser(said)
  if (second !== undefined || name === '') return `a line must be one of ${EXAMPLES}`
  return `${JSON.stringify(name.slice(0, 40))}: unknown; use one of ${Object.keys(PARSERS).join(', ')}`
}

const EXAMPLES =
  '{"busy": true or false}, {"want": true}, {"allocate_mib": N}, {"swaps": true}, ' +
  '{"suspended": {"resident_mib": N}}, {"resumed": true}'

const PARSERS: Readonly<Record<string, (said: unknown) => ControlMessage | string>> = {
  busy: (said) => (typeof said === 'boolean' ? { busy: said } : 'busy: must be true or false'),
  want: (said) => (said === true ? { want: true } : 'want: must be true'),
  allocate_mib: (said) =>
    isMib(said, 1) ? { allocate_mib: said } : `allocate_mib: must be an integer from 1 to ${MAX_VRAM_MIB}`,
  swaps: (said) => (said === true ? { swaps: true } : 'swaps: must be true'),
  suspended: suspendedIn,
  resumed: (said) => (said === true ? { resumed: true } : 'resumed: must be true'),
}

function suspendedIn(said: unknown): ControlMessage | string {
  const { resident_mib } = (typeof said === 'object' && said !== null ? said : {}) as Record<string, unknown>
  if (resident_mib === undefined) return { suspended: {} }
  if (isMib(resident_mib, 0)) return { suspended: { resident_mib } }
  return `suspended.resident_mib: must be an integer from 0 to ${MAX_VRAM_MIB}`
}

function isMib(said: unknown, least: number): said is Mib {
  return typeof said === 'number' && Number.isSafeInteger(said) && said >= least && said <= MAX_VRAM_MIB
}
