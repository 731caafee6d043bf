/** The columns of a CSV file as fields of a task. */
import { expect, test } from 'vitest'
import { cellsOf, guessedMapping, mappedHeader, missingOf } from '../../ui/pages/planner/csv-columns.ts'

test.each([
  ['a,b, c ', ['a', 'b', 'c']],
  ['"a, b","say ""x""",c', ['a, b', 'say "x"', 'c']],
  ['a,,b', ['a', '', 'b']],
  ['alone', ['alone']],
])('The cells of %j', (line, cells) => {
  expect(cellsOf(line)).toEqual(cells)
})

test('Usual names are known, in any writing', () => {
  const columns = ['JobID', 'Submit_Time', 'run time', 'num-gpus', 'note']
  expect(guessedMapping(columns)).toEqual({ id: 0, at: 1, duration: 2, gpus: 3 })
})

test('The time of submission and a duration or an end are needed, each from a column of its own', () => {
  expect(missingOf({ duration: 1 })).toMatch(/submission/)
  expect(missingOf({ at: 0 })).toMatch(/duration/)
  expect(missingOf({ at: 0, end: 0 })).toMatch(/once/)
  expect(missingOf({ at: 0, end: 1 })).toBeNull()
})

test('A column that is not chosen gets the name of no field, also if it has that of one', () => {
  expect(mappedHeader(['end', 'start', 'x'], { at: 1, duration: 2 })).toBe('column_1,at,duration')
})
