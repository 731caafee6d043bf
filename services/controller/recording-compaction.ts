/**
 * Replays the oldest file of a recording before it is dropped, and writes the controller's state at its end
 * as the checkpoint of the next file. The serving controller is not blocked, and what is kept has been
 * verified to replay.
 */
import { Worker } from 'node:worker_threads'
import { writeCheckpoint } from '../../controller/adapters/recording/checkpoint-file.ts'
import { newReadNotes, readOneFile } from '../../controller/adapters/recording/read-recording.ts'
import { Redecision } from '../../simulator/experiment/recording/redecide.ts'
import { workerUrl } from '../workers/worker-url.ts'

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
  if (checkpoint === null) throw new Error(`${first}: contains no start of a controller`)
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
