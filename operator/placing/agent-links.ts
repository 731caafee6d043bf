/** The agents of all nodes, by the names of the nodes. */
import type { Clock } from '../../controller/ports/clock.ts'
import { AgentLink } from './agent-link.ts'

export class AgentLinks {
  readonly #clock: Clock
  readonly #links = new Map<string, AgentLink>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  of(nodeName: string): AgentLink {
    const known = this.#links.get(nodeName)
    if (known !== undefined) return known
    const link = new AgentLink(this.#clock)
    this.#links.set(nodeName, link)
    return link
  }

  /** Another operator may give orders from now on: reports and orders of before no longer hold. */
  clear(): void {
    for (const link of this.#links.values()) link.wake()
    this.#links.clear()
  }

  /** The node has been deleted. */
  forget(nodeName: string): void {
    this.#links.delete(nodeName)
  }
}
