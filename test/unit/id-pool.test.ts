import { join } from 'node:path'
import { expect, it } from 'vitest'
import { IdPool } from '../../gpu-server/devices/id-pool.ts'
import { temporaryFolder } from '../support/headroom-command.ts'

const RANGE = { from: 200_000, to: 200_003 }
const none = () => new Set<number>()

it('Every attempt gets a different id, and the id that was free longest is used first', () => {
  const pool = new IdPool(RANGE, join(temporaryFolder(), 'next'), none)
  expect(['a', 'b'].map((key) => pool.take(key))).toEqual([200_000, 200_001])
  pool.release('a')
  expect(['c', 'd', 'e'].map((key) => pool.take(key))).toEqual([200_002, 200_003, 200_000])
  expect(pool.take('f')).toBeNull()
  pool.release('d')
  expect(pool.take('f')).toBe(200_003)
})

it('The pool continues after a restart, and adopted attempts keep their id', () => {
  const file = join(temporaryFolder(), 'next')
  const before = new IdPool(RANGE, file, none)
  before.take('a')
  before.take('b')
  const after = new IdPool(RANGE, file, none)
  after.adopt('c', 200_003)
  expect(['d', 'e'].map((key) => after.take(key))).toEqual([200_002, 200_000])
})

it('The pool returns no id that a living process has', () => {
  const pool = new IdPool(RANGE, join(temporaryFolder(), 'next'), () => new Set([200_000, 200_002]))
  expect(['a', 'b', 'c'].map((key) => pool.take(key))).toEqual([200_001, 200_003, null])
})

it('The pool begins at the start of its range if its saved position is damaged or of another range', () => {
  const file = join(temporaryFolder(), 'next')
  new IdPool({ from: 5, to: 9 }, file, none).take('a')
  expect(new IdPool(RANGE, file, none).take('a')).toBe(200_000)
})
