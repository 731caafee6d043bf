import { describe, expect, test } from 'vitest'
import { stableRows } from '../../ui/design/stable-rows.ts'

interface Row {
  readonly id: string
  readonly value: number
}
const row = (id: string, value = 0): Row => ({ id, value })
const idOf = ({ id }: Row): string => id

describe('rows with a stable order', () => {
  test('have new figures in the same places', () => {
    const held = stableRows([row('a'), row('b')], [row('a', 1), row('b', 2)], idOf)
    expect(held).toEqual({ rows: [row('a', 1), row('b', 2)], pending: 0 })
  })

  test('count a new row that replaces another as one pending update', () => {
    const held = stableRows([row('a'), row('b')], [row('c'), row('a', 1)], idOf)
    expect(held).toEqual({ rows: [row('a', 1), row('b')], pending: 1 })
  })

  test('keep their order, and count rows that would move', () => {
    const held = stableRows([row('a'), row('b'), row('c')], [row('b'), row('a'), row('c')], idOf)
    expect(held).toEqual({ rows: [row('a'), row('b'), row('c')], pending: 2 })
  })

  test('all stay pending when the list becomes empty', () => {
    expect(stableRows([row('a'), row('b')], [], idOf).pending).toBe(2)
  })
})
