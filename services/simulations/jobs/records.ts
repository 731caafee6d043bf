/**
 * Ended simulations on disk: one folder each, with record.json and its results. They outlive the process; the
 * oldest are removed beyond the limits of number and size. A simulation that was running when the process
 * ended is loaded as failed.
 */
import { mkdir, readFile, readdir, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import {
  isOver,
  type RunChoices,
  type ScenarioFacts,
  type SimulationKind,
  type SimulationRecord,
  type SweptRunKey,
} from '../../../controller/ports/simulation.ts'
import { byCodeUnits, firstDifference } from '../../../controller/structures/order.ts'
import { sha256 } from '../../sweep/run-store.ts'
import { LIMITS } from '../library/limits.ts'

const RECORD = 'record.json'
/** The result of a simulation. */
export const REPORT = 'report.json'

/** Residency or time series of a run: one of a sweep, or the only one. */
export function runFile(what: 'residency' | 'series', run: SweptRunKey | null): string {
  if (run === null) return `${what}.json`
  const { overcommitPercent, seed, settings } = run
  const others = settings === '' ? '' : `-${sha256(settings)}`
  return `${what}-${overcommitPercent}-${seed}${others}.json`
}

/** Valid folder names: ids made here. */
const ID = /^[0-9a-f-]{36}$/

/**
 * 1. Newest first.
 * 2. Id.
 */
export const byAge = firstDifference<SimulationRecord>(
  (a, b) => b.createdAt - a.createdAt,
  (a, b) => byCodeUnits(a.id, b.id),
)

export class RecordStore {
  readonly #dir: string
  readonly #now: () => number
  readonly #bytes = new Map<string, number>()

  constructor(dir: string, now: () => number) {
    this.#dir = dir
    this.#now = now
  }

  /** Loads all records, newest first. Skips unreadable folders. */
  async load(): Promise<SimulationRecord[]> {
    await mkdir(this.#dir, { recursive: true })
    const found: SimulationRecord[] = []
    for (const id of await readdir(this.#dir)) {
      const record = ID.test(id) ? await this.#read(id) : null
      if (record !== null) found.push(record)
    }
    return found.sort(byAge)
  }

  async write(record: SimulationRecord): Promise<void> {
    await this.writeFile(record.id, RECORD, JSON.stringify(record))
  }

  /** Writes completely or not at all. */
  async writeFile(id: string, name: string, text: string): Promise<void> {
    const folder = join(this.#dir, id)
    await mkdir(folder, { recursive: true })
    const file = join(folder, name)
    await writeFile(`${file}.new`, text)
    await rename(`${file}.new`, file)
    this.#bytes.set(id, (this.#bytes.get(id) ?? 0) + text.length)
  }

  /** Null: no such file. */
  async readFile(id: string, name: string): Promise<string | null> {
    try {
      return await readFile(join(this.#dir, id, name), 'utf8')
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
      throw error
    }
  }

  async remove(id: string): Promise<void> {
    this.#bytes.delete(id)
    await rm(join(this.#dir, id), { recursive: true, force: true })
  }

  /** Returns the records to remove so that the others are within the limits. */
  overdue(records: readonly SimulationRecord[]): readonly string[] {
    const over = records.filter(({ state }) => isOver(state)).sort(byAge)
    let bytes = 0
    return over
      .filter(({ id }, index) => {
        bytes += this.#bytes.get(id) ?? 0
        return index >= LIMITS.kept || (bytes > LIMITS.keptBytes && index > 0)
      })
      .map(({ id }) => id)
  }

  async #read(id: string): Promise<SimulationRecord | null> {
    try {
      const record = JSON.parse(await readFile(join(this.#dir, id, RECORD), 'utf8')) as SimulationRecord
      this.#bytes.set(id, await sizeOf(join(this.#dir, id)))
      if (isOver(record.state)) return record
      const ended: SimulationRecord = {
        ...record,
        state: 'failed',
        endedAt: this.#now(),
        reason: INTERRUPTED,
        revision: record.revision + 1,
      }
      await this.write(ended)
      return ended
    } catch {
      return null
    }
  }
}

const INTERRUPTED = 'The controller restarted during the simulation.'

async function sizeOf(folder: string): Promise<number> {
  let bytes = 0
  for (const name of await readdir(folder)) bytes += (await stat(join(folder, name))).size
  return bytes
}

interface NewRecord {
  readonly id: string
  readonly kind: SimulationKind
  readonly facts: Pick<ScenarioFacts, 'name' | 'sha256'>
  readonly exercise?: string | null
  readonly choices: RunChoices
  readonly by: string | null
  readonly now: number
}

export function newRecord({
  id,
  kind,
  facts,
  choices,
  by,
  now,
  exercise = null,
}: NewRecord): SimulationRecord {
  return {
    id,
    kind,
    state: 'queued',
    revision: 1,
    scenario: facts.name,
    scenarioSha256: facts.sha256,
    exercise,
    choices,
    createdBy: by,
    createdAt: now,
    startedAt: null,
    endedAt: null,
    progress: 0,
    reason: null,
  }
}
