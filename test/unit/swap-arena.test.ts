import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type ArenaRecord, ArenaRecords, isDamaged } from '../../gpu-server/devices/nvidia/arena-records.ts'
import { layOut, pieceCount } from '../../gpu-server/devices/nvidia/arena-copies.ts'
import {
  type Extent,
  extentsOf,
  freeExtents,
  piecesOf,
  takePieces,
} from '../../gpu-server/devices/nvidia/arena-extents.ts'

let folder: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'headroom-records-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

const RECORD: ArenaRecord = {
  pid: 11,
  startTime: 500,
  boot: 'boot-1',
  arena: 'arena-1',
  phase: 'stored',
  devices: [{ uuid: 'a', bytes: 10, extents: [{ first: 2, count: 3 }] }],
}

const extent = fc.record({ first: fc.nat(30), count: fc.integer({ min: 1, max: 10 }) })

test('Pieces are taken once, in the arena, the warm ones and the lowest first, or not at all', () => {
  fc.assert(
    fc.property(
      fc.nat(40),
      fc.array(extent, { maxLength: 8 }),
      fc.nat(40),
      fc.uniqueArray(fc.nat(40)),
      (total, taken, count, warm) => {
        const used = new Set(piecesOf(taken))
        const free = Array.from({ length: total }, (_, piece) => piece).filter((piece) => !used.has(piece))
        const found = takePieces(total, taken, count, (piece) => warm.includes(piece))
        if (free.length < count) {
          expect(found).toBe(null)
          return
        }
        const first = free.filter((piece) => warm.includes(piece))
        const last = free.filter((piece) => !warm.includes(piece))
        const wanted = [...first, ...last].slice(0, count).sort((a, b) => a - b)
        expect(piecesOf(found ?? [])).toEqual(wanted)
      },
    ),
  )
})

test('Free extents are what no extent takes, merged', () => {
  const taken: readonly Extent[] = [
    { first: 8, count: 5 },
    { first: 1, count: 2 },
    { first: 2, count: 3 },
  ]
  expect(freeExtents(10, taken)).toEqual([
    { first: 0, count: 1 },
    { first: 5, count: 3 },
  ])
  expect(freeExtents(0, taken)).toEqual([])
  expect(extentsOf([4, 2, 3, 9])).toEqual([
    { first: 2, count: 3 },
    { first: 9, count: 1 },
  ])
})

test('Each memory begins with a piece of its own', () => {
  const memories = [
    { uuid: 'a', bytes: 21 },
    { uuid: 'b', bytes: 0 },
    { uuid: 'c', bytes: 10 },
  ]
  expect(pieceCount(memories, 10)).toBe(4)
  expect(layOut(memories, 10, [0, 1, 5, 6]).map(({ extents }) => piecesOf(extents))).toEqual([
    [0, 1, 5],
    [],
    [6],
  ])
})

test('A record is read as it was written, and removed', () => {
  const records = new ArenaRecords(folder)
  records.write({ ...RECORD, phase: 'storing' })
  records.write(RECORD)
  expect(new ArenaRecords(folder).of(RECORD)).toEqual(RECORD)
  expect(new ArenaRecords(folder).of({ ...RECORD, startTime: 501 })).toBe(null)
  records.remove(RECORD)
  expect(records.all()).toEqual([])
  expect(new ArenaRecords(folder).all()).toEqual([])
})

test('Every change of a byte, and every missing end, makes a record damaged', () => {
  new ArenaRecords(folder).write(RECORD)
  const path = join(folder, readdirSync(folder)[0] ?? '')
  const whole = readFileSync(path)
  const damaged = [...whole.keys()].flatMap((at) => [
    Buffer.from(whole.map((byte, index) => (index === at ? byte ^ 1 : byte))),
    whole.subarray(0, at),
  ])
  for (const bytes of damaged) {
    writeFileSync(path, bytes)
    const record = new ArenaRecords(folder).of(RECORD)
    expect(record !== null && isDamaged(record)).toBe(true)
  }
})

test('A record under the name of another process is damaged', () => {
  new ArenaRecords(folder).write(RECORD)
  writeFileSync(join(folder, '12-500'), readFileSync(join(folder, '11-500')))
  const record = new ArenaRecords(folder).of({ pid: 12, startTime: 500 })
  expect(record !== null && isDamaged(record)).toBe(true)
})

test('A record that was not written to its end does not count', () => {
  writeFileSync(join(folder, '11-500.new'), 'headroom')
  expect(new ArenaRecords(folder).all()).toEqual([])
  expect(readdirSync(folder)).toEqual([])
})
