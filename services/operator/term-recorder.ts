/** The recording of each term, as that of a serving controller (docs/recording.md). */
import { recordInto } from '../controller/recording.ts'
import type { TermRecording } from './placement-parts.ts'

/** As by default of the standalone controller. */
const FILE_MIB = 16
const FILES = 16

export function termRecorder(dir: string, onNote: (line: string) => void): () => TermRecording {
  const noted = (line: string, reason: string): void => onNote(`${line}: ${reason}`)
  let current: { flushNow(): void } | null = null
  // Otherwise a crashing process would lose its last inputs.
  process.once('exit', () => current?.flushNow())
  return () => {
    const { files, tap } = recordInto({ dir, fileMib: FILE_MIB, files: FILES }, { warn: noted, error: noted })
    current = files
    return { tap, close: () => files.close() }
  }
}
