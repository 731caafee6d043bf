import { expect, test } from 'vitest'
import { swapDurationMs } from '../../simulator/fleet/swap-profiles.ts'
import { fitProfile } from '../gpu/calibration.ts'

test('a profile is found again from swaps that followed it, an outlier apart', () => {
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

test('no profile where the larger swap was no longer, or there is one size only', () => {
  expect(
    fitProfile(
      [100, 200].flatMap((mib) => (['out', 'in'] as const).map((direction) => ({ direction, mib, ms: 5 }))),
    ),
  ).toBe(null)
  expect(fitProfile([{ direction: 'out', mib: 1, ms: 1 }])).toBe(null)
})
