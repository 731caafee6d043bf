/** Writes batches: one call of `commit_batch` for each group of them. */
import type pg from 'pg'
import { StoreFault } from '../../ports/store.ts'
import { fencedFault } from '../sql/history.ts'
import { oldEvent, type ChainEnds } from '../sql/pruning.ts'
import type { AgeMark, ClockRow, HostTime } from '../sql/retention-clock.ts'
import type { BatchRows, EventRow } from '../sql/rows.ts'
import type { FileMark } from '../sql/store-mark.ts'
import { createCommitLogWindow, type LogPart } from './commit-log-window.ts'
import { createPlanner, type OldRows, type PlanStart, type Retentions } from './commit-plan.ts'
import { FENCED } from './faults.ts'

export interface WriterStart {
  readonly client: pg.Client
  readonly holder: string
  readonly logParts: readonly LogPart[]
}

/**
 * @returns a function that writes all batches in one transaction, durable when it resolves, with the new
 * extent of the store. It rejects with StoreFault if a later epoch or another holder has the fence, and with
 * an error of the server or the connection; it is then unknown whether the batches were written.
 */
export async function createWriter(
  { client, holder, logParts }: WriterStart,
  settings: Retentions,
  time: HostTime,
): Promise<(batches: readonly BatchRows[]) => Promise<Omit<FileMark, 'storeId'>>> {
  const log = createCommitLogWindow(logParts)
  const plan = createPlanner(await readStart(client), settings, time, oldRows(client), log)
  return async (batches) => {
    const { epoch, ends, json } = await plan(batches)
    const at = Math.floor(time.wallNow())
    const commits = await commit(epoch, at, json)
    log.add(commits, at, json.length)
    return { epoch, eventSeq: ends.headSeq, chain: ends.headHash, commits }
  }

  async function commit(epoch: number, at: number, json: string): Promise<number> {
    try {
      const { rows } = await client.query<{ commits: number }>({
        name: 'commit',
        text: 'select headroom.commit_batch($1, $2, $3, $4) as commits',
        values: [epoch, holder, at, json],
      })
      const [row] = rows
      if (row === undefined) throw new Error('broken invariant: a commit returned no number')
      return row.commits
    } catch (error) {
      if ((error as { readonly code?: unknown }).code === FENCED) throw fencedFault(epoch)
      throw error
    }
  }
}

interface StartRow extends ChainEnds, ClockRow {
  readonly keptDecisions: number
  readonly lastDecision: number
  readonly lastEpoch: number
  readonly recordedEpoch: number
}

async function readStart(client: pg.ClientBase): Promise<PlanStart> {
  const { rows } = await client.query<StartRow>(
    `select head_seq as "headSeq", encode(head_hash, 'hex') as "headHash", pruned_seq as "prunedSeq",
       encode(pruned_hash, 'hex') as "prunedHash", kept_bytes as "keptBytes",
       (select count(*) from decisions) as "keptDecisions",
       coalesce((select max(number) from decisions), 0) as "lastDecision",
       (select epoch from leader) as "lastEpoch",
       coalesce((select max(epoch) from epochs), 0) as "recordedEpoch",
       controller_ms as "controllerMs", wall_ms as "wallMs", event_credit as "eventCredit",
       decision_credit as "decisionCredit"
     from event_chain, retention_clock`,
  )
  const [row] = rows
  if (row === undefined) throw new StoreFault('the store has no chain of events, or no retention clock')
  const ages = await client.query<AgeMark>(
    `select controller_ms as "controllerMs", event_seq as "eventSeq", decision_number as "decisionNumber"
     from retention_marks order by controller_ms`,
  )
  const { headSeq, headHash, prunedSeq, prunedHash, keptBytes, ...rest } = row
  const { controllerMs, wallMs, eventCredit, decisionCredit, ...counts } = rest
  return {
    ...counts,
    ends: { headSeq, headHash, prunedSeq, prunedHash, keptBytes },
    clock: { controllerMs, wallMs, eventCredit, decisionCredit },
    ageMarks: ages.rows,
  }
}

function oldRows(client: pg.ClientBase): OldRows {
  return {
    async events(afterSeq, limit) {
      const { rows } = await client.query<[...EventRow, string]>({
        name: 'old-events',
        rowMode: 'array',
        text: `select seq, at, kind, task_id, node_id, caused_by, author, data, encode(hash, 'hex')
          from events where seq > $1 order by seq limit $2`,
        values: [afterSeq, limit],
      })
      return rows.map(([seq, at, kind, taskId, nodeId, causedBy, by, data, hash]) =>
        oldEvent([seq, at, kind, taskId, nodeId, causedBy, by, data], hash),
      )
    },
    async decisions(afterNumber, limit) {
      const { rows } = await client.query<{ number: number }>({
        name: 'old-decisions',
        text: 'select number from decisions where number > $1 order by number limit $2',
        values: [afterNumber, limit],
      })
      return rows.map(({ number }) => number)
    },
  }
}
