/** Scenarios by name: those that come with Headroom, and those that people have stored here. */
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { basename, dirname, join, relative } from 'node:path'
import { byCodeUnits } from '../../controller/domain/order.ts'
import type { LibraryEntry, ScenarioReference } from '../../controller/ports/simulation.ts'
import type { ScenarioSource } from '../../simulator/scenario/load.ts'
import { LIMITS } from './limits.ts'
import type { ScenarioReader } from './scenario-reader.ts'

const SUFFIX = '.scenario.yaml'
const TRACE = /\.trace\.jsonl(?:\.gz)?$/

export interface LibraryFolders {
  /** Comes with Headroom; nothing is written there. */
  readonly shipped: string
  /** People's own scenarios. */
  readonly own: string
  /** Traces that people have sent. */
  readonly traces: string
}

interface Known extends LibraryEntry {
  readonly file: string
}

export class ScenarioLibrary {
  readonly #folders: LibraryFolders
  readonly #reader: ScenarioReader
  #shipped: Promise<readonly Known[]> | null = null

  constructor(folders: LibraryFolders, reader: ScenarioReader) {
    this.#folders = folders
    this.#reader = reader
  }

  /** In order of their names. */
  async list(): Promise<readonly LibraryEntry[]> {
    return (await this.#all()).map(({ name, description, purpose, isOwn }) => ({ name, description, purpose, isOwn }))
  }

  async get(name: string): Promise<(LibraryEntry & { readonly text: string }) | undefined> {
    const known = (await this.#all()).find((entry) => entry.name === name)
    if (known === undefined) return undefined
    const { description, purpose, isOwn, file } = known
    return { name, description, purpose, isOwn, text: await readFile(file, 'utf8') }
  }

  /** What a process is given to read it; undefined for a name that is not known. A text may name no file but the traces that are here. */
  async sourceOf(scenario: ScenarioReference): Promise<ScenarioSource | undefined> {
    if ('text' in scenario) return this.#ofText(scenario.text)
    const known = (await this.#all()).find((entry) => entry.name === scenario.name)
    if (known === undefined) return undefined
    return known.isOwn ? this.#ofText(await readFile(known.file, 'utf8')) : known.file
  }

  /** Keeps a text that was found right. Answers why not, or null. */
  async put(name: string, text: string): Promise<string | null> {
    const all = await this.#all()
    const isOwn = (entry: Known): boolean => entry.isOwn
    if (all.some((entry) => !isOwn(entry) && entry.name === name)) return `A scenario that comes with Headroom is called ${name}.`
    const isNew = !all.some((entry) => isOwn(entry) && entry.name === name)
    if (isNew && all.filter(isOwn).length >= LIMITS.ownScenarios) return `${LIMITS.ownScenarios} scenarios are kept already; delete one.`
    await mkdir(this.#folders.own, { recursive: true })
    const file = join(this.#folders.own, `${name}${SUFFIX}`)
    await writeFile(`${file}.new`, text)
    await rename(`${file}.new`, file)
    return null
  }

  /** Undefined: there is none. False: it comes with Headroom and stays. */
  async remove(name: string): Promise<boolean | undefined> {
    const known = (await this.#all()).find((entry) => entry.name === name)
    if (known === undefined) return undefined
    if (known.isOwn) await rm(known.file, { force: true })
    return known.isOwn
  }

  async #ofText(text: string): Promise<ScenarioSource> {
    return { text, baseDir: this.#folders.shipped, file: 'scenario', traces: await this.#traces() }
  }

  /** By the name that a scenario calls them: `traces/NAME.trace.jsonl`. */
  async #traces(): Promise<Record<string, string>> {
    const found: Record<string, string> = {}
    for (const folder of [this.#folders.traces, join(this.#folders.shipped, 'traces')]) {
      for (const name of await namesIn(folder)) if (TRACE.test(name)) found[`traces/${name}`] = join(folder, name)
    }
    return found
  }

  async #all(): Promise<readonly Known[]> {
    this.#shipped ??= this.#read(this.#folders.shipped, false)
    // Once it could not be read, the next one tries again.
    const shipped = await this.#shipped.catch((error: unknown) => {
      this.#shipped = null
      throw error
    })
    const own = await this.#read(this.#folders.own, true)
    return [...shipped, ...own].sort((a, b) => byCodeUnits(a.name, b.name))
  }

  async #read(folder: string, isOwn: boolean): Promise<readonly Known[]> {
    const names = (await namesIn(folder)).filter((name) => name.endsWith(SUFFIX))
    const files = names.map((name) => ({ file: join(folder, name), purpose: purposeOf(folder, join(folder, name)) }))
    if (files.length === 0) return []
    if (isOwn) return files.map(({ file }) => ({ name: basename(file, SUFFIX), description: null, purpose: 'own', isOwn, file }))
    const answer = await this.#reader.read({ kind: 'library', files })
    return answer?.kind === 'library' ? answer.entries.map((entry) => ({ ...entry, isOwn })) : []
  }
}

/** The folder below the library that it stands in. */
function purposeOf(folder: string, file: string): string | null {
  const within = relative(folder, dirname(file))
  return within === '' ? null : within
}

/** All files below the folder, by their paths from there, in order; none where there is no such folder. */
async function namesIn(folder: string): Promise<readonly string[]> {
  try {
    const names = await readdir(folder, { recursive: true })
    return names.sort(byCodeUnits)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
}
