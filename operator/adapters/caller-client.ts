/** JSON to the operator over HTTPS, with certificates on both sides. */
import { readFileSync } from 'node:fs'
import { Agent, request } from 'node:https'
import { join } from 'node:path'
import type { DurationMs } from '../../protocol/units.ts'
import { textOf } from './answer-bytes.ts'

export interface CallerClientOptions {
  readonly host: string
  readonly port: number
  /** Folder with ca.crt, tls.crt and tls.key, which are read for each new connection. */
  readonly certificates: string
}

export interface Call {
  readonly path: string
  readonly body: object
  /** Header Authorization; absent: none. */
  readonly token?: string
  /** For the whole call. */
  readonly timeoutMs: DurationMs
  readonly maxAnswerBytes: number
  readonly signal?: AbortSignal
}

export class CallerClient {
  readonly #options: CallerClientOptions
  #agent: Agent | null = null
  #identity = ''

  constructor(options: CallerClientOptions) {
    this.#options = options
  }

  /** Rejects when the operator does not answer, or refuses, and at once when `signal` aborts. */
  async post({ path, body, token, timeoutMs, maxAnswerBytes, signal }: Call): Promise<unknown> {
    const { host, port } = this.#options
    const text = JSON.stringify(body)
    const headers = {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(text),
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    }
    // Of a socket it would begin only once there is a connection.
    const tooLate = AbortSignal.timeout(timeoutMs)
    const answered = await new Promise<string>((resolve, reject) => {
      const to = { host, port, path, agent: this.#connections(), headers }
      const ends = { signal: AbortSignal.any(signal === undefined ? [tooLate] : [tooLate, signal]) }
      const sent = request({ method: 'POST', ...to, ...ends }, (answer) => {
        textOf(answer, maxAnswerBytes).then((answerText) => {
          if (answer.statusCode === 200) resolve(answerText)
          else reject(new Error(`the operator answered ${answer.statusCode}: ${answerText.slice(0, 200)}`))
        }, reject)
      })
      sent.on('error', reject)
      sent.end(text)
    }).catch((error: unknown) => {
      throw tooLate.aborted ? new Error('the operator does not answer') : error
    })
    return JSON.parse(answered)
  }

  close(): void {
    this.#agent?.destroy()
    this.#agent = null
  }

  /** New certificates get a new connection. */
  #connections(): Agent {
    const read = (name: string): string => readFileSync(join(this.#options.certificates, name), 'utf8')
    const [ca, cert, key] = [read('ca.crt'), read('tls.crt'), read('tls.key')]
    const identity = ca + cert + key
    if (this.#agent === null || identity !== this.#identity) {
      this.#agent?.destroy()
      this.#agent = new Agent({ keepAlive: true, maxSockets: 1, minVersion: 'TLSv1.2', ca, cert, key })
      this.#identity = identity
    }
    return this.#agent
  }
}
