/**
 * Forwards one HTTP request. Each has a connection of its own to the task: what one client leaves on a
 * connection cannot become part of the answer to another.
 */
import {
  request as httpRequest,
  type ClientRequest,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http'
import { pipeline } from 'node:stream'
import type { Admitted } from './admission.ts'
import type { Calls, Failure, OpenCall } from './calls.ts'
import { headersForClient, headersForTask } from './gateway-headers.ts'
import { answerRefused, refusalOf } from './refusal-answer.ts'
import { PROVEN_AFTER_MS, type Replica } from './replica.ts'
import { RequestBody } from './request-body.ts'

/** A connection to a proxy is made at once, or its node is gone. */
const CONNECT_MS = 5_000
/** The kernel looks whether a silent task still lives. */
const PROBE_MS = 15_000

export async function forwardRequest(
  request: IncomingMessage,
  response: ServerResponse,
  { endpoint, tokenId, path }: Admitted,
  calls: Calls,
): Promise<void> {
  let sent: ClientRequest | null = null
  const fail = (failure: Failure | 'full' | 'unreachable' | 'broken'): void => {
    sent?.destroy()
    if (failure === 'full' || failure === 'late') calls.figures.refused(endpoint, failure)
    if (failure === 'unreachable' || failure === 'broken') calls.figures.failed(endpoint, failure)
    if (response.headersSent) response.destroy()
    else answerRefused(response, refusalOf(failure, calls.holdSeconds))
    call?.end()
  }
  const call = calls.begin(endpoint, tokenId, fail)
  if (call === null) return fail('full')
  const body = new RequestBody(request, endpoint.kept)
  response.once('close', () => {
    sent?.destroy()
    body.release()
    call.end()
  })
  for (;;) {
    const next = await call.nextReplica()
    if (next === null) return
    const { replica, address } = next
    sent = httpRequest({
      ...{ ...address, path, method: request.method, agent: false, setHost: false },
      headers: headersForTask(request.rawHeaders),
    } as never)
    const outcome = await answerOf(sent, replica, body)
    if (call.isOver) return
    if (typeof outcome === 'object') return passAnswer(outcome, response, call, body, fail)
    body.stop()
    if (outcome === 'broken') return fail('broken')
    replica.rest()
    if (!body.isWhole) return fail('unreachable')
    call.giveBack()
  }
}

/** `refused`: the task has got nothing of it; `broken`: it may have. */
type Outcome = IncomingMessage | 'refused' | 'broken'

function answerOf(sent: ClientRequest, replica: Replica, body: RequestBody): Promise<Outcome> {
  return new Promise((resolve) => {
    let isConnected = false
    const proven = whenConnected(sent, replica, () => (isConnected = true))
    const settle = (outcome: Outcome): void => {
      clearTimeout(proven.timer)
      resolve(outcome)
    }
    sent.on('error', () => settle(isConnected ? 'broken' : 'refused'))
    sent.once('close', () => settle('broken'))
    sent.once('response', (answer) => {
      if (isNotListening(answer)) {
        sent.destroy()
        return settle('refused')
      }
      replica.isProven = true
      settle(answer)
    })
    body.sendTo(sent)
  })
}

/** The proxy of the task says that nothing listens on its port. */
export function isNotListening({ statusCode, headers }: IncomingMessage): boolean {
  return statusCode === 503 && headers['headroom-refusal'] === 'not-listening'
}

/** Limits the time of connecting; a connection that stays is one to the task. */
export function whenConnected(
  sent: ClientRequest,
  replica: Replica,
  onConnected: () => void,
): { timer: NodeJS.Timeout } {
  const state = { timer: setTimeout(() => sent.destroy(new Error('no connection')), CONNECT_MS) }
  sent.once('socket', (socket) => {
    socket.once('connect', () => {
      onConnected()
      clearTimeout(state.timer)
      state.timer = setTimeout(() => (replica.isProven = true), PROVEN_AFTER_MS)
      socket.setKeepAlive(true, PROBE_MS)
      socket.setNoDelay(true)
    })
  })
  return state
}

function passAnswer(
  answer: IncomingMessage,
  response: ServerResponse,
  call: OpenCall,
  body: RequestBody,
  fail: (why: 'broken') => void,
): void {
  body.release()
  call.answered(answer.statusCode ?? 502)
  try {
    response.writeHead(answer.statusCode ?? 502, answer.statusMessage, headersForClient(answer.rawHeaders))
    response.flushHeaders()
  } catch {
    return fail('broken')
  }
  answer.once('error', () => {
    if (!call.isOver) fail('broken')
  })
  pipeline(answer, response, () => call.end())
}
