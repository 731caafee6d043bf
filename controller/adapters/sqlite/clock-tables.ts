/** The tables of the retention clock. */
import type Database from 'better-sqlite3'
import type { AgeMark, ClockRow, ClockTables } from '../sql/retention-clock.ts'

/** Throws SqliteError. The schema must have the tables of the clock. */
export function clockTables(db: Database.Database): ClockTables {
  const clock = db
    .prepare<[], ClockRow>(
      `select controller_ms as controllerMs, wall_ms as wallMs, event_credit as eventCredit,
        decision_credit as decisionCredit from retention_clock`,
    )
    .get()
  if (clock === undefined) throw new Error('broken invariant: the store has no retention clock')
  const lastMark = db.prepare<[], number | null>('select max(controller_ms) from retention_marks').pluck()
  const putClock = db.prepare<unknown[]>(
    'update retention_clock set controller_ms = ?, wall_ms = ?, event_credit = ?, decision_credit = ? ' +
      'where id = 1',
  )
  const markBefore = db.prepare<
    [number],
    AgeMark
  >(`select controller_ms as controllerMs, event_seq as eventSeq,
    decision_number as decisionNumber from retention_marks where controller_ms <= ?
    order by controller_ms desc limit 1`)
  const putMark = db.prepare<unknown[]>(
    'replace into retention_marks (controller_ms, event_seq, decision_number) values (?, ?, ?)',
  )
  const forget = db.prepare<[number]>('delete from retention_marks where controller_ms < ?')
  return {
    clock,
    lastMarkMs: lastMark.get() ?? null,
    putClock: (row) => putClock.run(row.controllerMs, row.wallMs, row.eventCredit, row.decisionCredit),
    markBefore: (controllerMs) => markBefore.get(controllerMs),
    putMark: (mark) => putMark.run(mark.controllerMs, mark.eventSeq, mark.decisionNumber),
    forgetMarks: (controllerMs) => forget.run(controllerMs),
  }
}
