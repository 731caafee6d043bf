/**
 * Turns batches into one commit: the last record of each id, the links of the chain of events, and the old
 * rows that retention removes. The state that a writer keeps between commits is here. It is valid while every
 * commit succeeds; after the first that does not nothing is written (R10).
 */
import { fencedFault, newEpochs } from '../sql/history.ts'
import {
  EXTRA_PRUNED,
  isEventDue,
  linkEvents,
  pruneDecisions,
  pruneEvents,
  type ChainEnds,
  type DecisionRetention,
  type EventRetention,
  type OldEvent,
} from '../sql/pruning.ts'
import {
  openRetentionClock,
  type AgeAllowance,
  type AgeMark,
  type ClockRow,
  type ClockTables,
  type HostTime,
} from '../sql/retention-clock.ts'
import type { BatchRows, EventRow } from '../sql/rows.ts'
import { RETAIN_AUDITS } from '../sql/retained-audits.ts'
import type { CommitLogWindow } from './commit-log-window.ts'
import { mergedRecords, storable, type Json } from './merged-records.ts'

export interface PlanStart {
  readonly ends: ChainEnds
  readonly keptDecisions: number
  readonly lastDecision: number
  /** Epoch of the fence. */
  readonly lastEpoch: number
  /** The newest in the table of epochs. */
  readonly recordedEpoch: number
  readonly clock: ClockRow
  /** By controller time. */
  readonly ageMarks: readonly AgeMark[]
}

export interface Retentions {
  readonly retention: EventRetention
  readonly decisionRetention: DecisionRetention
}

/** Reads the oldest rows; called between commits. */
export interface OldRows {
  events(afterSeq: number, limit: number): Promise<readonly OldEvent[]>
  decisions(afterNumber: number, limit: number): Promise<readonly number[]>
}

export interface Plan {
  readonly epoch: number
  readonly ends: ChainEnds
  /** The batch, for `commit_batch`. */
  readonly json: string
}

/** Number of old rows read at a time. */
const OLD_ROWS = 5_000
/** Number of new audit entries after which the surplus is removed. */
const PRUNE_AUDITS_EVERY = 1_000

