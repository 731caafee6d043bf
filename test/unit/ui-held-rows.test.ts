import { describe, expect, test } from 'vitest'
import { stableRows } from '../../ui/tables/stable-rows.ts'

interface Row {
  readonly id: string
  readonly value: number
}
const row = (id: string, value = 0): Row => ({ id, value })
const idOf = ({ id }: Row): string => id

describe('rows that hold still', () => {
  test('figures are new, places are not', () => {
    const held = stableRows([row('a'), row('b')], [row('a', 1), row('b', 2)], idOf)
    expect(held).toEqual({ rows: [row('a', 1), row('b', 2)], pending: 0 })
  })

  test('A new task waits and a finished one stays unchanged: a new row that replaces another is one update', () => {
    const held = stableRows([row('a'), row('b')], [row('c'), row('a', 1)], idOf)
    expect(held).toEqual({ rows: [row('a', 1), row('b')], pending: 1 })
  })

  test('rows that only change places are counted, and stay', () => {
    const held = stableRows([row('a'), row('b'), row('c')], [row('b'), row('a'), row('c')], idOf)
    expect(held).toEqual({ rows: [row('a'), row('b'), row('c')], pending: 2 })
  })

  test('a list that becomes empty leaves all of them pending', () => {
    expect(stableRows([row('a'), row('b')], [], idOf).pending).toBe(2)
  })
})
