import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { SWAP_PROFILE_NAMES, SWAP_PROFILES, swapDurationMs } from '../../simulator/scenario/swap-profiles.ts'

describe('swap profiles', () => {
  it.each([
    ['stock-driver', 8500, 5600],
    ['pinned-gen3', 2100, 2300],
    ['pinned-gen4', 1100, 1300],
    ['pinned-gen5', 634, 834],
    ['h100-driver-580', 12_488, 5429],
    ['cli-exec', 11_200, 8300],
  ] as const)('%s moves 24 GiB out in %i ms and back in in %i ms', (name, outMs, inMs) => {
    expect(swapDurationMs(SWAP_PROFILES[name], 'out', 24_576)).toBe(outMs)
    expect(swapDurationMs(SWAP_PROFILES[name], 'in', 24_576)).toBe(inMs)
  })

  it('have the names that a scenario accepts', () => {
    expect(SWAP_PROFILE_NAMES).toEqual([
      'stock-driver',
      'pinned-gen3',
      'pinned-gen4',
      'pinned-gen5',
      'h100-driver-580',
      'cli-exec',
    ])
  })

  it('cost the fixed part for zero bytes, and round up', () => {
    const profile = { outMibPerS: 3, inMibPerS: 1000, outFixedMs: 7, inFixedMs: 9 }
    expect(swapDurationMs(profile, 'out', 0)).toBe(7)
    expect(swapDurationMs(profile, 'out', 1)).toBe(7 + 334)
    expect(swapDurationMs(profile, 'in', 5)).toBe(9 + 5)
  })

  it('have the exact ceiling as their duration', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 16_777_216 }),
        fc.integer({ min: 1, max: 16_777_216 }),
        (mib, rate) => {
          const profile = { outMibPerS: rate, inMibPerS: 1, outFixedMs: 0, inFixedMs: 0 }
          const exact = (BigInt(mib) * 1000n + BigInt(rate) - 1n) / BigInt(rate)
          expect(swapDurationMs(profile, 'out', mib)).toBe(Number(exact))
        },
      ),
    )
  })
})