/** @returns a function that plans the next commit; call it after the previous commit has succeeded */
export function createPlanner(
  start: PlanStart,
  { retention, decisionRetention }: Retentions,
  time: HostTime,
  old: OldRows,
  log: CommitLogWindow,
): (batches: readonly BatchRows[]) => Promise<Plan> {
  let { ends, keptDecisions, lastDecision, lastEpoch, recordedEpoch } = start
  // Due at the start, so that a lowered limit applies soon.
  let auditsSincePruned = PRUNE_AUDITS_EVERY
  let oldEvents: readonly OldEvent[] = []
  let oldDecisions: readonly number[] = []
  const changes: Json = {}
  const ages = { events: retention.maxAgeMs, decisions: decisionRetention.maxAgeMs }
  const clock = openRetentionClock(clockTables(start, changes), ages, time)

  async function planEvents(batches: readonly BatchRows[], json: Json, byAge: AgeAllowance): Promise<number> {
    const rows = batches.flatMap((batch) => batch.events).map(storableEvent)
    const linked = linkEvents(ends, rows)
    if (rows.length > 0) json['events'] = rows.map((row, i) => [...row, linked.hashes[i]])
    let after = { ends: linked.ends, removedByAge: 0 }
    if (isEventDue(linked.ends, retention, byAge)) {
      const most = rows.length + EXTRA_PRUNED
      if (oldEvents.length < most) oldEvents = await old.events(ends.prunedSeq, OLD_ROWS + most)
      after = pruneEvents(linked.ends, oldEvents.slice(0, most), retention, byAge)
      oldEvents = oldEvents.filter(({ seq }) => seq > after.ends.prunedSeq)
      if (after.ends.prunedSeq > ends.prunedSeq) json['events_removed'] = after.ends.prunedSeq
    }
    if (after.ends !== ends) {
      const { headSeq, headHash, prunedSeq, prunedHash, keptBytes } = after.ends
      json['chain'] = [ends.headSeq, headSeq, headHash, prunedSeq, prunedHash, keptBytes]
    }
    ends = after.ends
    return after.removedByAge
  }

  async function planDecisions(
    batches: readonly BatchRows[],
    json: Json,
    byAge: AgeAllowance,
  ): Promise<number> {
    const rows = batches.flatMap((batch) => batch.decisions)
    if (rows.length > 0) json['decisions'] = rows
    keptDecisions += rows.length
    lastDecision = rows.at(-1)?.[0] ?? lastDecision
    const { maxDecisions } = decisionRetention
    if (keptDecisions <= maxDecisions && byAge.rows === 0) return 0
    const most = rows.length + EXTRA_PRUNED
    if (oldDecisions.length < most) oldDecisions = await old.decisions(0, OLD_ROWS + most)
    const pruned = pruneDecisions(keptDecisions, oldDecisions.slice(0, most), maxDecisions, byAge)
    oldDecisions = oldDecisions.filter((number) => number > pruned.upTo)
    keptDecisions = pruned.kept
    if (pruned.upTo > 0) json['decisions_removed'] = pruned.upTo
    return pruned.removedByAge
  }

  return async (batches) => {
    const json = mergedRecords(batches)
    const epoch = lastEpochOf(batches, lastEpoch)
    const epochs = newEpochs(batches, recordedEpoch, ends.headSeq)
    if (epochs.length > 0) json['epochs'] = epochs
    recordedEpoch = epochs.at(-1)?.[0] ?? recordedEpoch
    lastEpoch = epoch
    const byAge = clock.tick({ events: ends.headSeq - ends.prunedSeq, decisions: keptDecisions })
    const removed = {
      events: await planEvents(batches, json, byAge.events),
      decisions: await planDecisions(batches, json, byAge.decisions),
    }
    clock.settle(removed, { eventSeq: ends.headSeq, decisionNumber: lastDecision })
    for (const [key, value] of Object.entries(changes)) {
      json[key] = value
      delete changes[key]
    }
    auditsSincePruned += batches.reduce((sum, { access }) => sum + (access?.audits.length ?? 0), 0)
    if (auditsSincePruned >= PRUNE_AUDITS_EVERY && json['audits'] !== undefined) {
      json['audits_kept'] = RETAIN_AUDITS
      auditsSincePruned = 0
    }
    json['marks'] = batches.at(-1)?.marks
    const keptFrom = log.advance()
    if (keptFrom !== null) json['log_kept_from'] = keptFrom
    return { epoch, ends, json: JSON.stringify(json) }
  }
}

function storableEvent(row: EventRow): EventRow {
  return row.map(storable) as unknown as EventRow
}

/** @throws StoreFault if one of them is of an earlier epoch than the one before */
function lastEpochOf(batches: readonly BatchRows[], before: number): number {
  let last = before
  for (const { marks } of batches) {
    if (marks[0] < last) throw fencedFault(marks[0])
    ;[last] = marks
  }
  return last
}

/** The tables of the clock in memory; what changes is written with the commit. */
function clockTables({ clock, ageMarks }: PlanStart, changes: Json): ClockTables {
  let marks = [...ageMarks]
  return {
    clock,
    lastMarkMs: ageMarks.at(-1)?.controllerMs ?? null,
    putClock: ({ controllerMs, wallMs, eventCredit, decisionCredit }) => {
      changes['clock'] = [controllerMs, wallMs, eventCredit, decisionCredit]
    },
    markBefore: (controllerMs) => marks.findLast((mark) => mark.controllerMs <= controllerMs),
    putMark: (mark) => {
      marks.push(mark)
      changes['age_mark'] = [mark.controllerMs, mark.eventSeq, mark.decisionNumber]
    },
    forgetMarks: (controllerMs) => {
      marks = marks.filter((mark) => mark.controllerMs >= controllerMs)
      changes['age_marks_before'] = controllerMs
    },
  }
}
