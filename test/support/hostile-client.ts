/** Sends hostile requests over real sockets, several at once, and counts the responses. */
import { Agent, request as httpRequest, type IncomingMessage } from 'node:http'
import type { HostileRequest } from './hostile-requests.ts'

export interface HostileTally {
  /** Number of responses by status; 0 means that the connection was closed without one. */
  readonly statuses: Map<number, number>
  /** 5xx responses, and errors that are not problem documents. At most 20 are kept. */
  readonly faults: string[]
}

const AT_ONCE = 16
const MAX_FAULTS = 20
/** Some routes may wait for half a minute on request. */
const ANSWER_WITHIN_MS = 40_000

/** @param token sent with every request; without it nearly all would be refused at once. */
export async function sendHostile(
  url: string,
  token: string,
  count: number,
  next: () => HostileRequest,
  isAllowed: (status: number, code: string) => boolean,
) {
  const tally: HostileTally = { statuses: new Map(), faults: [] }
  const agent = new Agent({ keepAlive: true, maxSockets: AT_ONCE })
  let left = count
  const sendOn = async (): Promise<void> => {
    while (left-- > 0) {
      const sent = next()
      const { status, text } = await answerTo(url, token, agent, sent)
      tally.statuses.set(status, (tally.statuses.get(status) ?? 0) + 1)
      const fault = faultOf(status, text, sent, isAllowed)
      if (fault !== null && tally.faults.length < MAX_FAULTS) tally.faults.push(fault)
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, sendOn))
  agent.destroy()
  return tally
}

function faultOf(
  status: number,
  text: string,
  sent: HostileRequest,
  isAllowed: (status: number, code: string) => boolean,
): string | null {
  if (status < 400 || sent.method === 'HEAD') return null
  const code = /"code":"(\w+)"/.exec(text)?.[1] ?? ''
  if (code !== '' && (status < 500 || isAllowed(status, code))) return null
  const body = sent.body === null ? '' : ` ${sent.body.toString().slice(0, 300)}`
  return (
    `${status} to ${sent.method} ${sent.path.slice(0, 300)} (${sent.spoilt.join(', ')})${body}: ` +
    `${text.slice(0, 300)}`
  )
}

function answerTo(
  url: string,
  token: string,
  agent: Agent,
  sent: HostileRequest,
): Promise<{ readonly status: number; readonly text: string }> {
  return new Promise((resolve) => {
    const gone = (): void => resolve({ status: 0, text: '' })
    try {
      const { hostname, port } = new URL(url)
      const asked = httpRequest({
        hostname,
        port,
        agent,
        method: sent.method,
        path: sent.path,
        headers: { authorization: `Bearer ${token}`, ...lengthened(sent) },
        setHost: sent.headers['host'] === undefined,
      })
      asked.setTimeout(ANSWER_WITHIN_MS, () => asked.destroy(new Error('no answer in time')))
      asked.once(
        'response',
        (answer) => void read(answer).then((text) => resolve({ status: answer.statusCode ?? 0, text })),
      )
      asked.once('error', gone)
      asked.end(sent.body ?? undefined)
    } catch {
      // Node's client refuses to send it.
      gone()
    }
  })
}

function lengthened({ headers, body }: HostileRequest): Record<string, string> {
  return body === null || headers['transfer-encoding'] !== undefined
    ? headers
    : { ...headers, 'content-length': String(body.length) }
}

/** The response, or its beginning if it does not end. */
function read(answer: IncomingMessage): Promise<string> {
  return new Promise((resolve) => {
    let text = ''
    const done = (): void => resolve(text)
    if (answer.headers['content-type']?.startsWith('text/event-stream') === true) {
      answer.destroy()
      return done()
    }
    answer.on('data', (chunk: Buffer) => {
      if (text.length < 2_000) text += chunk.toString()
    })
    answer.once('end', done)
    answer.once('close', done)
    answer.once('error', done)
  })
}
