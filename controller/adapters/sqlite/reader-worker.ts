/** The thread that reads, through a connection of its own: a long search delays no commit, and a commit delays no page. */
import { parentPort, workerData } from 'node:worker_threads'
import type { Kysely } from 'kysely'
import { kyselyOf } from './dialect.ts'
import type { ReaderRequest, WorkerSettings } from './messages.ts'
import { openForReading } from './opening.ts'
import { eventRange, events } from './event-queries.ts'
import { audits, configRevisions, finishedTasks, loadRows, taskById } from './queries.ts'
import type { Schema } from './schema.ts'
import { serve } from './serving.ts'

const settings = workerData as WorkerSettings
if (parentPort === null) throw new Error('reader-worker runs in a worker thread')

serve<ReaderRequest>(parentPort, settings.path, () => {
  const database = openForReading(settings)
  const db = kyselyOf(database)
  return { lines: [], answer: (request) => answer(db, request), close: () => database.close() }
})

function answer(db: Kysely<Schema>, request: ReaderRequest): unknown {
  switch (request.op) {
    case 'load':
      return loadRows(db)
    case 'task':
      return taskById(db, request.id)
    case 'finishedTasks':
      return finishedTasks(db, request.query)
    case 'events':
      return events(db, request.query)
    case 'eventRange':
      return eventRange(db)
    case 'configRevisions':
      return configRevisions(db, request.query)
    case 'audits':
      return audits(db, request.query)
  }
}
