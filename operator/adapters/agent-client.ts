/** Reports of an agent to the operator. */
import { readFileSync } from 'node:fs'
import { type AgentAnswer, type AgentReport, checkAgentAnswer } from '../../protocol/agent-messages.ts'
import { AGENT_PATH, MAX_AGENT_MESSAGE_BYTES } from './agent-server.ts'
import { CallerClient, type CallerClientOptions } from './caller-client.ts'

export interface AgentClientOptions extends CallerClientOptions {
  /** File with the token of its ServiceAccount, which is read for each report. */
  readonly tokenFile: string
}

const TIMEOUT_MS = 15_000

export class AgentClient {
  readonly #tokenFile: string
  readonly #client: CallerClient

  constructor({ tokenFile, ...options }: AgentClientOptions) {
    this.#tokenFile = tokenFile
    this.#client = new CallerClient(options)
  }

  /** Rejects when the operator does not answer, or not as it should, and at once when `signal` aborts. */
  async report(report: AgentReport, signal?: AbortSignal): Promise<AgentAnswer> {
    const answer = await this.#client.post({
      ...{ path: AGENT_PATH, body: report, token: readFileSync(this.#tokenFile, 'utf8').trim() },
      ...{ timeoutMs: TIMEOUT_MS, maxAnswerBytes: MAX_AGENT_MESSAGE_BYTES },
      ...(signal === undefined ? {} : { signal }),
    })
    const fault = checkAgentAnswer(answer)
    if (fault !== null) throw new Error(`the answer${fault}`)
    return answer as AgentAnswer
  }

  close(): void {
    this.#client.close()
  }
}
