/** Reports of an agent to the operator, over HTTPS with certificates on both sides. */
import { readFileSync } from 'node:fs'
import { Agent, request } from 'node:https'
import { join } from 'node:path'
import { type AgentAnswer, type AgentReport, checkAgentAnswer } from '../../protocol/agent-messages.ts'
import { AGENT_PATH, MAX_AGENT_MESSAGE_BYTES } from './agent-server.ts'
import { textOf } from './answer-bytes.ts'

export interface AgentClientOptions {
  readonly host: string
  readonly port: number
  /** Folder with ca.crt, tls.crt and tls.key, which are read for each new connection. */
  readonly certificates: string
  /** File with the token of its ServiceAccount, which is read for each report. */
  readonly tokenFile: string
}

const TIMEOUT_MS = 15_000

export class AgentClient {
  readonly #options: AgentClientOptions
  #agent: Agent | null = null
  #identity = ''

  constructor(options: AgentClientOptions) {
    this.#options = options
  }

  /** Rejects when the operator does not answer, or not as it should, and at once when `signal` aborts. */
  async report(report: AgentReport, signal?: AbortSignal): Promise<AgentAnswer> {
    const text = await this.#post(JSON.stringify(report), signal)
    const answer: unknown = JSON.parse(text)
    const fault = checkAgentAnswer(answer)
    if (fault !== null) throw new Error(`the answer${fault}`)
    return answer as AgentAnswer
  }

  close(): void {
    this.#agent?.destroy()
    this.#agent = null
  }

  async #post(body: string, signal: AbortSignal | undefined): Promise<string> {
    const { host, port, tokenFile } = this.#options
    const headers = {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
      authorization: `Bearer ${readFileSync(tokenFile, 'utf8').trim()}`,
    }
    return new Promise((resolve, reject) => {
      const to = { host, port, path: AGENT_PATH, agent: this.#connections(), headers }
      const how = { method: 'POST', ...to, ...(signal === undefined ? {} : { signal }) }
      const sent = request(how, (answer) => {
        textOf(answer, MAX_AGENT_MESSAGE_BYTES).then((text) => {
          if (answer.statusCode === 200) resolve(text)
          else reject(new Error(`the operator answered ${answer.statusCode}: ${text.slice(0, 200)}`))
        }, reject)
      })
      sent.setTimeout(TIMEOUT_MS, () => sent.destroy(new Error('the operator does not answer')))
      sent.on('error', reject)
      sent.end(body)
    })
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
