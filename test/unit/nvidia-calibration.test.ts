import { expect, test } from 'vitest'
import { swapDurationMs } from '../../simulator/scenario/swap-profiles.ts'
import { fitProfile } from '../gpu/calibration.ts'

test('A profile is recovered from swaps that follow it, despite an outlier', () => {
  const profile = { outMibPerS: 3072, inMibPerS: 5120, outFixedMs: 500, inFixedMs: 800 }
  const swaps = [15360, 15360, 15360, 46080, 46080, 46080].flatMap((mib, round) =>
    (['out', 'in'] as const).map((direction) => ({
      direction,
      mib,
      ms: swapDurationMs(profile, direction, mib) + (round === 2 ? 9000 : 0),
    })),
  )
  expect(fitProfile(swaps)).toEqual(profile)
})

test('No profile results if the larger swap took no longer, or from a single size', () => {
  expect(
    fitProfile(
      [100, 200].flatMap((mib) => (['out', 'in'] as const).map((direction) => ({ direction, mib, ms: 5 }))),
    ),
  ).toBe(null)
  expect(fitProfile([{ direction: 'out', mib: 1, ms: 1 }])).toBe(null)
})
