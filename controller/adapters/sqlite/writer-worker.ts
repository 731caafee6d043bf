/** The writer thread: an fsync blocks it, and never the event loop. */
import { parentPort, workerData } from 'node:worker_threads'
import { faultOf } from './faults.ts'
import type { WriterRequest } from '../sql/messages.ts'
import type { WorkerSettings } from './messages.ts'
import { openForWriting } from './opening.ts'
import { serve } from '../sql/serving.ts'
import { createWriter } from './writer.ts'

const settings = workerData as WorkerSettings
if (parentPort === null) throw new Error('writer-worker runs in a worker thread')

serve<WriterRequest>(
  parentPort,
  (error) => faultOf(error, settings.path),
  async () => {
    const opened = await openForWriting(settings)
    const write = createWriter(opened.db, settings, {
      wallNow: Date.now,
      monotonicNow: () => performance.now(),
    })
    const { storeId } = opened
    return {
      lines: opened.lines,
      answer: ({ batches }) => {
        // The mark is written after the commit, and both before the acknowledgement: it is never ahead of the
        // store, nor behind acknowledged data.
        const reached = write(batches)
        opened.mark.put({ storeId, ...reached })
        return null
      },
      close: opened.close,
    }
  },
)
