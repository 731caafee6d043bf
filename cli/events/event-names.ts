/** Names of the tasks and nodes that events mention; events have ids only. */
import type { Event, HeadroomClient } from '../../clients/typescript/client.ts'

/** Lookups of one command; what comes later keeps its id. */
const MAX_LOOKUPS = 400
/** Requests at the same time. */
const AT_ONCE = 10

export class EventNames {
  readonly #client: HeadroomClient
  readonly #names = new Map<string, string>()
  #lookups = 0

  constructor(client: HeadroomClient) {
    this.#client = client
  }

  /** Looks up what these events mention. A task or node that cannot be read keeps its id. */
  async learn(events: readonly Event[]): Promise<void> {
    const wanted = new Map<string, () => Promise<{ readonly name: string }>>()
    for (const { task_id: task, node_id: node } of events) {
      if (task !== null) wanted.set(task, () => this.#client.tasks.get(task))
      if (node !== null) wanted.set(node, () => this.#client.nodes.get(node))
    }
    const missing = [...wanted].filter(([id]) => !this.#names.has(id)).slice(0, MAX_LOOKUPS - this.#lookups)
    this.#lookups += missing.length
    for (let at = 0; at < missing.length; at += AT_ONCE)
      await Promise.all(
        missing.slice(at, at + AT_ONCE).map(async ([id, read]) => {
          const { name } = await read().catch(() => ({ name: id }))
          this.#names.set(id, name)
        }),
      )
  }

  /** Returns the name of a task or a node; null if it has none. */
  of(id: string | null): string | null {
    return id === null ? null : (this.#names.get(id) ?? id)
  }
}
