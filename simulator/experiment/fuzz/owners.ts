/**
 * The entries of nodes' queues that have VRAM reserved. A reservation may begin without an event, as that of
 * a collector does: it is looked for after every step of the clock, and not only when events are heard.
 */
import type { EntryReading } from '../../../controller/query/cluster-reading.ts'
import type { World } from '../../world/world.ts'

/** How the reservations differ from those at the look before. */
export interface OwnersNow {
  /** Ids of tasks that had VRAM reserved. */
  readonly before: ReadonlySet<string>
  /** Entries that have begun to, collectors left out: they have an order of their own. */
  readonly begun: readonly EntryReading[]
}

export class Owners {
  readonly #world: World
  #ids: ReadonlySet<string> = new Set()

  constructor(world: World) {
    this.#world = world
  }

  look(): OwnersNow {
    const before = this.#ids
    const ids = new Set<string>()
    const begun: EntryReading[] = []
    for (const { queue } of this.#world.controller.cluster.nodes.values())
      for (const entry of queue) {
        const { id } = entry.task.spec
        if (!entry.hasReserved) continue
        ids.add(id)
        if (!entry.isCollector && !before.has(id)) begun.push(entry)
      }
    this.#ids = ids
    return { before, begun }
  }
}
