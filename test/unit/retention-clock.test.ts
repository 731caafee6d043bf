/**
 * Age counts controller time, and removes at most 1% of the kept rows per hour, whatever the wall clock
 * shows.
 */
import Database from 'better-sqlite3'
import { describe, expect, it } from 'vitest'
import { kyselyOf } from '../../controller/adapters/sqlite/dialect.ts'
import { migrate, MIGRATIONS } from '../../controller/adapters/sqlite/migrations.ts'
import { encodeBatch } from '../../controller/adapters/sql/rows.ts'
import { createWriter } from '../../controller/adapters/sqlite/writer.ts'
import { aBatch, aDecision, anEvent } from '../support/store-builders.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const START = Date.UTC(2027, 0, 1)
const AGE_DAYS = 30

type Writer = ReturnType<typeof createWriter>

/** One file and the clocks of its host; `start` opens the file like a new controller. */
class Host {
  readonly db = new Database(':memory:')
  wall = START
  /** Error of the wall clock. */
  jump = 0
  monotonic = 0
  nextSeq = 1
  #write: Writer | null = null

  async make(): Promise<this> {
    await migrate(kyselyOf(this.db), ':memory:', this.wall)
    return this.start()
  }

  start({ maxCount = 1_000_000 } = {}): this {
    const [retention, decisionRetention] = [
      { maxEvents: maxCount, maxBytes: null, maxAgeMs: AGE_DAYS * DAY_MS },
      { maxDecisions: maxCount, maxAgeMs: AGE_DAYS * DAY_MS },
    ]
    const time = { wallNow: () => this.wall + this.jump, monotonicNow: () => this.monotonic }
    this.#write = createWriter(this.db, { retention, decisionRetention }, time)
    return this
  }

  /** The controller keeps running. */
  pass(ms: number): this {
    this.wall += ms
    this.monotonic += ms
    return this
  }

  commit(count = 0): this {
    const seqs = Array.from({ length: count }, () => this.nextSeq++)
    const at = this.wall + this.jump
    const marks = { epoch: 1, nextTaskSeq: 1, nextEventSeq: this.nextSeq, nextDecision: this.nextSeq }
    const events = seqs.map((seq) => anEvent(seq, { at }))
    const decisions = seqs.map((number) => aDecision(number, { at }))
    this.#write?.([encodeBatch(aBatch({ events, decisions, marks }))])
    return this
  }

  get kept(): { events: number; decisions: number } {
    const count = (table: string) =>
      this.db.prepare<[], number>(`select count(*) from ${table}`).pluck().get() ?? 0
    return { events: count('events'), decisions: count('decisions') }
  }

  get marks(): number {
    return this.db.prepare<[], number>('select count(*) from retention_marks').pluck().get() ?? 0
  }
}

const JUMPS = [31, 400, 3 * 365].map((days) => [days, days * DAY_MS] as const)

describe('a wrong wall clock', () => {
  it.each(JUMPS)('by +%i days while a controller runs removes nothing', async (_, jump) => {
    const host = await new Host().make()
    host.commit(1000)
    host.jump = jump
    for (let step = 0; step < 120; step++) host.pass(60_000).commit(1)
    expect(host.kept).toEqual({ events: 1120, decisions: 1120 })
    host.jump = 0
    host.pass(HOUR_MS).commit(1)
    expect(host.kept).toEqual({ events: 1121, decisions: 1121 })
  })

  it.each(JUMPS)('by +%i days at a start makes history at most one day older', async (_, jump) => {
    const host = await new Host().make()
    host.commit(1000)
    host.jump = jump
    host.start()
    for (let step = 0; step < 24; step++) host.pass(HOUR_MS).commit(0)
    expect(host.kept).toEqual({ events: 1000, decisions: 1000 })
  })

  it('at 40 starts in a row, each a year later, removes nothing in the absence of running time', async () => {
    const host = await new Host().make()
    host.commit(1000)
    for (let start = 0; start < 40; start++) {
      host.jump += 365 * DAY_MS
      host.start().commit(0)
    }
    // 40 starts count as 40 days by the rule of one day, more than the age of 30 days; yet no hour has
    // passed.
    expect(host.kept).toEqual({ events: 1000, decisions: 1000 })
  })

  it('that is set back never makes history younger', async () => {
    const host = await new Host().make()
    host.commit(1000)
    for (let day = 0; day < AGE_DAYS + 1; day++) host.pass(DAY_MS).commit(0)
    const { events } = host.kept
    expect(events).toBeLessThan(1000)
    host.jump = -400 * DAY_MS
    host.start().pass(HOUR_MS).commit(0)
    expect(host.kept.events).toBeLessThan(events)
  })
})

