/** The parts of charts over time that need no browser. */
import { expect, test } from 'vitest'
import { figuresOf, lonelyIndexes } from '../../ui/charts/series-data.ts'
import { shareCursor, sharedReadouts } from '../../ui/charts/shared-cursor.ts'
import { spanOf } from '../../ui/state/span.ts'

test('A legend has the last, lowest and highest known value of a line', () => {
  expect(figuresOf([null, 3, -1, 7, 2, null])).toEqual([2, -1, 7])
  expect(figuresOf([0])).toEqual([0, 0, 0])
  expect(figuresOf([null])).toEqual([null, null, null])
  expect(figuresOf([])).toEqual([null, null, null])
})

test('Charts with the same key share their values at an instant until they leave', () => {
  const readout = (name: string) => (at: number) => ({ name: `${name} at ${at}`, lines: [] })
  const leave = ['a', 'b'].map((name) => shareCursor('page', readout(name)))
  const leaveOther = shareCursor('other', readout('c'))
  const names = (key: string): readonly string[] => sharedReadouts(key, 5).map(({ name }) => name)
  expect(names('page')).toEqual(['a at 5', 'b at 5'])
  leave[0]?.()
  expect(names('page')).toEqual(['b at 5'])
  leave[1]?.()
  expect(names('page')).toEqual([])
  expect(names('other')).toEqual(['c at 5'])
  leaveOther()
})

test('The time range of an address is fixed by from and to, or by at; else it ends now', () => {
  const [from, to] = ['2026-01-02T03:00:00.000Z', '2026-01-02T04:00:00.000Z']
  expect(spanOf({ from, to })).toEqual({ from, to, at: null })
  expect(spanOf({ at: '2026-01-02T03:30:00Z' })).toEqual({ from, to, at: '2026-01-02T03:30:00.000Z' })
  for (const wrong of [{}, { from }, { to }, { from: to, to: from }, { from, to: from }, { from: 'x', to }])
    expect(spanOf(wrong), JSON.stringify(wrong)).toBe(null)
  expect(spanOf({ from: '1969-12-31T23:00:00Z', to })).toBe(null)
})

test('A value between two gaps, or alone at an end, is drawn as a dot', () => {
  expect(lonelyIndexes([1, null, 2, 3, null, 4, undefined, 5])).toEqual([0, 5, 7])
  expect(lonelyIndexes([7])).toEqual([0])
  expect(lonelyIndexes([null, 1, 2])).toEqual([])
  expect(lonelyIndexes([])).toEqual([])
})
