/**
 * Performs the actions of a scenario's operator at their instants: after the completions of that instant,
 * before its arrivals and the decisions. Requests use the real REST routes; the client is an argument,
 * because the simulator does not know the HTTP server.
 */
import { RANK_ARRIVAL } from '../../controller/ports/clock.ts'
import type { Clock } from '../../controller/ports/clock.ts'
import type { Instant } from '../../protocol/units.ts'
import { nodeIdFromName } from '../../protocol/node-id.ts'
import { missingIn } from './answer-check.ts'
import { withIds } from '../scenario/placeholders.ts'
import type { Placeholder } from '../scenario/placeholders.ts'
import type { OperatorAction, OperatorMethod } from '../scenario/scenario.ts'
import { formatDuration } from '../document/quantity.ts'

/** Sends a request to the controller over REST in virtual time. Time stops until the answer arrives. */
export interface OperatorClient {
  /** @returns the status and the text of the answer */
  ask(
    method: OperatorMethod,
    path: string,
    body: unknown,
    headers?: Readonly<Record<string, string>>,
  ): Promise<OperatorAnswer>
  close(): Promise<void>
}

export interface OperatorAnswer {
  readonly status: number
  readonly text: string
}

const SHOWN_CHARACTERS = 300
/** HTTP: 4xx and 5xx. */
const LEAST_REFUSED = 400

export class OperatorAgenda {
  readonly #client: OperatorClient | null
  readonly #due: OperatorAction[] = []
  /** Ids of tasks that actions have named. */
  readonly #taskIds = new Map<string, string>()
  readonly #nodeIdOf: (name: string) => string
  #left: number
  /** Descriptions of unexpected answers, and of requests that were not sent. */
  readonly faults: string[] = []

  /** @param client may be null without actions */
  constructor(
    actions: readonly OperatorAction[],
    client: OperatorClient | null,
    clock: Clock,
    startedAt: Instant,
    nodeIdOf = nodeIdFromName,
  ) {
    if (actions.length > 0 && client === null)
      throw new Error('a scenario with operator actions needs a client of the REST API')
    this.#client = client
    this.#nodeIdOf = nodeIdOf
    this.#left = actions.length
    for (const action of actions)
      clock.at(startedAt + action.atMs, () => this.#due.push(action), RANK_ARRIVAL)
  }

  /** The instant of an action has come: call `serve` before anything else. */
  get isDue(): boolean {
    return this.#due.length > 0
  }

  get isOver(): boolean {
    return this.#left === 0
  }

  async serve(): Promise<void> {
    for (let action = this.#due.shift(); action !== undefined; action = this.#due.shift()) {
      this.#left -= 1
      await this.#ask(action)
    }
  }

  /** The run is over. */
  async close(): Promise<void> {
    if (this.#left > 0) this.faults.push(`operator: the run ended before ${this.#left} of its actions`)
    await this.#client?.close()
  }

  async #ask(action: OperatorAction): Promise<void> {
    const { atMs, method, path, body, headers } = action
    const client = this.#client as OperatorClient
    const answered = await client.ask(
      method,
      String(withIds(path, this.#idOf)),
      withIds(body, this.#idOf),
      headers,
    )
    const problem = problemOf(
      { ...action, ...(action.answer === undefined ? {} : { answer: withIds(action.answer, this.#idOf) }) },
      answered,
    )
    if (action.as !== undefined) this.#name(action.as, answered)
    if (problem === null) return
    const { text } = answered
    const answer = text.length > SHOWN_CHARACTERS ? `${text.slice(0, SHOWN_CHARACTERS)}…` : text
    this.faults.push(
      `operator at ${formatDuration(atMs)}: ${method.toUpperCase()} ${path} was answered ` +
        `${answered.status}, ${problem}: ${answer}`,
    )
  }

  /** A task that was not created has no id; a request for it is answered with 404. */
  #name(name: string, { text }: OperatorAnswer): void {
    const id = (jsonOf(text) as { readonly id?: unknown } | null)?.id
    if (typeof id === 'string') this.#taskIds.set(name, id)
  }

  readonly #idOf = ({ kind, name }: Placeholder): string =>
    kind === 'node' ? this.#nodeIdOf(name) : (this.#taskIds.get(name) ?? `no-task-${name}`)
}

/** Describes an unexpected part after the status; null: none. */
function problemOf({ expect, answer }: OperatorAction, answered: OperatorAnswer): string | null {
  if (expect === 'accepted' && answered.status >= LEAST_REFUSED)
    return 'which is a refusal (`expect` allows one)'
  if (typeof expect === 'number' && answered.status !== expect) return `expected is ${expect}`
  return answer === undefined ? null : missingIn(jsonOf(answered.text), answer)
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
