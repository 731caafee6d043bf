/** The agents of all nodes, by the names of the nodes. */
import type { Instant } from '../../protocol/units.ts'
import { AgentLink } from './agent-link.ts'

export class AgentLinks {
  readonly #now: () => Instant
  readonly #links = new Map<string, AgentLink>()

  constructor(now: () => Instant) {
    this.#now = now
  }

  of(nodeName: string): AgentLink {
    const known = this.#links.get(nodeName)
    if (known !== undefined) return known
    const link = new AgentLink(this.#now)
    this.#links.set(nodeName, link)
    return link
  }

  /** Another operator may give orders from now on: reports and orders of before no longer hold. */
  clear(): void {
    this.#links.clear()
  }

  /** The node has been deleted. */
  forget(nodeName: string): void {
    this.#links.delete(nodeName)
  }
}
