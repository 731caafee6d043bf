/**
 * The reader thread, with its own connection: a long search delays no commit, and a commit delays no page.
 */
import { parentPort, workerData } from 'node:worker_threads'
import { faultOf } from './faults.ts'
import type { Kysely } from 'kysely'
import { decisionByNumber, decisions } from '../sql/decisions.ts'
import { kyselyOf } from './dialect.ts'
import type { ReaderRequest, WorkerSettings } from './messages.ts'
import { openForReading } from './opening.ts'
import { eventRange, events } from '../sql/event-queries.ts'
import { audits, configRevisions, finishedTasks, loadRows, taskById } from '../sql/queries.ts'
import type { Schema } from '../sql/schema.ts'
import { serve } from '../sql/serving.ts'

const settings = workerData as WorkerSettings
if (parentPort === null) throw new Error('reader-worker runs in a worker thread')

serve<ReaderRequest>(
  parentPort,
  (error) => faultOf(error, settings.path),
  () => {
    const database = openForReading(settings)
    const db = kyselyOf(database)
    return { lines: [], answer: (request) => answer(db, request), close: () => database.close() }
  },
)

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
    case 'decision':
      return decisionByNumber(db, request.number)
    case 'decisions':
      return decisions(db, request.query)
    case 'configRevisions':
      return configRevisions(db, request.query)
    case 'audits':
      return audits(db, request.query)
  }
}
