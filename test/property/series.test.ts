import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { COLUMN, COLUMNS } from '../../controller/series/columns.ts'
import { gridOf } from '../../controller/series/query.ts'
import { BASE_SLOT_MS, SLOT_MS } from '../../controller/series/retention.ts'
import { addColumn, packRow, type Row } from '../../controller/series/row.ts'
import { Series } from '../../controller/series/series.ts'
import { decodeRecord, encodeRow } from '../../controller/series/series-record.ts'
import { SeriesTable } from '../../controller/series/table.ts'
import type { Views } from '../../controller/query/views.ts'
import { FakeController } from '../support/api-world.ts'

const START = Date.UTC(2026, 0, 1, 11, 58, 20)

/** Enough scopes for packed rows, or too few. */
const scopesArb = fc.constantFrom(1, 3, 16, 17, 40)
/** Usually small or equal numbers, like real columns; some beyond 32 bits. */
const valueArb = fc.oneof(fc.constant(0), fc.constant(60_000), fc.nat(300), fc.nat(100_000), fc.nat(2 ** 48))
/** Distance in base intervals to the next write: more than 1 leaves a gap. */
const gapArb = fc.oneof(
  { weight: 8, arbitrary: fc.constant(1) },
  { weight: 1, arbitrary: fc.integer({ min: 2, max: 500 }) },
)
const stepArb = fc.record({ gap: gapArb, values: fc.array(valueArb, { minLength: 5, maxLength: 5 }) })

function valueOf(row: Row, column: number, index: number): number {
  const sums = new Float64Array(1)
  addColumn(row, column, Int32Array.of(index), sums, 0)
  return sums[0] as number
}

describe('a coarser interval', () => {
  it('is exactly the sum of its base intervals, with gaps, later scopes and partial intervals', () => {
    const property = fc.property(
      scopesArb,
      fc.array(stepArb, { minLength: 1, maxLength: 120 }),
      (scopes, steps) => {
        const table = new SeriesTable('gpu')
        const written: { at: number; values: number[][] }[] = []
        let at = START
        steps.forEach(({ gap, values }, step) => {
          at += gap * BASE_SLOT_MS
          // One additional scope every other step.
          const present = Math.min(scopes, 1 + (step >>> 1))
          table.clear()
          const rows: number[][] = []
          for (let i = 0; i < present; i++) {
            const index = table.admit(`gpu-${i}`, -Infinity)
            const row = Float64Array.from(
              { length: COLUMNS },
              (_, column) => values[(column + i) % values.length] as number,
            )
            table.add(index ?? -1, row)
            rows.push([...row])
          }
          expect(table.commit(at)).toBe(true)
          written.push({ at, values: rows })
        })
        const known = table.tiers.map((tier, place) => [
          ...tier.rows(-Infinity, Infinity),
          ...openOf(table, place),
        ])
        known.forEach((rows, place) => {
          const slotMs = SLOT_MS[place] as number
          expect(new Set(rows.map((row) => row.at))).toEqual(
            new Set(written.map((one) => Math.floor(one.at / slotMs) * slotMs)),
          )
          for (const row of rows) {
            const parts = written.filter((one) => Math.floor(one.at / slotMs) * slotMs === row.at)
            for (let i = 0; i < scopes; i += 7) {
              for (const column of [COLUMN.busy, COLUMN.known, COLUMN.swapOuts]) {
                const sum = parts.reduce((total, part) => total + (part.values[i]?.[column] ?? 0), 0)
                expect(valueOf(row, column, i)).toBe(sum)
              }
            }
          }
        })
      },
    )
    fc.assert(property, { numRuns: 60 })
  })
})

function openOf(table: SeriesTable, place: number): readonly Row[] {
  const open = table.openRow(place)
  return open === null ? [] : [open]
}

