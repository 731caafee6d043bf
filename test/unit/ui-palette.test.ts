/** The order in which the palette shows what it finds. */
import { expect, test } from 'vitest'
import { MAX_SHOWN, ranked, type Entry } from '../../ui/components/palette/entries.ts'

const entry = (kind: Entry['kind'], name: string, also?: string): Entry => ({
  kind,
  name,
  go: '/',
  ...(also === undefined ? {} : { also }),
})
const ENTRIES = [
  entry('Action', 'Submit task'),
  entry('Page', 'Tasks'),
  entry('Task', 'my-task', 'b1c0'),
  entry('Task', 'task', 'b1c1'),
  entry('Setting', 'Safety reserve per GPU', 'safety_reserve_mib'),
]
const names = (text: string) => ranked(ENTRIES, text).map(({ name }) => name)

test('Without a text only actions and pages are shown', () => {
  expect(names(' ')).toEqual(['Submit task', 'Tasks'])
})

test('The exact name comes first, then names that begin with it, then those with such a word', () => {
  expect(names('task')).toEqual(['task', 'Tasks', 'Submit task', 'my-task'])
})

test('An id is found when it is complete, and all words of a text must be found', () => {
  expect(names('B1C0')).toEqual(['my-task'])
  expect(names('gpu safety')).toEqual(['Safety reserve per GPU'])
  expect(names('reserve_mib')).toEqual(['Safety reserve per GPU'])
  expect(names('gpu other')).toEqual([])
})

test('Only the first of many are shown', () => {
  const many = Array.from({ length: 100 }, (_, at) => entry('Task', `task-${at}`))
  expect(ranked(many, 'task')).toHaveLength(MAX_SHOWN)
})
