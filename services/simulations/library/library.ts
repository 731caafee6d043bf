/** Scenarios by name: those that are part of Headroom, and those that users have uploaded. */
import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { basename, dirname, join, relative } from 'node:path'
import { byCodeUnits } from '../../../controller/structures/order.ts'
import type {
  LibraryEntry,
  Outcome,
  ScenarioReference,
  Uploader,
} from '../../../controller/ports/simulation.ts'
import type { ScenarioSource } from '../../../simulator/scenario/load.ts'
import { LIMITS, refused, whyNotTheirs } from './limits.ts'
import type { UploadedFile, UploadQuota } from './upload-quota.ts'
import type { ScenarioReader } from './scenario-reader.ts'

const SUFFIX = '.scenario.yaml'
/** Suffix of the file that names the owner of an uploaded scenario. */
const FACTS = '.facts.json'
const TRACE = /\.trace\.jsonl(?:\.gz)?$/

export interface LibraryFolders {
  /** Part of Headroom; read only. */
  readonly shipped: string
  /** Uploaded scenarios. */
  readonly own: string
  /** Uploaded traces. */
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

  /** Sorted by name. */
  async list(): Promise<readonly LibraryEntry[]> {
    return (await this.#all()).map(({ file: _, ...entry }) => entry)
  }

  async get(name: string): Promise<(LibraryEntry & { readonly text: string }) | undefined> {
    const known = (await this.#all()).find((entry) => entry.name === name)
    if (known === undefined) return undefined
    const { file, ...entry } = known
    return { ...entry, text: await readFile(file, 'utf8') }
  }

  /**
   * Returns what a process needs to read it; undefined for an unknown name. A text may name no file except
   * the uploaded traces.
   */
  async sourceOf(scenario: ScenarioReference): Promise<ScenarioSource | undefined> {
    if ('text' in scenario) return this.#ofText(scenario.text)
    const known = (await this.#all()).find((entry) => entry.name === scenario.name)
    if (known === undefined) return undefined
    return known.isOwn ? this.#ofText(await readFile(known.file, 'utf8')) : known.file
  }

  /** Stores a valid text. */
  async put(name: string, text: string, by: Uploader, quota: UploadQuota): Promise<Outcome<null>> {
    const all = await this.#all()
    const known = all.find((entry) => entry.name === name)
    if (known !== undefined && !known.isOwn)
      return conflict(`The name ${name} is used by a scenario that is part of Headroom. Choose another name.`)
    if (known === undefined && all.filter(({ isOwn }) => isOwn).length >= LIMITS.ownScenarios) {
      return conflict(`The limit of ${LIMITS.ownScenarios} scenarios is reached. Delete one first.`)
    }
    const notTheirs = known === undefined ? null : whyNotTheirs(`The scenario ${name}`, known.createdBy, by)
    if (notTheirs !== null) return refused({ code: 'forbidden', detail: notTheirs })
    const { own } = this.#folders
    await mkdir(own, { recursive: true })
    const full =
      quota.whyNot(await quota.usageOf(by.name), Buffer.byteLength(text)) ?? (await quota.whyDiskIsShort())
    if (full !== null) return refused({ code: 'uploads_full', detail: full })
    // Replacing a scenario as an operator keeps its owner.
    const createdBy = known === undefined ? by.name : known.createdBy
    await this.#write(`${name}${FACTS}`, JSON.stringify({ createdBy }))
    await this.#write(`${name}${SUFFIX}`, text)
    return { ok: true, value: null }
  }

  /** Returns whether there was one. */
  async remove(name: string, by: Uploader): Promise<Outcome<boolean>> {
    const known = (await this.#all()).find((entry) => entry.name === name)
    if (known === undefined) return { ok: true, value: false }
    if (!known.isOwn) return conflict('The scenario is part of Headroom and cannot be deleted.')
    const notTheirs = whyNotTheirs(`The scenario ${name}`, known.createdBy, by)
    if (notTheirs !== null) return refused({ code: 'forbidden', detail: notTheirs })
    await rm(known.file, { force: true })
    await rm(join(this.#folders.own, `${name}${FACTS}`), { force: true })
    return { ok: true, value: true }
  }

  /** The uploaded scenarios. */
  async uploads(): Promise<readonly UploadedFile[]> {
    const own = await this.#read(this.#folders.own, true)
    return Promise.all(
      own.map(async ({ createdBy, file }) => ({
        owner: createdBy,
        bytes: await stat(file).then(
          ({ size }) => size,
          () => 0,
        ),
      })),
    )
  }

  async #write(name: string, text: string): Promise<void> {
    const file = join(this.#folders.own, name)
    await writeFile(`${file}.new`, text)
    await rename(`${file}.new`, file)
  }

  async #ofText(text: string): Promise<ScenarioSource> {
    return { text, baseDir: this.#folders.shipped, file: 'scenario', traces: await this.#traces() }
  }

  /** By the name in scenarios: `traces/NAME.trace.jsonl`. */
  async #traces(): Promise<Record<string, string>> {
    const found: Record<string, string> = {}
    for (const folder of [this.#folders.traces, join(this.#folders.shipped, 'traces')]) {
      for (const name of await namesIn(folder))
        if (TRACE.test(name)) found[`traces/${name}`] = join(folder, name)
    }
    return found
  }

  async #all(): Promise<readonly Known[]> {
    this.#shipped ??= this.#read(this.#folders.shipped, false)
    // After a failed read the next call tries again.
    const shipped = await this.#shipped.catch((error: unknown) => {
      this.#shipped = null
      throw error
    })
    const own = await this.#read(this.#folders.own, true)
    return [...shipped, ...own].sort((a, b) => byCodeUnits(a.name, b.name))
  }

  async #read(folder: string, isOwn: boolean): Promise<readonly Known[]> {
    const names = (await namesIn(folder)).filter((name) => name.endsWith(SUFFIX))
    const files = names.map((name) => ({
      file: join(folder, name),
      purpose: purposeOf(folder, join(folder, name)),
    }))
    if (files.length === 0) return []
    if (isOwn) return Promise.all(files.map(({ file }) => ownEntry(file)))
    const answer = await this.#reader.read({ kind: 'library', files })
    return answer?.kind === 'library'
      ? answer.entries.map((entry) => ({ ...entry, isOwn, createdBy: null }))
      : []
  }
}

async function ownEntry(file: string): Promise<Known> {
  const name = basename(file, SUFFIX)
  const createdBy = await ownerIn(join(dirname(file), `${name}${FACTS}`))
  // A scenario that is too large to run was never stored.
  return { name, description: null, purpose: 'own', tooLargeBecause: null, isOwn: true, createdBy, file }
}

/** Null for files stored before owners were recorded. */
async function ownerIn(file: string): Promise<string | null> {
  try {
    const { createdBy } = JSON.parse(await readFile(file, 'utf8')) as { readonly createdBy?: unknown }
    return typeof createdBy === 'string' ? createdBy : null
  } catch {
    return null
  }
}

function conflict(detail: string): Outcome<never> {
  return refused({ code: 'conflict', detail })
}

/** The folder of the library that contains it. */
function purposeOf(folder: string, file: string): string | null {
  const within = relative(folder, dirname(file))
  return within === '' ? null : within
}

/** All files below the folder, by relative path, sorted; none when the folder does not exist. */
async function namesIn(folder: string): Promise<readonly string[]> {
  try {
    const names = await readdir(folder, { recursive: true })
    return names.sort(byCodeUnits)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
}
