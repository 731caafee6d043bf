/**
 * User and group ids of attempts: one per attempt, never shared, and the id that was free longest comes
 * first.
 */
import { readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import type { IdRange } from './task-identity.ts'

export class IdPool {
  readonly #range: IdRange
  readonly #nextFile: string
  readonly #idsInUse: () => ReadonlySet<number>
  readonly #taken = new Map<string, number>()
  #next: number

  /**
   * @param nextFile stores the next id across restarts, so that an id is reused late and files that an
   * attempt left elsewhere keep a foreign owner
   * @param idsInUse user ids of living processes, which are never assigned
   */
  constructor(range: IdRange, nextFile: string, idsInUse: () => ReadonlySet<number> = userIdsOfProcesses) {
    this.#range = range
    this.#nextFile = nextFile
    this.#idsInUse = idsInUse
    this.#next = readNext(nextFile, range)
  }

  /** Assigns an id to this attempt; null when all are taken. */
  take(key: string): number | null {
    const { from, to } = this.#range
    const inUse = new Set([...this.#idsInUse(), ...this.#taken.values()])
    for (let looked = from; looked <= to; looked++) {
      const id = this.#next
      this.#next = id === to ? from : id + 1
      if (inUse.has(id)) continue
      this.#taken.set(key, id)
      remember(this.#nextFile, this.#next)
      return id
    }
    return null
  }

  /** Keeps the id of an attempt of an earlier server process. */
  adopt(key: string, id: number): void {
    this.#taken.set(key, id)
  }

  /** The attempt has no process left. */
  release(key: string): void {
    this.#taken.delete(key)
  }
}

function readNext(file: string, { from, to }: IdRange): number {
  try {
    const next = Number(readFileSync(file, 'utf8'))
    return Number.isSafeInteger(next) && next >= from && next <= to ? next : from
  } catch {
    return from
  }
}

/** Only a hint: a pool without it begins at the start of its range. */
function remember(file: string, next: number): void {
  try {
    writeFileSync(file, `${next}\n`, { mode: 0o600 })
  } catch {
    // The next launch reports a failing disk.
  }
}

function userIdsOfProcesses(): ReadonlySet<number> {
  const ids = new Set<number>()
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue
    const about = statSync(`/proc/${name}`, { throwIfNoEntry: false })
    if (about !== undefined) ids.add(about.uid)
  }
  return ids
}
