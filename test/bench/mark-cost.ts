/** The cost of the mark: the same commits with and without it, in turn, on one store. */
import { join } from 'node:path'
import { openForWriting } from '../../controller/adapters/sqlite/opening.ts'
import { encodeBatch } from '../../controller/adapters/sql/rows.ts'
import { createWriter } from '../../controller/adapters/sqlite/writer.ts'
import { NO_CHANGE } from '../../controller/ports/store.ts'
import { anEvent, aTask } from '../support/store-builders.ts'

const ROUNDS = 300
const TASKS_PER_COMMIT = 10

export interface MarkCost {
  /** Milliseconds of each commit. */
  readonly without: readonly number[]
  readonly with: readonly number[]
}

/** @param folder on the measured disk; it is created. */
export async function measureMark(folder: string): Promise<MarkCost> {
  const settings = {
    ...{
      path: join(folder, 'headroom.db'),
      busyTimeoutMs: 0,
      maxPages: null,
      isStoreExpected: false,
      acceptLoss: null,
      kind: null,
    },
    retention: { maxEvents: 1_000_000, maxBytes: null, maxAgeMs: null },
    decisionRetention: { maxDecisions: 200_000, maxAgeMs: 86_400_000 },
  }
  const opened = await openForWriting(settings)
  const write = createWriter(opened.db, settings, {
    wallNow: Date.now,
    monotonicNow: () => performance.now(),
  })
  const cost = { without: [] as number[], with: [] as number[] }
  for (let round = 0; round < 2 * ROUNDS; round++) {
    const batch = encodeBatch(batchOf(round * TASKS_PER_COMMIT))
    const from = performance.now()
    const reached = write([batch])
    if (round % 2 === 1) opened.mark.put({ storeId: opened.storeId, ...reached })
    cost[round % 2 === 1 ? 'with' : 'without'].push(performance.now() - from)
  }
  opened.close()
  return cost
}

function batchOf(before: number) {
  const seqs = Array.from({ length: TASKS_PER_COMMIT }, (_, i) => before + i + 1)
  const next = before + TASKS_PER_COMMIT + 1
  return {
    ...NO_CHANGE,
    tasks: seqs.map((seq) => aTask({ seq })),
    events: seqs.map((seq) => anEvent(seq)),
    marks: { epoch: 1, nextTaskSeq: next, nextEventSeq: next, nextDecision: 1 },
  }
}
