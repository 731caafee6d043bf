/**
 * The state of a standby, which applies what the leader logs, is the state of the leader after every commit.
 * The planner of the PostgreSQL store makes the entries; test/integration/follower.test.ts reads them from a
 * database.
 */
import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { createMemoryStore, EMPTY_STATE } from '../../controller/adapters/memory-store.ts'
import { createCommitLogWindow } from '../../controller/adapters/postgres/commit-log-window.ts'
import { createPlanner } from '../../controller/adapters/postgres/commit-plan.ts'
import { Replica, type LoggedBatch } from '../../controller/adapters/postgres/replica.ts'
import { encodeBatch } from '../../controller/adapters/sql/rows.ts'
import { EMPTY_CHAIN, secretId } from '../../controller/ports/store.ts'
import { newHistory, nextBatch, stepArb } from '../support/commit-histories.ts'
import { holdsInTime } from '../support/drawn-cases.ts'

const FILE = 'test/property/standby-state.test.ts'
const NO_LIMITS = {
  retention: { maxEvents: 1_000_000, maxBytes: null, maxAgeMs: null },
  decisionRetention: { maxDecisions: 1_000_000, maxAgeMs: 86_400_000 },
}
const NEVER = { wallNow: () => 0, monotonicNow: () => 0 }
const NO_OLD_ROWS = { events: () => Promise.resolve([]), decisions: () => Promise.resolve([]) }

/** A new store, before its first commit. */
function planner() {
  return createPlanner(
    {
      ends: { headSeq: 0, headHash: EMPTY_CHAIN, prunedSeq: 0, prunedHash: EMPTY_CHAIN, keptBytes: 0 },
      ...{ keptDecisions: 0, lastDecision: 0, lastEpoch: 0, recordedEpoch: 0, ageMarks: [] },
      clock: { controllerMs: 0, wallMs: 0, eventCredit: 0, decisionCredit: 0 },
    },
    NO_LIMITS,
    NEVER,
    NO_OLD_ROWS,
    createCommitLogWindow([]),
  )
}

/** Each commit joins the batches that waited. */
const commits = fc.array(fc.array(stepArb, { minLength: 1, maxLength: 4 }), { maxLength: 40 })

it('A standby has the state of the leader after every commit of any history', async () => {
  const property = fc.asyncProperty(commits, async (given) => {
    const [leader, standby] = [createMemoryStore(), new Replica(EMPTY_STATE, secretId)]
    const [plan, history] = [planner(), newHistory()]
    for (const steps of given) {
      const batches = steps.map((step) => nextBatch(history, step))
      for (const batch of batches) await leader.commit(batch)
      const { json } = await plan(batches.map(encodeBatch))
      standby.apply(JSON.parse(json) as LoggedBatch)
      const { finishedCounts, ...state } = standby.state()
      // A task whose final record was written again has to be counted.
      const { marks: _, mark, recovery, epochs, finishedCounts: counted, ...expected } = await leader.load()
      const counts = finishedCounts ?? counted
      if (!isDeepStrictEqual({ ...state, counts }, { ...expected, counts: counted }))
        expect({ ...state, counts }).toEqual({ ...expected, counts: counted })
    }
  })
  await holdsInTime(property, 1_000, FILE)
})
