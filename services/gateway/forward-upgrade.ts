/** Forwards a WebSocket: after the handshake, bytes in both directions. */
import { request as httpRequest, STATUS_CODES, type ClientRequest, type IncomingMessage } from 'node:http'
import { pipeline, type Duplex } from 'node:stream'
import type { Admitted } from './admission.ts'
import type { Calls, Failure, OpenCall } from './calls.ts'
import { isNotListening, whenConnected } from './forward-request.ts'
import { headersForClient, headersForTask } from './gateway-headers.ts'
import { answerRefusedUpgrade, refusalOf } from './refusal-answer.ts'
import type { Replica } from './replica.ts'

/** Any other protocol could carry requests past the gateway. */
export function isWebSocket({ method, headers }: IncomingMessage): boolean {
  return method === 'GET' && headers.upgrade?.toLowerCase() === 'websocket' && !hasBody(headers)
}

function hasBody(headers: IncomingMessage['headers']): boolean {
  return headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0'
}

export async function forwardUpgrade(
  request: IncomingMessage,
  client: Duplex,
  head: Buffer,
  { endpoint, tokenId, path }: Admitted,
  calls: Calls,
): Promise<void> {
  let sent: ClientRequest | null = null
  const fail = (failure: Failure | 'full' | 'broken'): void => {
    sent?.destroy()
    if (failure === 'full' || failure === 'late') calls.figures.refused(endpoint, failure)
    if (failure === 'broken') calls.figures.failed(endpoint, failure)
    if (call?.isAnswered === true) client.destroy()
    else answerRefusedUpgrade(client, refusalOf(failure, calls.holdSeconds))
    call?.end()
  }
  const call = calls.begin(endpoint, tokenId, fail)
  if (call === null) return fail('full')
  client.once('close', () => {
    sent?.destroy()
    call.end()
  })
  for (;;) {
    const next = await call.nextReplica()
    if (next === null) return
    const { replica, address } = next
    const fields = ['Connection', 'Upgrade', 'Upgrade', 'websocket']
    sent = httpRequest({
      ...{ ...address, path, method: 'GET', agent: false, setHost: false },
      headers: [...headersForTask(request.rawHeaders), ...fields],
    } as never)
    const outcome = await handshakeOf(sent, replica)
    if (call.isOver) return
    if (outcome === 'broken') return fail('broken')
    if (outcome !== 'refused') return connect(outcome, client, head, call)
    replica.rest()
    call.giveBack()
  }
}

interface Handshake {
  readonly answer: IncomingMessage
  /** Null: the task has refused the upgrade. */
  readonly task: Duplex | null
  readonly head: Buffer
}

const NOTHING = Buffer.alloc(0)

function handshakeOf(sent: ClientRequest, replica: Replica): Promise<Handshake | 'refused' | 'broken'> {
  return new Promise((resolve) => {
    let isConnected = false
    const proven = whenConnected(sent, replica, () => (isConnected = true))
    const settle = (outcome: Handshake | 'refused' | 'broken'): void => {
      clearTimeout(proven.timer)
      resolve(outcome)
    }
    sent.on('error', () => settle(isConnected ? 'broken' : 'refused'))
    sent.once('close', () => settle('broken'))
    sent.once('upgrade', (answer, task, head) => {
      replica.isProven = true
      settle({ answer, task, head })
    })
    sent.once('response', (answer) => {
      if (!isNotListening(answer)) return settle({ answer, task: null, head: NOTHING })
      sent.destroy()
      settle('refused')
    })
    sent.end()
  })
}

function connect({ answer, task, head }: Handshake, client: Duplex, early: Buffer, call: OpenCall): void {
  const status = answer.statusCode ?? 502
  call.answered(status)
  const fields = headersForClient(answer.rawHeaders)
  fields.push('Connection', task === null ? 'close' : 'Upgrade')
  if (task !== null) fields.push('Upgrade', 'websocket')
  client.write(headText(status, fields))
  const end = (): void => call.end()
  // Without an upgrade its body ends with the connection, whatever length it states.
  if (task === null) return void pipeline(answer, client, end)
  if (head.length > 0) client.write(head)
  if (early.length > 0) task.write(early)
  pipeline(task, client, task, end)
}

function headText(status: number, fields: readonly string[]): string {
  let text = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n`
  for (let i = 0; i + 1 < fields.length; i += 2) text += `${fields[i]}: ${fields[i + 1]}\r\n`
  return `${text}\r\n`
}
