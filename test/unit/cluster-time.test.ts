import { describe, expect, it } from 'vitest'
import { clockOffset } from '../../controller/model/cluster-time.ts'

const HOUR_MS = 3_600_000

describe('the time of the next leader', () => {
  it('continues that of the leader before when its clock is an hour ahead or behind', () => {
    const newest = { at: 10 * HOUR_MS, ageMs: 1_500 }
    for (const hostNow of [9 * HOUR_MS, 11 * HOUR_MS])
      expect(hostNow + clockOffset(newest, hostNow)).toBe(10 * HOUR_MS + 1_500)
  })

  it('never falls when its clock is a little behind', () => {
    expect(clockOffset({ at: 1_000, ageMs: 0.5 }, 990)).toBe(11)
  })

  it('is that of its host when it is a little ahead, because events arrive late', () => {
    expect(clockOffset({ at: 1_000, ageMs: 200 }, 1_400)).toBe(0)
  })
})
