/** The recording of a serving controller: files in the folder of its store (docs/recording.md). */
import { join } from 'node:path'
import type { Logger } from 'pino'
import { RECORDING_FOLDER } from '../../controller/adapters/recording/format.ts'
import {
  createRecordingFiles,
  type RecordingFiles,
} from '../../controller/adapters/recording/write-recording.ts'
import { InputRecorder } from '../../controller/recording/input-recorder.ts'
import { compactInThread } from './recording-compaction.ts'
import { packageVersion } from '../package-info.ts'
import type { Settings } from '../settings/settings.ts'

const MIB_BYTES = 1_048_576

export interface ServedRecording {
  readonly files: RecordingFiles
  readonly tap: InputRecorder
}

/** Null: disabled. */
export function startRecording(
  { dataDir, recording }: Pick<Settings, 'dataDir' | 'recording'>,
  log: Logger,
): ServedRecording | null {
  if (recording === null) return null
  const dir = join(dataDir, RECORDING_FOLDER)
  const files = createRecordingFiles({
    dir,
    fileBytes: Math.ceil(recording.fileMib * MIB_BYTES),
    maxFiles: recording.files,
    version: packageVersion(),
    now: Date.now,
    fold: compactInThread,
    onHeadless: (reason) =>
      log.warn({ dir, reason }, 'the beginning of this recording is lost, so it cannot be replayed'),
    onStopped: (reason) => log.error({ dir, reason }, 'recording has stopped; the controller goes on'),
  })
  // Otherwise a crashing process would lose its last inputs.
  process.once('exit', () => files.flushNow())
  const onNested = (): void =>
    log.error('broken invariant: an input arrived during another; this recording cannot be replayed')
  return { files, tap: new InputRecorder(files, packageVersion(), onNested) }
}
