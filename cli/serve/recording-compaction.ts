/**
 * The oldest file of a recording is decided again before it makes room, and what the controller remembered at
 * its end is written down: the checkpoint of the next file. So the controller that serves does not stand
 * still for it, and what is kept is known to be decidable.
 */
import { Worker } from 'node:worker_threads'
import { writeCheckpoint } from '../../controller/adapters/recording/checkpoint-file.ts'
import { newReadNotes, readOneFile } from '../../controller/adapters/recording/read-recording.ts'
import { Redecision } from '../../simulator/recording/redecide.ts'
import { workerUrl } from '../workers/worker-url.ts'

/**
 * Durable when it resolves. @throws for a file that cannot be read, or that this version decides otherwise.
 */
export async function compactRecording(first: string, next: string): Promise<void> {
  const redecision = new Redecision()
  for (const entry of readOneFile(first, newReadNotes())) {
    await redecision.next(entry)
    const { difference } = redecision
    if (difference === null) continue
    throw new Error(
      `${first}: input ${difference.input} is decided otherwise than it was; headroom sim redecide shows how`,
    )
  }
  const checkpoint = redecision.checkpoint()
  if (checkpoint === null) throw new Error(`${first}: no controller begins in it`)
  await writeCheckpoint(next, checkpoint)
}

/**
 * The same in a thread of its own, which gives way to all others. When the signal says so it ends with
 * nothing done.
 */
export function compactInThread(first: string, next: string, signal: AbortSignal): Promise<void> {
  return new Promise((done, failed) => {
    const worker = new Worker(workerUrl('serve/recording-worker'), { workerData: { first, next } })
    const end = (): void => void worker.terminate()
    signal.addEventListener('abort', end, { once: true })
    if (signal.aborted) end()
    worker.once('message', () => done())
    worker.once('error', failed)
    worker.once('exit', (code) => {
      signal.removeEventListener('abort', end)
      failed(new Error(`the thread that writes a checkpoint ended with ${code}`))
    })
  })
}
