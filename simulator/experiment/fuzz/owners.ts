/**
 * The entries of node queues that have VRAM reserved. A reservation may begin without an event, as for a
 * collector, so it is checked after every step of the clock, not only after events.
 */
import type { EntryReading } from '../../../controller/query/cluster-reading.ts'
import type { World } from '../../world/world.ts'

/** The difference between the current and the last reservations. */
export interface OwnersNow {
  /** Ids of tasks that had VRAM reserved. */
  readonly before: ReadonlySet<string>
  /** Entries with a new reservation, except collectors, which follow their own order. */
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
