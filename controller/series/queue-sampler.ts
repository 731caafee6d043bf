/** Reads the waiting tasks of the cluster and of each group, and sums the nodes of a group. */
import type { Instant } from '../../protocol/units.ts'
import type { Views } from '../query/views.ts'
import { COLUMN, COLUMNS } from './columns.ts'
import type { SeriesTable } from './table.ts'

export class QueueSampler {
  readonly #views: Views
  readonly #table: SeriesTable
  readonly #groups = new Map<string, { readonly index: number; queueUs: number }>()
  readonly #row = new Float64Array(COLUMNS)
  #queueUs: number | null = null

  /** @param table of the groups */
  constructor(views: Views, table: SeriesTable) {
    this.#views = views
    this.#table = table
  }

  /** Queue time of the cluster since the last reading. */
  get sinceReadUs(): number {
    return this.#queueUs === null ? 0 : this.#views.waits().queueUs - this.#queueUs
  }

  /** Call before the nodes are read: adds new groups and removes deleted ones. */
  admit(slotAt: Instant): void {
    for (const name of this.#groups.keys()) {
      if (this.#views.group(name) !== undefined) continue
      this.#groups.delete(name)
      this.#table.forget(name)
    }
    for (const { id } of this.#views.groups()) {
      if (this.#groups.has(id)) continue
      const index = this.#table.admit(id, slotAt)
      if (index !== null) this.#groups.set(id, { index, queueUs: this.#views.waits(id).queueUs })
    }
  }

  /** Call for each node of these groups. */
  addNode(groups: readonly string[], row: Float64Array): void {
    for (const name of groups) {
      const seen = this.#groups.get(name)
      if (seen !== undefined) this.#table.add(seen.index, row)
    }
  }

  /** Call after the nodes: writes the waiting tasks into the row of the cluster and those of the groups. */
  read(clusterRow: Float64Array): void {
    const { tasks, queueUs } = this.#views.waits()
    clusterRow[COLUMN.waiting] = tasks
    clusterRow[COLUMN.pending] = this.#views.pendingCount()
    clusterRow[COLUMN.queue] = this.sinceReadUs / 1000
    const isFirst = this.#queueUs === null
    this.#queueUs = queueUs
    if (this.#groups.size === 0) return
    const pending = this.#pendingByGroup()
    for (const [name, seen] of this.#groups) {
      const row = this.#row.fill(0)
      const wait = this.#views.waits(name)
      row[COLUMN.waiting] = wait.tasks
      row[COLUMN.pending] = pending.get(name) ?? 0
      if (!isFirst) row[COLUMN.queue] = (wait.queueUs - seen.queueUs) / 1000
      seen.queueUs = wait.queueUs
      this.#table.add(seen.index, row)
      this.#countOnce(seen.index)
    }
  }

  /** A group is read once, however many nodes it has. */
  #countOnce(index: number): void {
    const { values, capacity } = this.#table
    const vramReadings = COLUMN.vramReadings * capacity + index
    values[COLUMN.readings * capacity + index] = 1
    values[vramReadings] = Math.min(1, values[vramReadings] as number)
  }

  #pendingByGroup(): ReadonlyMap<string, number> {
    const byGroup = new Map<string, number>()
    for (const { state, spec } of this.#views.openTasks()) {
      if (state !== 'pending') continue
      for (const group of spec.groups) byGroup.set(group, (byGroup.get(group) ?? 0) + 1)
    }
    return byGroup
  }
}