describe('a packed row', () => {
  it('survives packing and encoding, and shares unchanged parts with the previous row', () => {
    const columnArb = fc.array(valueArb, { minLength: 40, maxLength: 40 })
    const property = fc.property(
      fc.array(columnArb, { minLength: 2, maxLength: 4 }),
      scopesArb,
      (columns, count) => {
        const values = Float64Array.from(
          { length: COLUMNS * 40 },
          (_, i) => columns[Math.floor(i / 40) % columns.length]?.[i % 40] as number,
        )
        const first = packRow(START, values, 40, count, undefined)
        const record = decodeRecord(encodeRow(first), undefined)
        const again = packRow(START + BASE_SLOT_MS, values, 40, count, first)
        expect(record?.kind).toBe('row')
        for (let column = 0; column < COLUMNS; column++) {
          for (let i = 0; i < count; i++) {
            expect(valueOf(first, column, i)).toBe(values[column * 40 + i])
            if (record?.kind === 'row') expect(valueOf(record.row, column, i)).toBe(values[column * 40 + i])
          }
        }
        if (count > 16) expect(again.bytes).toBeLessThan(136 + 8 * COLUMNS)
      },
    )
    fc.assert(property, { numRuns: 100 })
  })

  it('that is cut off or altered is rejected without an exception', () => {
    const bytes = encodeRow(
      packRow(
        START,
        Float64Array.from({ length: COLUMNS * 20 }, (_, i) => i * i),
        20,
        20,
        undefined,
      ),
    )
    const property = fc.property(fc.nat(bytes.length - 1), fc.nat(255), (at, value) => {
      expect(decodeRecord(bytes.slice(0, at), undefined)).toBeNull()
      const altered = bytes.slice()
      altered[at] = value
      const record = decodeRecord(altered, undefined)
      if (record?.kind === 'row') expect(Number.isInteger(record.row.at)).toBe(true)
    })
    fc.assert(property, { numRuns: 300 })
  })
})

describe('the samples of a series', () => {
  const growthArb = fc.record({
    ms: fc.oneof(fc.integer({ min: 1, max: 9_000 }), fc.integer({ min: 1, max: 60_000 })),
    busy: fc.nat(1000),
    served: fc.nat(1000),
    swap: fc.nat(5000),
    compute: fc.nat(5000),
    queue: fc.nat(9000),
  })

  it('are exact differences of the counters, whenever they are taken', async () => {
    const property = fc.asyncProperty(
      fc.array(growthArb, { minLength: 3, maxLength: 80 }),
      async (growths) => {
        const world = new FakeController()
        await world.addNode({ id: 'n', gpus: 2, physicalMib: 40_000 })
        const series = new Series(world.views)
        series.take()
        const counted = [world.counters]
        for (const { ms, ...parts } of growths) {
          world.now += ms
          world.counters = grown(world.counters, parts)
          const rows = series.tables.cluster.tiers[0]?.length
          series.take()
          if (series.tables.cluster.tiers[0]?.length !== rows) counted.push(world.counters)
        }
        const last = counted.at(-1) as (typeof counted)[0]
        for (const [place, tier] of series.tables.cluster.tiers.entries()) {
          const rows = [...tier.rows(-Infinity, Infinity), ...openOf(series.tables.cluster, place)]
          for (const name of ['busy', 'served', 'queue', 'swap', 'compute'] as const) {
            expect(1000 * rows.reduce((sum, row) => sum + valueOf(row, COLUMN[name], 0), 0)).toBe(last[name])
          }
        }
      },
    )
    await fc.assert(property, { numRuns: 60 })
  })

  function grown(
    counters: FakeController['counters'],
    by: Record<string, number>,
  ): FakeController['counters'] {
    const next = { ...counters }
    for (const [name, ms] of Object.entries(by)) next[name as keyof typeof next] += ms * 1000
    next.demand = next.served + next.queue + next.swap + next.compute
    return next
  }
})

describe('the points of a response', () => {
  it('cover the range within the requested number, at multiples of their step', () => {
    const property = fc.property(
      fc.integer({ min: 0, max: 4_000_000_000_000 }),
      fc.oneof(
        fc.integer({ min: 1, max: 100_000 }),
        fc.integer({ min: 1, max: 10_000_000_000 }),
        fc.integer({ min: 1, max: 250_000_000_000_000 }),
      ),
      fc.integer({ min: 1, max: 5_000 }),
      (from, range, maxPoints) => {
        const { tables } = new Series({} as Views)
        const grid = gridOf(tables, { names: [], scopes: [], from, to: from + range, maxPoints })
        const slotMs = SLOT_MS[grid.tier] as number
        expect(grid.points).toBeGreaterThan(0)
        expect(grid.points).toBeLessThanOrEqual(maxPoints)
        expect(grid.from).toBeLessThanOrEqual(from)
        expect(grid.from + grid.points * grid.stepMs).toBeGreaterThanOrEqual(from + range)
        expect(grid.stepMs % slotMs).toBe(0)
        expect(grid.from % (maxPoints === 1 ? slotMs : grid.stepMs)).toBe(0)
        // The next coarser resolution would have had too few points.
        const coarser = SLOT_MS[grid.tier + 1]
        if (coarser !== undefined) expect(range).toBeLessThan(coarser * maxPoints)
      },
    )
    fc.assert(property, { numRuns: 500 })
  })
})
