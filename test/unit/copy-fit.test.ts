import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { copyErrorPercent, fitCopies, median } from '../../simulator/calibration/copy-fit.ts'

const PROFILE = { fixedMs: 500, mibPerS: 3072 }
const timeOn = ({ fixedMs, mibPerS }: typeof PROFILE, mib: number) => fixedMs + (1000 * mib) / mibPerS

describe('the fit of observed copies', () => {
  it('is the profile without observations, and while fewer contradict it than it counts for', () => {
    expect(fitCopies([], PROFILE)).toEqual(PROFILE)
    const slow = { mib: 8000, ms: 3 * timeOn(PROFILE, 8000) }
    expect(fitCopies([slow, slow], PROFILE)).toEqual(PROFILE)
    expect(fitCopies([slow, slow, slow, slow], PROFILE)).toEqual({ fixedMs: 1500, mibPerS: 1024 })
  })

  it('scales the profile where all copies have one size: rate and fixed part cannot be distinguished', () => {
    const copies = Array.from({ length: 20 }, () => ({ mib: 16_000, ms: 2 * timeOn(PROFILE, 16_000) }))
    expect(fitCopies(copies, PROFILE)).toEqual({ fixedMs: 1000, mibPerS: 1536 })
  })

  it('finds fixed part and rate of copies of several sizes, although every fourth takes far too long', () => {
    const line = fc.record({
      fixedMs: fc.integer({ min: 0, max: 5_000 }),
      mibPerS: fc.integer({ min: 100, max: 20_000 }),
    })
    const count = fc.integer({ min: 12, max: 32 })
    const delays = fc.double({ min: 2, max: 20, noNaN: true })
    fc.assert(
      fc.property(line, count, delays, (truth, copiesSeen, delay) => {
        const copies = Array.from({ length: copiesSeen }, (_, index) => {
          const mib = 1_000 * (1 + ((index * 7) % copiesSeen))
          return { mib, ms: timeOn(truth, mib) * (index % 4 === 3 ? delay : 1) }
        })
        const fit = fitCopies(copies, PROFILE)
        for (const mib of [1_000, 5_000, 1_000 * copiesSeen]) {
          expect(Math.abs(timeOn(fit, mib) - timeOn(truth, mib))).toBeLessThanOrEqual(
            0.01 * timeOn(truth, mib) + 1,
          )
        }
      }),
    )
  })

  it('never has a negative fixed part or rate', () => {
    const copies = fc.array(
      fc.record({ mib: fc.integer({ min: 1, max: 80_000 }), ms: fc.integer({ min: 0, max: 600_000 }) }),
      { maxLength: 32 },
    )
    fc.assert(
      fc.property(copies, (all) => {
        const { fixedMs, mibPerS } = fitCopies(all, PROFILE)
        expect(fixedMs).toBeGreaterThanOrEqual(0)
        expect(mibPerS).toBeGreaterThanOrEqual(1)
        expect(mibPerS).toBeLessThanOrEqual(1_000_000)
        expect(Number.isInteger(fixedMs) && Number.isInteger(mibPerS)).toBe(true)
      }),
    )
  })

  it('states the median deviation of its copies', () => {
    expect(copyErrorPercent([], PROFILE)).toBeNull()
    const exact = { mib: 3072, ms: 1500 }
    expect(copyErrorPercent([exact], PROFILE)).toBe(0)
    expect(copyErrorPercent([exact, { mib: 3072, ms: 3000 }, { mib: 3072, ms: 3000 }], PROFILE)).toBe(50)
  })
})

it('The median of an even number of values is the mean of the two in the middle', () => {
  expect([median([3, 1, 2]), median([4, 1, 2, 3]), median([])]).toEqual([2, 2.5, 0])
})
