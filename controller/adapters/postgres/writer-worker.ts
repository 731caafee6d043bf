/** The writer thread: it waits for commits and for the mark, so that the event loop never does. */
import { setTimeout as delay } from 'node:timers/promises'
import { parentPort, workerData } from 'node:worker_threads'
import type { Note } from '../sql/messages.ts'
import type pg from 'pg'
import { serve } from '../sql/serving.ts'
import { faultOf } from './faults.ts'
import type { PostgresRequest } from './messages.ts'
import { openForWriting } from './opening.ts'
import type { PostgresSettings } from './settings.ts'
import { describePlace } from './store-url.ts'
import { createWriter } from './writer.ts'

/** A connection that does not close is left to the server. */
const CLOSE_WITHIN_MS = 1_000

const settings = workerData as PostgresSettings
if (parentPort === null) throw new Error('writer-worker runs in a worker thread')
const name = describePlace(settings.place)

serve<PostgresRequest>(
  parentPort,
  (error) => faultOf(error, name),
  async () => {
    const opened = await openForWriting(settings, (note) => parentPort?.postMessage({ note } satisfies Note))
    const { client, at, mark, storeId } = opened
    const write = await createWriter(opened, settings, {
      wallNow: Date.now,
      monotonicNow: () => performance.now(),
    })
    let isClosing = false
    // The connection is cut: the thread ends, and with it everything that waits for it.
    client.on('error', (error) => {
      if (!isClosing) throw faultOf(error, name)
    })
    return {
      lines: opened.lines,
      answer: async (request) => {
        if (request.op === 'host') return at
        // The mark is written after the commit, and both before the acknowledgement: it is never ahead of the
        // store, nor behind acknowledged data.
        const reached = await write(request.batches)
        mark.put({ storeId, ...reached })
        return null
      },
      close: async () => {
        isClosing = true
        mark.close()
        await Promise.race([client.end().catch(() => undefined), delay(CLOSE_WITHIN_MS)])
        if (!isEnded(client)) client.connection.stream.destroy()
      },
    }
  },
)

function isEnded(client: pg.Client): boolean {
  return (client as unknown as { readonly _ended: boolean })._ended
}
