/** The writer thread: it waits for commits and for the mark, so that the event loop never does. */
import { parentPort, workerData } from 'node:worker_threads'
import type { Note } from '../sql/messages.ts'
import { StoreFault } from '../../ports/store.ts'
import type { BatchRows } from '../sql/rows.ts'
import { serve } from '../sql/serving.ts'
import { faultOf } from './faults.ts'
import type { PostgresNote, PostgresRequest } from './messages.ts'
import { openForWriting } from './opening.ts'
import { endClient } from './session.ts'
import type { PostgresSettings } from './settings.ts'
import { describePlace } from './store-url.ts'
import { createWriter } from './writer.ts'

const settings = workerData as PostgresSettings
if (parentPort === null) throw new Error('writer-worker runs in a worker thread')
const name = describePlace(settings.place)

function note(said: PostgresNote): void {
  parentPort?.postMessage({ note: said } satisfies Note<PostgresNote>)
}

serve<PostgresRequest>(
  parentPort,
  (error) => faultOf(error, name),
  async () => {
    const opened = await openForWriting(settings, note)
    const { client, at, mark, storeId, leadership, term } = opened
    const write = await createWriter(opened, settings, {
      wallNow: Date.now,
      monotonicNow: () => performance.now(),
    })
    let isClosing = false
    // The connection is cut: the thread ends, and with it everything that waits for it.
    client.on('error', (error) => {
      if (!isClosing) throw faultOf(error, name)
    })
    void leadership?.lost.then((end) => {
      note({ k: 'lost', end })
      if (end.reason !== 'resigned' && !isClosing)
        setImmediate(() => {
          throw new StoreFault(`${name}: this controller no longer leads: ${end.detail}`)
        })
    })
    const commit = async (request: { readonly batches: readonly BatchRows[] }): Promise<null> => {
      // The mark is written after the commit, and both before the acknowledgement: it is never ahead of the
      // store, nor behind acknowledged data.
      mark.put({ storeId, ...(await write(request.batches)) })
      return null
    }
    return {
      lines: opened.lines,
      answer: async (request) => {
        switch (request.op) {
          case 'host':
            return at
          case 'term':
            return term
          case 'holder':
            return opened.holder
          case 'commit':
            return commit(request)
          case 'serves':
            await leadership?.serves(request.seal)
            return null
          case 'resign':
            isClosing = true
            await leadership?.resign(request.to)
            return null
        }
      },
      close: async () => {
        isClosing = true
        mark.close()
        if (leadership === null) return endClient(client)
        await leadership.resign()
        await leadership.close()
      },
    }
  },
)
