/** The recording of a serving controller: files in the folder of its store (docs/recording.md). */
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import type { Logger } from 'pino'
import { writeCheckpoint } from '../../controller/adapters/recording/checkpoint-file.ts'
import { RECORDING_FOLDER } from '../../controller/adapters/recording/format.ts'
import { newReadNotes, readOneFile } from '../../controller/adapters/recording/read-recording.ts'
import {
  createRecordingFiles,
  type RecordingFiles,
} from '../../controller/adapters/recording/write-recording.ts'
import { InputRecorder } from '../../controller/recording/input-recorder.ts'
import { Redecision } from '../../simulator/experiment/recording/redecide.ts'
import { packageVersion } from '../package-info.ts'
import type { Settings } from '../settings/settings.ts'
import { workerUrl } from '../workers/worker-url.ts'

const MIB_BYTES = 1_048_576

interface ServedRecording {
  readonly files: RecordingFiles
  readonly tap: InputRecorder
}

export interface RecordingPlace {
  readonly dir: string
  readonly fileMib: number
  /** The newest that are kept. */
  readonly files: number
}

/** Null: disabled. */
export function startRecording(
  { dataDir, recording }: Pick<Settings, 'dataDir' | 'recording'>,
  log: Logger,
): ServedRecording | null {
  if (recording === null) return null
  const dir = join(dataDir, RECORDING_FOLDER)
  const served = recordInto(
    { dir, ...recording },
    {
      warn: (line, reason) => log.warn({ dir, reason }, line),
      error: (line, reason) => log.error({ dir, reason }, line),
    },
  )
  // Otherwise a crashing process would lose its last inputs.
  process.once('exit', () => served.files.flushNow())
  return served
}

interface RecordingLogger {
  warn(line: string, reason: string): void
  error(line: string, reason: string): void
}

/** Of one start of a controller. */
export function recordInto(
  { dir, fileMib, files: maxFiles }: RecordingPlace,
  log: RecordingLogger,
): ServedRecording {
  const files = createRecordingFiles({
    ...{ dir, maxFiles, fileBytes: Math.ceil(fileMib * MIB_BYTES) },
    version: packageVersion(),
    now: Date.now,
    fold: compactInThread,
    onHeadless: (reason) =>
      log.warn('the beginning of this recording is lost, so it cannot be replayed', reason),
    onStopped: (reason) => log.error('recording has stopped; the controller continues', reason),
  })
  const onNested = (): void =>
    log.error('broken invariant: this recording cannot be replayed', 'an input arrived during another')
  return { files, tap: new InputRecorder(files, packageVersion(), onNested) }
}

/**
 * Replays the oldest file of a recording before it is dropped, and writes the controller's state at its end
 * as the checkpoint of the next file. The serving controller is not blocked, and what is kept has been
 * verified to replay.
 */

/**
 * Durable when it resolves.
 * @throws for a file that cannot be read, or that this version decides differently
 */
export async function compactRecording(first: string, next: string): Promise<void> {
  const redecision = new Redecision()
  for (const entry of readOneFile(first, newReadNotes())) {
    await redecision.next(entry)
    const { difference } = redecision
    if (difference === null) continue
    throw new Error(
      `${first}: input ${difference.input} is decided differently than recorded; headroom sim redecide ` +
        'shows how',
    )
  }
  const checkpoint = redecision.checkpoint()
  if (checkpoint === null) throw new Error(`${first}: does not contain the start of a controller`)
  await writeCheckpoint(next, checkpoint)
}

/** Does the same in its own low-priority thread. An abort of the signal ends it without a change. */
export function compactInThread(first: string, next: string, signal: AbortSignal): Promise<void> {
  return new Promise((done, failed) => {
    const worker = new Worker(workerUrl('controller/recording-worker'), { workerData: { first, next } })
    const end = (): void => void worker.terminate()
    signal.addEventListener('abort', end, { once: true })
    if (signal.aborted) end()
    worker.once('message', () => done())
    worker.once('error', failed)
    worker.once('exit', (code) => {
      signal.removeEventListener('abort', end)
      failed(new Error(`the thread that writes a checkpoint ended with code ${code}`))
    })
  })
}
