/**
 * Reduces a failing document while it fails in the same way: removes entries of its lists by delta debugging
 * (Zeller, Hildebrandt: Simplifying and Isolating Failure-Inducing Input, IEEE TSE 28(2), 2002), then
 * settings and fields, then halves times and sizes. The same document and results give the same reduction;
 * the number of tries is bounded.
 */
import type { Entry, FuzzDocument, ListName, Value } from './document.ts'
import { LISTS } from './document.ts'

export interface Shrunk {
  readonly document: FuzzDocument
  readonly tries: number
}

/** @param fails returns whether the document still fails in the same way; false for an invalid document */
export async function shrink(
  document: FuzzDocument,
  fails: (one: FuzzDocument) => Promise<boolean>,
  maxTries: number,
): Promise<Shrunk> {
  const search = new Search(document, fails, maxTries)
  for (let size = Infinity; sizeOf(search.best) < size && !search.isOver;) {
    size = sizeOf(search.best)
    for (const list of LISTS) await search.dropEntries(list)
    await search.dropSettings()
    for (const list of LISTS) await search.dropFields(list)
    for (const list of LISTS) await search.halveFigures(list)
  }
  return { document: search.best, tries: search.tries }
}

function sizeOf(document: FuzzDocument): number {
  return JSON.stringify(document).length
}

class Search {
  best: FuzzDocument
  tries = 0
  readonly #fails: (one: FuzzDocument) => Promise<boolean>
  readonly #maxTries: number

  constructor(document: FuzzDocument, fails: (one: FuzzDocument) => Promise<boolean>, maxTries: number) {
    this.best = document
    this.#fails = fails
    this.#maxTries = maxTries
  }

  get isOver(): boolean {
    return this.tries >= this.#maxTries
  }

  /** Removes chunks, from halves down to single entries. */
  async dropEntries(list: ListName): Promise<void> {
    for (
      let chunk = Math.ceil(this.best[list].length / 2);
      chunk >= 1;
      chunk = chunk === 1 ? 0 : Math.ceil(chunk / 2)
    ) {
      for (let from = 0; from < this.best[list].length;) {
        const kept = this.best[list].filter((_, index) => index < from || index >= from + chunk)
        if (!(await this.#take(withoutStrays({ ...this.best, [list]: kept })))) from += chunk
      }
    }
  }

  async dropSettings(): Promise<void> {
    for (const key of Object.keys(this.best.config))
      await this.#take({ ...this.best, config: without(this.best.config, key) })
  }

  async dropFields(list: ListName): Promise<void> {
    for (let index = 0; index < this.best[list].length; index++) {
      for (const path of fieldPaths(this.best[list][index] as Entry)) {
        await this.#replace(list, index, (entry) => without(entry, path[0], path[1]))
      }
    }
  }

  async halveFigures(list: ListName): Promise<void> {
    for (let index = 0; index < this.best[list].length; index++) {
      for (const path of figurePaths(this.best[list][index] as Entry)) {
        while (await this.#replace(list, index, (entry) => halved(entry, path)));
      }
    }
  }

  async #replace(list: ListName, index: number, change: (entry: Entry) => Entry): Promise<boolean> {
    const entries = [...this.best[list]]
    const before = entries[index] as Entry
    entries[index] = change(before)
    return (
      JSON.stringify(entries[index]) !== JSON.stringify(before) &&
      (await this.#take({ ...this.best, [list]: entries }))
    )
  }

  async #take(document: FuzzDocument): Promise<boolean> {
    if (this.isOver || sizeOf(document) > sizeOf(this.best)) return false
    this.tries += 1
    if (!(await this.#fails(document))) return false
    this.best = document
    return true
  }
}

/** References to a removed node are removed too. */
function withoutStrays(document: FuzzDocument): FuzzDocument {
  const names = new Set(document.fleet.map(({ name }) => name))
  const isStray = (entry: Entry): boolean =>
    nodesNamedIn(JSON.stringify(entry)).some((name) => !names.has(name))
  return {
    ...document,
    operator: document.operator.filter((entry) => !isStray(entry)),
    faults: document.faults.filter((entry) => !isStray(entry)),
  }
}

/** Drawn nodes are named n0, n1, …; no other text in an action or a fault has this form. */
function nodesNamedIn(text: string): string[] {
  return [...text.matchAll(/(?<=["{:])n\d+(?=["}])/g)].map(([name]) => name)
}

type FieldPath = readonly [key: string] | readonly [key: string, inner: string]

/**
 * Fields of an entry and of the map inside it; the checker says which are required. Of an action with an
 * expected answer, only the instant may change: another request or expectation would fail for another reason.
 */
function fieldPaths(entry: Entry): FieldPath[] {
  const isJudged = (entry['expect'] ?? null) !== null || 'answer' in entry
  return Object.entries(entry).flatMap(([key, value]): FieldPath[] => {
    if (isJudged && key !== 'at') return []
    return [[key], ...(isMap(value) ? Object.keys(value).map((inner) => [key, inner] as const) : [])]
  })
}

function figurePaths(entry: Entry): FieldPath[] {
  return fieldPaths(entry).filter((path) => {
    const value = valueAt(entry, path)
    return (typeof value === 'number' && value > 1) || (typeof value === 'string' && /^\d+ms$/.test(value))
  })
}

function valueAt(entry: Entry, [key, inner]: FieldPath): Value | undefined {
  const value = entry[key]
  return inner === undefined || !isMap(value) ? value : value[inner]
}

function halved(entry: Entry, path: FieldPath): Entry {
  const value = valueAt(entry, path)
  const half =
    typeof value === 'number'
      ? Math.floor(value / 2)
      : `${Math.floor(Number(String(value).replace('ms', '')) / 2)}ms`
  return withValue(entry, path, half)
}

function withValue(entry: Entry, [key, inner]: FieldPath, value: Value): Entry {
  const outer = entry[key]
  return { ...entry, [key]: inner === undefined || !isMap(outer) ? value : { ...outer, [inner]: value } }
}

function without(entry: Entry, key: string, inner?: string): Entry {
  const { [key]: value, ...rest } = entry
  return inner === undefined || !isMap(value) ? rest : { ...entry, [key]: without(value, inner) }
}

function isMap(value: Value | undefined): value is Entry {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
