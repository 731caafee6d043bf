import { describe, expect, it } from 'vitest'
import { fuzzStart, MAX_FUZZ_START } from '../support/fuzz-start.ts'

describe('the first seed of a fuzz run', () => {
  it('differs from run to run', () => {
    const starts = Array.from({ length: 100 }, () => fuzzStart({}))
    expect(new Set(starts).size).toBeGreaterThan(95)
    expect(Math.max(...starts)).toBeLessThanOrEqual(MAX_FUZZ_START)
  })

  it('can be given to repeat a run', () => {
    expect(fuzzStart({ HEADROOM_FUZZ_FROM: '700004399' })).toBe(700_004_399)
    for (const wrong of ['-1', '1.5', 'x', '4284000001'])
      expect(() => fuzzStart({ HEADROOM_FUZZ_FROM: wrong })).toThrow('HEADROOM_FUZZ_FROM')
  })
})
