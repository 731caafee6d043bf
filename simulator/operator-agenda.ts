/**
 * What a scenario's operator does, each in its instant: after the completions of that instant, before its arrivals, ahead of the decisions.
 * Requests go through the real REST routes; who brings them there is an argument, because the simulator does not know the HTTP server.
 */
import { RANK_ARRIVAL } from '../controller/ports/clock.ts'
import type { Clock } from '../controller/ports/clock.ts'
import type { Instant } from '../protocol/units.ts'
import { nodeIdFromName } from '../protocol/node-id.ts'
import type { OperatorAction, OperatorMethod } from './scenario/scenario.ts'
import { formatDuration } from './scenario/quantity.ts'

/** Asks the controller over REST in virtual time. Time stands still until the answer is there. */
export interface OperatorDesk {
  /** @returns the status and the text of the answer. */
  ask(method: OperatorMethod, path: string, body: unknown): Promise<{ readonly status: number; readonly text: string }>
  close(): Promise<void>
}

const SHOWN_CHARACTERS = 300

export class OperatorAgenda {
  readonly #desk: OperatorDesk | null
  readonly #due: OperatorAction[] = []
  #left: number
  /** Answers that were not what the scenario expects, and what was never asked, in words. */
  readonly faults: string[] = []

  /** @param desk may be null when there is nothing to do. */
  constructor(actions: readonly OperatorAction[], desk: OperatorDesk | null, clock: Clock, startedAt: Instant) {
    if (actions.length > 0 && desk === null) throw new Error('a scenario with operator actions needs somebody who asks the REST interface')
    this.#desk = desk
    this.#left = actions.length
    for (const action of actions) clock.at(startedAt + action.atMs, () => this.#due.push(action), RANK_ARRIVAL)
  }

  /** An action's instant has come: `serve` before anything else happens. */
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
    await this.#desk?.close()
  }

  async #ask({ atMs, method, path, body, expect }: OperatorAction): Promise<void> {
    const { status, text } = await (this.#desk as OperatorDesk).ask(method, withNodeIds(path), body)
    if (expect === null || status === expect) return
    const answer = text.length > SHOWN_CHARACTERS ? `${text.slice(0, SHOWN_CHARACTERS)}…` : text
    this.faults.push(
      `operator at ${formatDuration(atMs)}: ${method.toUpperCase()} ${path} was answered ${status}, expected is ${expect}: ${answer}`,
    )
  }
}

/** `{node:a100-2}` stands for the id of that node. */
function withNodeIds(path: string): string {
  return path.replaceAll(/\{node:([^}]*)\}/g, (_, name: string) => nodeIdFromName(name))
}