describe('the age limit', () => {
  it('removes at most 1% of the kept rows per hour, and in the end all old rows', async () => {
    const host = await new Host().make()
    host.commit(10_000)
    host.pass(AGE_DAYS * DAY_MS - HOUR_MS).commit(0)
    expect(host.kept.events).toBe(10_000)
    for (let hour = 0; hour < 200; hour++) {
      const before = host.kept
      for (let part = 0; part < 6; part++) host.pass(HOUR_MS / 6).commit(0)
      expect(before.events - host.kept.events).toBeLessThanOrEqual(Math.ceil(0.01 * before.events))
      expect(before.decisions - host.kept.decisions).toBeLessThanOrEqual(Math.ceil(0.01 * before.decisions))
    }
    expect(host.kept.events).toBeLessThan(2_000)
    for (let day = 0; day < 400; day++) host.pass(DAY_MS).commit(0)
    expect(host.kept.events).toBeLessThan(100)
  })

  it('removes no more because of repeated starts', async () => {
    const host = await new Host().make()
    host.commit(10_000)
    host.pass((AGE_DAYS + 1) * DAY_MS).commit(0)
    const before = host.kept.events
    for (let start = 0; start < 20; start++) host.pass(1000).start().commit(0)
    expect(before - host.kept.events).toBeLessThanOrEqual(1)
  })

  it('leaves the limit by count unchanged: new rows replace as many old rows', async () => {
    const host = await new Host().make()
    host.start({ maxCount: 500 })
    for (let step = 0; step < 20; step++) host.pass(1000).commit(100)
    expect(host.kept).toEqual({ events: 500, decisions: 500 })
  })

  it('needs a limited number of marks', async () => {
    const host = await new Host().make()
    for (let hour = 0; hour < 3 * AGE_DAYS * 24; hour++) host.pass(HOUR_MS).commit(1)
    expect(host.marks).toBeLessThan(AGE_DAYS * 24 + 3)
    expect(host.kept.events).toBeLessThan(AGE_DAYS * 24 + 25)
  })
})

describe('a store from before controller time', () => {
  const beforeClock = MIGRATIONS.findIndex(({ name }) => name === 'controller time for retention')

  it('takes the age of its history from the wall clock once, and counts future times as now', async () => {
    const host = new Host()
    await migrate(kyselyOf(host.db), ':memory:', START, MIGRATIONS.slice(0, beforeClock))
    const addEvent = host.db.prepare(
      "insert into events values (?, ?, 'task_submitted', null, null, null, '{}', null, x'')",
    )
    const ats = [START - 40 * DAY_MS, START - 20 * DAY_MS, START + 3 * 365 * DAY_MS, START - HOUR_MS]
    ats.forEach((at, index) => addEvent.run(index + 1, at))
    host.db.exec(`update event_chain set head_seq = 4, kept_bytes = 400`)
    await migrate(kyselyOf(host.db), ':memory:', START)
    host.nextSeq = 5
    host.start()
    for (let day = 0; day < 5; day++) host.pass(DAY_MS).commit(0)
    // Only the first was older than 30 days; in a short history a row is removed only after the time for one
    // row.
    expect(host.kept.events).toBe(3)
  })
})
