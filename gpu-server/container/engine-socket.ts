/** Requests to a container engine over its Unix socket, bounded in time and in bytes. */
import { request } from 'node:http'

/** The engine cannot be reached, answers nonsense, or refuses; `status` is null unless it refused. */
export class EngineFault extends Error {
  override readonly name = 'EngineFault'
  readonly status: number | null

  constructor(message: string, status: number | null = null) {
    super(message)
    this.status = status
  }
}

export interface EngineRequest {
  readonly method: 'GET' | 'POST' | 'DELETE'
  /** Path with its query, already encoded. */
  readonly path: string
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
  /** Maximum time without a byte. */
  readonly idleMs: number
  readonly signal?: AbortSignal
  /** Receives the lines of an answer that is a stream; nothing of them is kept. */
  readonly onLine?: (line: string) => void
}

const MAX_ANSWER_BYTES = 4 * 1024 * 1024
const MAX_LINE_CHARACTERS = 64 * 1024
const MAX_MESSAGE_CHARACTERS = 300

/** Resolves with the answer's text; rejects with EngineFault. */
export function askEngine(socketPath: string, asked: EngineRequest): Promise<string> {
  return new Promise((resolve, reject) => {
    const body = asked.body === undefined ? null : JSON.stringify(asked.body)
    const call = request({
      socketPath,
      method: asked.method,
      path: asked.path,
      agent: false,
      headers: {
        Host: 'engine',
        ...asked.headers,
        ...(body === null
          ? {}
          : { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) }),
      },
      ...(asked.signal === undefined ? {} : { signal: asked.signal }),
    })
    const fail = (why: string): void => {
      reject(new EngineFault(`container engine ${socketPath}: ${why}`))
      call.destroy()
    }
    call.setTimeout(asked.idleMs, () => fail(`no answer within ${Math.ceil(asked.idleMs / 1000)} s`))
    call.on('error', (error) => fail(error.message))
    call.on('response', (answer) => {
      let text = ''
      answer.setEncoding('utf8')
      answer.on('data', (part: string) => {
        text += part
        if (asked.onLine !== undefined && answer.statusCode === 200) text = passLines(text, asked.onLine)
        if (text.length > MAX_ANSWER_BYTES) fail('its answer is too long')
      })
      answer.on('error', (error) => fail(error.message))
      answer.on('end', () => {
        const { statusCode = 0 } = answer
        if (statusCode >= 200 && statusCode < 400) resolve(text)
        else reject(new EngineFault(messageIn(text), statusCode))
      })
    })
    call.end(body ?? undefined)
  })
}

/** Returns the rest that is not a line yet; a line that is too long is cut. */
function passLines(text: string, onLine: (line: string) => void): string {
  const lines = text.split('\n')
  const rest = lines.pop() ?? ''
  for (const line of lines) if (line !== '') onLine(line.slice(0, MAX_LINE_CHARACTERS))
  return rest.slice(-MAX_LINE_CHARACTERS)
}

/** An engine says why in `message`; podman adds `cause`. On one line, because it is shown to users. */
function messageIn(text: string): string {
  let words = text
  try {
    const { message } = JSON.parse(text) as { readonly message?: unknown }
    if (typeof message === 'string') words = message
  } catch {
    // The text itself is the reason.
  }
  return words.replace(/\s+/g, ' ').trim().slice(0, MAX_MESSAGE_CHARACTERS) || 'it gave no reason'
}
