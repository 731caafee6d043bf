/** Reads recordings: the files of a folder in order, or one file and its successors. */
import { existsSync, readdirSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import type { Checkpoint, RecordedEntry } from '../../ports/recording-log.ts'
import { readCheckpoint } from './checkpoint-file.ts'
import { chainStart, checkpointName, FILE_NAME } from './format.ts'
import type { FileHeader } from './format.ts'
import { headerOf, readBlocks, type BlockEnd, type ReadNotes } from './read-file.ts'
import { RecordingError } from './recording-fault.ts'

export { newReadNotes, type ReadNotes } from './read-file.ts'

/**
 * The entries of a recording, from its first controller start or checkpoint on: `path` is a folder of files,
 * or one file and its successors in the same run. A torn end is omitted and noted. @throws RecordingError for
 * a path without a recording, and at the first damaged byte
 */
export function* readRecording(path: string, notes: ReadNotes): Generator<RecordedEntry | Checkpoint> {
  let previous: { readonly header: FileHeader; readonly hash: string; readonly isTorn: boolean } | null = null
  let hasBegun = false
  let leftOut: string | null = null
  for (const file of filesOf(path, notes)) {
    const header = headerOf(file)
    const follows: boolean =
      previous !== null && header.run === previous.header.run && header.part === previous.header.part + 1
    if (!follows) {
      const checkpoint = header.part === 0 ? null : readCheckpoint(file)
      hasBegun = header.part === 0 || checkpoint !== null
      if (checkpoint !== null) {
        notes.notes.push(
          `${file} begins in the middle of a run: it continues from its checkpoint of ` +
            `${new Date(checkpoint.at).toISOString()}`,
        )
        yield checkpoint
      } else if (!hasBegun && header.run !== leftOut) {
        notes.notes.push(`${file} begins in the middle of a run whose first file is missing: it is ignored`)
      }
      if (!hasBegun) leftOut = header.run
    } else if (previous !== null && previous.hash !== header.previous) {
      throw new RecordingError(
        `${file}: it does not continue where the previous file ` +
          `ends${previous.isTorn ? ', which is truncated' : ''}`,
      )
    }
    if (!hasBegun && !follows) {
      previous = null
      continue
    }
    const end: BlockEnd = yield* readBlocks(file, chainStart(header), notes)
    previous = { header, ...end }
    notes.files += 1
    if (header.gap !== null)
      notes.notes.push(`${file}: recording stopped at ${header.gap.at}: ${header.gap.reason}`)
  }
  if (notes.files === 0)
    throw new RecordingError(
      `${path}: no file of it begins with the start of a controller, or with a checkpoint`,
    )
}

/** One recording file, and its checkpoint if it is not the first of its run. */
export function* readOneFile(file: string, notes: ReadNotes): Generator<RecordedEntry | Checkpoint> {
  const header = headerOf(file)
  const checkpoint = header.part === 0 ? null : readCheckpoint(file)
  if (header.part > 0 && checkpoint === null)
    throw new RecordingError(`${file}: it begins in the middle of a run, without a checkpoint`)
  if (checkpoint !== null) yield checkpoint
  const { isTorn } = yield* readBlocks(file, chainStart(header), notes)
  if (isTorn) throw new RecordingError(`${file}: the file is truncated`)
}

function filesOf(path: string, notes: ReadNotes): readonly string[] {
  const folder = isFolder(path) ? path : dirname(path)
  const names = readdirSync(folder)
    .filter((name) => FILE_NAME.test(name))
    .sort((a, b) => (a < b ? -1 : 1))
    .map((name) => join(folder, name))
    .filter((file) => statSync(file).size > 0)
  if (folder === path) {
    if (names.length === 0) throw new RecordingError(`${path}: contains no file of a recording`)
    return names
  }
  if (!FILE_NAME.test(basename(path))) return [path]
  const { run } = headerOf(path)
  const ofRun = names.filter((name) => headerOf(name).run === run)
  const given = ofRun.findIndex((name) => basename(name) === basename(path))
  // Without a checkpoint the inputs since the start are needed.
  const from = ofRun
    .slice(0, given + 1)
    .findLastIndex((name) => headerOf(name).part === 0 || existsSync(checkpointName(name)))
  if (from >= 0 && from < given)
    notes.notes.push(
      `${path} begins in the middle of a run: what is before it, from ${ofRun[from]} on, comes first`,
    )
  return ofRun.slice(from >= 0 ? from : given)
}

function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory()
  } catch {
    throw new RecordingError(`${path}: no such file or folder`)
  }
}
