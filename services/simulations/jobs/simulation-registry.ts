/** The known simulations, each in its latest state, and the clients that wait for changes. */
import type { DurationMs } from '../../../protocol/units.ts'
import { isOver, type SimulationRecord } from '../../../controller/ports/simulation.ts'
import { byAge, type RecordStore } from './records.ts'

/** Minimum interval between progress reports of a simulation. */
const PROGRESS_INTERVAL_MS = 200

export type Change = Partial<Omit<SimulationRecord, 'id' | 'revision'>>

export class SimulationRegistry {
  readonly #records = new Map<string, SimulationRecord>()
  readonly #store: RecordStore
  readonly #now: () => number
  readonly #onFault: (error: unknown) => void
  readonly #waiting = new Map<string, Set<() => void>>()
  readonly #notifiedAt = new Map<string, number>()
  /** Orders the writes of a record. */
  #lastWrite: Promise<void> = Promise.resolve()

  constructor(store: RecordStore, now: () => number, onFault: (error: unknown) => void) {
    this.#store = store
    this.#now = now
    this.#onFault = onFault
  }

  async load(): Promise<void> {
    for (const record of await this.#store.load()) this.#records.set(record.id, record)
    this.#dropOverdue()
  }

  list(): readonly SimulationRecord[] {
    return [...this.#records.values()].sort(byAge)
  }

  get(id: string): SimulationRecord | undefined {
    return this.#records.get(id)
  }

  count(which: (record: SimulationRecord) => boolean): number {
    let count = 0
    for (const record of this.#records.values()) if (which(record)) count += 1
    return count
  }

  add(record: SimulationRecord): void {
    this.#records.set(record.id, record)
    this.#keep(record.id)
  }

  /** Returns the changed record; undefined when it is missing, or the simulation has ended. */
  change(id: string, change: Change): SimulationRecord | undefined {
    const before = this.#records.get(id)
    if (before === undefined || isOver(before.state)) return undefined
    const after = { ...before, ...change, revision: before.revision + 1 }
    this.#records.set(id, after)
    this.#keep(id)
    this.#notify(id)
    if (isOver(after.state)) this.#dropOverdue()
    return after
  }

  /** Reported from time to time, but not stored. */
  progressed(id: string, fraction: number): void {
    const record = this.#records.get(id)
    const now = this.#now()
    if (
      record === undefined ||
      isOver(record.state) ||
      now - (this.#notifiedAt.get(id) ?? 0) < PROGRESS_INTERVAL_MS
    )
      return
    this.#notifiedAt.set(id, now)
    this.#records.set(id, {
      ...record,
      progress: Math.max(record.progress, fraction),
      revision: record.revision + 1,
    })
    this.#notify(id)
  }

  /** For a session: its current position, which may be before the previous one. */
  advanced(id: string, fraction: number): void {
    const record = this.#records.get(id)
    if (record === undefined || isOver(record.state)) return
    this.#records.set(id, { ...record, progress: fraction, revision: record.revision + 1 })
    this.#notify(id)
  }

  async remove(id: string): Promise<void> {
    this.#records.delete(id)
    this.#notify(id)
    await this.#inOrder(() => this.#store.remove(id))
  }

  changed(id: string, revision: number, withinMs: DurationMs): Promise<void> {
    if ((this.#records.get(id)?.revision ?? Infinity) > revision) return Promise.resolve()
    return new Promise((resolve) => {
      const waiting = this.#waiting.get(id) ?? new Set()
      this.#waiting.set(id, waiting)
      const done = (): void => {
        clearTimeout(timer)
        waiting.delete(done)
        resolve()
      }
      const timer = setTimeout(done, withinMs)
      waiting.add(done)
    })
  }

  /** Resolves when all writes are done. */
  async settled(): Promise<void> {
    await this.#lastWrite
  }

  /** Ends all waits. */
  close(): void {
    for (const id of this.#waiting.keys()) this.#notify(id)
  }

  #notify(id: string): void {
    for (const done of this.#waiting.get(id) ?? []) done()
    this.#waiting.delete(id)
  }

  #keep(id: string): void {
    void this.#inOrder(async () => {
      const record = this.#records.get(id)
      if (record !== undefined) await this.#store.write(record)
    })
  }

  #dropOverdue(): void {
    for (const id of this.#store.overdue(this.list())) {
      this.#records.delete(id)
      void this.#inOrder(() => this.#store.remove(id))
    }
  }

  #inOrder(write: () => Promise<void>): Promise<void> {
    this.#lastWrite = this.#lastWrite.then(write).catch(this.#onFault)
    return this.#lastWrite
  }
}
