/**
 * The reader thread, with its own connection: a long search delays no commit, and a commit delays no page.
 */
import { parentPort, workerData } from 'node:worker_threads'
import type Database from 'better-sqlite3'
import type { Kysely } from 'kysely'
import { readDecision, readDecisions } from './decision-log.ts'
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
  return { lines: [], answer: (request) => answer(database, db, request), close: () => database.close() }
})

function answer(database: Database.Database, db: Kysely<Schema>, request: ReaderRequest): unknown {
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
      return readDecision(database, request.number)
    case 'decisions':
      return readDecisions(database, request.query)
    case 'configRevisions':
      return configRevisions(db, request.query)
    case 'audits':
      return audits(db, request.query)
  }
}
