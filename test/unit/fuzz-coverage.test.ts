import { describe, expect, it } from 'vitest'
import {
  coverageRows,
  missingPaths,
  SEEDS_FOR_RARE,
  SEEDS_FOR_USUAL,
} from '../../simulator/experiment/fuzz/coverage-table.ts'
import { addCounts } from '../../simulator/experiment/fuzz/coverage.ts'

describe('the paths that fuzz seeds take', () => {
  it('Each path has a number of seeds from which it is required', () => {
    const nothing = new Map<string, number>()
    expect(missingPaths(nothing, SEEDS_FOR_USUAL - 1)).toEqual([])
    const usual = missingPaths(nothing, SEEDS_FOR_USUAL)
    expect(usual).toContain('fault partition')
    expect(usual).not.toContain('round closed p0')
    expect(missingPaths(nothing, SEEDS_FOR_RARE)).toContain('round closed p0')
    expect(missingPaths(new Map([['fault partition', 1]]), SEEDS_FOR_USUAL)).not.toContain('fault partition')
  })

  it('are shown with their counts, including zero', () => {
    const counts = new Map<string, number>()
    addCounts(counts, { 'placed now': 2 })
    addCounts(counts, { 'placed now': 3, 'a path': 1 })
    const rows = coverageRows(counts)
    expect(rows).toContain('         5  placed now')
    expect(rows).toContain('         1  a path')
    expect(rows).toContain('         0  fault partition')
  })
})
