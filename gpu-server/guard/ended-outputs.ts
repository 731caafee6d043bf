import { readdir, rm, stat } from 'node:fs/promises'
import { segmentsIn } from './guard-output.ts'
import { isForgotten, markForgotten, readExit, readTask, removeFolder } from './guard-folder.ts'
import { removeTree } from './remove-tree.ts'

/** Limits for the output of ended tasks whose records are no longer needed. */
export interface OutputLimits {
  readonly maxTasks: number
  readonly maxBytes: number
}

interface Kept {
  readonly folder: string
  readonly bytes: number
}

/**
 * The folders of forgotten attempts, oldest first, within the limits; one operation at a time. Files that a
 * task left in its work folder are removed with its output.
 */
export class EndedOutputs {
  readonly #limits: OutputLimits
  #kept: Kept[] = []
  #work: Promise<void> = Promise.resolve()

  constructor(limits: OutputLimits) {
    this.#limits = limits
  }

  /** Adds the folders that an earlier process forgot, by the time of their end. */
  async adopt(folders: readonly string[]): Promise<void> {
    const found = await Promise.all(
      folders.map(async (folder) => ({
        folder,
        bytes: await bytesIn(folder),
        at: (await stat(`${folder}/exit`)).mtimeMs,
      })),
    )
    this.#kept = found.toSorted((a, b) => a.at - b.at || (a.folder < b.folder ? -1 : 1))
    await this.#trim()
  }

  /** Rejects after a disk error, in every later call too. */
  add(folder: string): Promise<void> {
    this.#work = this.#work.then(async () => {
      await markForgotten(folder)
      this.#kept.push({ folder, bytes: await bytesIn(folder) })
      await this.#trim()
    })
    return this.#work
  }

  async #trim(): Promise<void> {
    let bytes = this.#kept.reduce((sum, kept) => sum + kept.bytes, 0)
    while (
      this.#kept.length > this.#limits.maxTasks ||
      (bytes > this.#limits.maxBytes && this.#kept.length > 1)
    ) {
      const oldest = this.#kept.shift()!
      bytes -= oldest.bytes
      const place = (await readTask(oldest.folder))?.place
      if (place !== undefined) await removeTree(place.folder)
      await removeFolder(oldest.folder)
    }
    const [last] = this.#kept
    if (last !== undefined && bytes > this.#limits.maxBytes)
      this.#kept = [
        {
          folder: last.folder,
          bytes: bytes - (await dropOldestOutput(last.folder, bytes - this.#limits.maxBytes)),
        },
      ]
  }
}

/**
 * Removes whole segments, oldest offsets first, until at least `excessBytes` are gone or no output is left.
 * @returns bytes removed
 */
async function dropOldestOutput(folder: string, excessBytes: number): Promise<number> {
  let removed = 0
  const segments = [...(await segmentsIn(folder, 'stdout')), ...(await segmentsIn(folder, 'stderr'))]
  for (const { path } of segments.toSorted((a, b) => a.start - b.start || (a.path < b.path ? -1 : 1))) {
    if (removed >= excessBytes) break
    removed += (await stat(path)).size
    await rm(path)
  }
  return removed
}

/** Checks both, because a folder is forgotten only when its end is known. */
export async function isEndedAndForgotten(folder: string): Promise<boolean> {
  return (await isForgotten(folder)) && (await readExit(folder)) !== null
}

async function bytesIn(folder: string): Promise<number> {
  const names = await readdir(folder)
  const sizes = await Promise.all(names.map(async (name) => (await stat(`${folder}/${name}`)).size))
  return sizes.reduce((sum, size) => sum + size, 0)
}
