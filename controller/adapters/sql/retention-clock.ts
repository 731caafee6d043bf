/**
 * The age of history in controller time: the time for which a controller ran on this store. It is kept in the
 * store, so that a wall clock that jumps, or is wrong at a start, makes nothing old (docs/decisions/0091).
 * Across a restart it advances by the difference of the wall clock, at most by a day and never backwards.
 * Removal by age alone is bounded as well.
 */

/** Reads both clocks of the host; milliseconds. */
export interface HostTime {
  /** Since the Unix epoch; may jump. */
  readonly wallNow: () => number
  /** Since an arbitrary moment; never jumps and never decreases. */
  readonly monotonicNow: () => number
}

/** When a row is too old, in milliseconds of controller time; null: never. */
export interface MaxAges {
  readonly events: number | null
  readonly decisions: number | null
}

/** Rows of each kind of history. */
export interface HistoryRows {
  readonly events: number
  readonly decisions: number
}

/** The newest row of each. */
export interface HistoryHeads {
  readonly eventSeq: number
  readonly decisionNumber: number
}

/** Rows that may now be removed because of their age: at most `rows` of the oldest, and none after `upTo`. */
export interface AgeAllowance {
  readonly upTo: number
  readonly rows: number
}

export interface Allowances {
  readonly events: AgeAllowance
  readonly decisions: AgeAllowance
}

const NOTHING_BY_AGE: AgeAllowance = { upTo: 0, rows: 0 }

export interface RetentionClock {
  /**
   * Call within a transaction, once for each kind, before its rows are added: returns what may be removed by
   * age; nothing until a tick is due.
   */
  tick(kept: HistoryRows): Allowances
  /** Call in the same transaction, after its rows are added: records what was removed by age. */
  settle(removed: HistoryRows, heads: HistoryHeads): void
}

/** Age alone removes at most this share of the kept rows per hour of controller time. */
const AGE_SHARE_PER_HOUR = 0.01
const HOUR_MS = 3_600_000
/** Across a restart controller time advances by at most this. */
const MAX_RESTART_ADVANCE_MS = 24 * HOUR_MS
/** Minimum interval for storing controller time and removing rows by age. */
const TICK_MS = 60_000
/** A mark records the newest rows at a moment. The precision of ages is the distance between two marks. */
const MARKS_PER_AGE = 100
const MAX_MARK_DISTANCE_MS = HOUR_MS

export interface ClockRow {
  readonly controllerMs: number
  readonly wallMs: number
  readonly eventCredit: number
  readonly decisionCredit: number
}

export interface AgeMark {
  readonly controllerMs: number
  readonly eventSeq: number
  readonly decisionNumber: number
}

/** The stored clock, and its marks by controller time. */
export interface ClockTables {
  readonly clock: ClockRow
  /** Controller time of the newest mark; null without marks. */
  readonly lastMarkMs: number | null
  putClock(clock: ClockRow): void
  /** The newest mark at or before that time. */
  markBefore(controllerMs: number): AgeMark | undefined
  putMark(mark: AgeMark): void
  /** Removes the marks before that time. */
  forgetMarks(controllerMs: number): void
}

export function openRetentionClock(tables: ClockTables, ages: MaxAges, time: HostTime): RetentionClock {
  const stored = tables.clock
  const openedAt = time.monotonicNow()
  const startsAt = stored.controllerMs + restartAdvance(time.wallNow() - stored.wallMs)
  const controllerNow = (): number => Math.floor(startsAt + time.monotonicNow() - openedAt)
  let { eventCredit, decisionCredit } = stored
  // A restart gives no credit: only measured time does.
  let [tickedAt, markedAt] = [startsAt, tables.lastMarkMs ?? -Infinity]
  let [isFirst, isDue] = [true, false]

  const putMark = (now: number, { eventSeq, decisionNumber }: HistoryHeads): void => {
    if (now - markedAt < markDistance(ages)) return
    tables.putMark({ controllerMs: now, eventSeq, decisionNumber })
    markedAt = now
    forgetMarks(tables, ages, now)
  }

  const allowance = (
    ageMs: number | null,
    column: 'eventSeq' | 'decisionNumber',
    credit: number,
    now: number,
  ): AgeAllowance => {
    if (ageMs === null || credit < 1) return NOTHING_BY_AGE
    const mark = tables.markBefore(now - ageMs)
    return mark === undefined ? NOTHING_BY_AGE : { upTo: mark[column], rows: Math.floor(credit) }
  }

  return {
    tick(kept) {
      const now = controllerNow()
      isDue = isFirst || now - tickedAt >= TICK_MS
      if (!isDue) return { events: NOTHING_BY_AGE, decisions: NOTHING_BY_AGE }
      isFirst = false
      eventCredit = grown(eventCredit, kept.events, now - tickedAt)
      decisionCredit = grown(decisionCredit, kept.decisions, now - tickedAt)
      tickedAt = now
      return {
        events: allowance(ages.events, 'eventSeq', eventCredit, now),
        decisions: allowance(ages.decisions, 'decisionNumber', decisionCredit, now),
      }
    },
    settle(removed, heads) {
      if (!isDue) return
      eventCredit -= removed.events
      decisionCredit -= removed.decisions
      putMark(tickedAt, heads)
      tables.putClock({
        ...{ controllerMs: tickedAt, wallMs: Math.floor(time.wallNow()) },
        ...{ eventCredit, decisionCredit },
      })
    },
  }
}

function restartAdvance(wallDifferenceMs: number): number {
  return Math.min(Math.max(wallDifferenceMs, 0), MAX_RESTART_ADVANCE_MS)
}

/** Credit is limited to an hour; to one row, if that is more, so that short histories age as well. */
function grown(credit: number, kept: number, elapsedMs: number): number {
  const perHour = kept * AGE_SHARE_PER_HOUR
  return Math.min(credit + (perHour * elapsedMs) / HOUR_MS, Math.max(perHour, 1))
}

function markDistance({ events, decisions }: MaxAges): number {
  const shortest = Math.min(events ?? Infinity, decisions ?? Infinity)
  return Math.min(shortest / MARKS_PER_AGE, MAX_MARK_DISTANCE_MS)
}

/** The newest mark beyond every age is still needed: it gives the upper end. */
function forgetMarks(tables: ClockTables, { events, decisions }: MaxAges, now: number): void {
  const longest = Math.max(events ?? 0, decisions ?? 0)
  const needed = tables.markBefore(now - longest)
  if (needed !== undefined) tables.forgetMarks(needed.controllerMs)
}
