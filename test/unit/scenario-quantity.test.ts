import { describe, expect, it } from 'vitest'
import { nearestName } from '../../simulator/document/nearest-name.ts'
import {
  formatDuration,
  parseDuration,
  parseInstant,
  parseRange,
  parseSizeMib,
  rangeCount,
  rangeValues,
} from '../../simulator/document/quantity.ts'

describe('a duration', () => {
  it.each([
    ['250ms', 250],
    ['90s', 90_000],
    ['10m', 600_000],
    ['6h', 21_600_000],
    ['2d', 172_800_000],
    ['0s', 0],
  ])('of %s is %i ms', (text, ms) => expect(parseDuration(text)).toBe(ms))

  it.each(['1.5h', '10', '10 m', '-5s', 'm', '1h30m', '1e3s', '999999999999999d', '10M', ''])(
    'cannot be written as %j',
    (text) => {
      expect(parseDuration(text)).toBeNull()
    },
  )

  it.each([
    [0, '0'],
    [1, '1ms'],
    [1500, '1500ms'],
    [90_000, '90s'],
    [172_800_000, '2d'],
  ])('of %i ms is written %s', (ms, text) => expect(formatDuration(ms)).toBe(text))
})

describe('a size', () => {
  it('is written in Mi or Gi', () => {
    expect(parseSizeMib('512Mi')).toBe(512)
    expect(parseSizeMib('24Gi')).toBe(24_576)
  })

  it.each(['24', '24G', '24GiB', '1.5Gi', '-1Gi'])('cannot be written as %j', (text) =>
    expect(parseSizeMib(text)).toBeNull(),
  )
})

describe('an instant', () => {
  it.each([
    ['2026-01-01T00:00:00Z', Date.UTC(2026, 0, 1)],
    ['2026-01-01T02:00:00+02:00', Date.UTC(2026, 0, 1)],
    ['2025-12-31T18:30:00-05:30', Date.UTC(2026, 0, 1)],
    ['2024-02-29T23:59:59.5Z', Date.UTC(2024, 1, 29, 23, 59, 59, 500)],
    ['2026-01-01t00:00:00z', Date.UTC(2026, 0, 1)],
  ])('can be written as %s', (text, instant) => expect(parseInstant(text)).toBe(instant))

  it.each([
    '2026-02-29T00:00:00Z',
    '2026-13-01T00:00:00Z',
    '2026-01-01T24:00:00Z',
    '2026-01-01T00:00:60Z',
    '2026-01-01',
    '2026-01-01T00:00:00',
    '2026-01-01T00:00:00+24:00',
    '1969-12-31T23:59:59Z',
    '1970-01-01T00:00:00+01:00',
  ])('cannot be written as %s', (text) => expect(parseInstant(text)).toBeNull())
})

describe('a range', () => {
  it('includes its end if a step reaches it', () => {
    expect(rangeValues(parseRange('1..5')!)).toEqual([1, 2, 3, 4, 5])
    expect(rangeValues(parseRange('0..200:50')!)).toEqual([0, 50, 100, 150, 200])
    expect(rangeValues(parseRange('0..10:4')!)).toEqual([0, 4, 8])
    expect(rangeValues(parseRange('7..7')!)).toEqual([7])
  })

  it('is counted without creating its values', () =>
    expect(rangeCount(parseRange('0..9999999999')!)).toBe(10_000_000_000))

  it.each(['5..1', '1..5:0', '1...5', '-1..5', '1..', '1.5..2'])('cannot be written as %j', (text) =>
    expect(parseRange(text)).toBeNull(),
  )
})

describe('the suggested name', () => {
  const names = ['vram_mib', 'gpu_mode', 'safety_reserve_mib', 'scenario', 'seed']

  it.each([
    ['vramMib', 'vram_mib'],
    ['VRAM-MIB', 'vram_mib'],
    ['vram_mb', 'vram_mib'],
    ['scneario', 'scenario'],
    ['sede', 'seed'],
    ['reserve', 'safety_reserve_mib'],
  ])('for %s is %s', (written, near) => expect(nearestName(written, names)).toBe(near))

  it.each(['zzz', 'completely_different', 'x'.repeat(100_000)])('for %.20s is missing', (written) => {
    expect(nearestName(written, names)).toBeNull()
  })
})
