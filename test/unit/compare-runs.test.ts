import { describe, expect, it } from 'vitest'
import { compareRuns, formatComparison, hasDifferences } from '../../simulator/report/compare-runs.ts'
import type { ComparableRun } from '../../simulator/report/compare-runs.ts'
import { sweptRun } from '../support/swept-run.ts'

const PERCENTAGES = [0, 50]
const SEEDS = [1, 2, 3]

function sweep(utilization: (percent: number, seed: number) => number): ComparableRun[] {
  return PERCENTAGES.flatMap((percent) =>
    SEEDS.map((seed) => sweptRun({ percent, seed, utilization: utilization(percent, seed) })),
  )
}

function single(run: ReturnType<typeof sweptRun>): ComparableRun {
  const { overcommit_percent: _percent, settings: _settings, ...rest } = run
  return rest
}

describe('a comparison of two sweeps', () => {
  const before = sweep((percent, seed) => percent + seed)

  it('is empty for equal sweeps', () => {
    const comparison = compareRuns(before, before.toReversed())
    expect(comparison).toEqual({ pairs: 6, same: 6, only_in_a: [], only_in_b: [], groups: [] })
    expect(hasDifferences(comparison)).toBe(false)
    expect(formatComparison(comparison)).toBe('6 pairs of runs: 6 the same, 0 different\n')
  })

  it('lists the different figures seed by seed, at the percentages where they differ', () => {
    const after = sweep((percent, seed) => percent + seed + (percent === 50 ? 2 + seed / 100 : 0))
    const comparison = compareRuns(before, after)
    expect(comparison).toMatchObject({ pairs: 6, same: 3 })
    expect(comparison.groups).toHaveLength(1)
    const [group] = comparison.groups
    expect(group).toMatchObject({ title: '50%', pairs: 3, digests: 0 })
    expect(group?.figures).toHaveLength(1)
    expect(group?.figures[0]).toMatchObject({
      figure: 'utilization_percent',
      a: 52,
      higher: 3,
      lower: 0,
      one_sided: 0,
      difference: { pairs: 3, told_apart: true },
    })
    expect(group?.figures[0]?.difference.mean).toBeCloseTo(2.02)
    expect(formatComparison(comparison)).toMatch(
      new RegExp(
        /\novercommit 50%\n +A +B +B − A\nutilization_percent +52\.000 +54\.020 +\+2\.020 ± /.source +
          /0\.025 +told apart +higher in 3, lower in 0\n$/.source,
      ),
    )
  })

  it('names runs that exist in only one sweep and pairs the others', () => {
    const comparison = compareRuns(before.slice(1), [
      ...before.slice(0, 5),
      sweptRun({ percent: 80, seed: 1 }),
    ])
    expect(comparison).toMatchObject({
      pairs: 4,
      same: 4,
      only_in_a: ['50%, seed 3'],
      only_in_b: ['0%, seed 1', '80%, seed 1'],
    })
    expect(hasDifferences(comparison)).toBe(true)
    expect(formatComparison(comparison)).toContain(
      'only in A: 50%, seed 3\nonly in B: 0%, seed 1; 80%, seed 1\n',
    )
    const many = Array.from({ length: 12 }, (_, i) => sweptRun({ percent: 0, seed: 100 + i }))
    expect(formatComparison(compareRuns(before, [...before, ...many]))).toContain('seed 109 and 2 more\n')
  })

  it('ignores the setting if each sweep has one, and otherwise pairs runs by setting', () => {
    const at = (settings: Record<string, number>): ComparableRun[] =>
      SEEDS.map((seed) => sweptRun({ percent: 50, seed, settings }))
    expect(compareRuns(at({ x: 1 }), at({ x: 2 })).pairs).toBe(3)
    const both = [...at({ x: 1 }), ...at({ x: 2 })]
    const comparison = compareRuns(both, at({ x: 2 }))
    expect([comparison.pairs, comparison.only_in_a[0]]).toEqual([3, '50%, x=1, seed 1'])
  })

  it('reports journals that differ while all figures are equal', () => {
    const [first, ...rest] = before as [ComparableRun, ...ComparableRun[]]
    const comparison = compareRuns(before, [{ ...first, digest: 'another' }, ...rest])
    expect(comparison.groups).toEqual([{ title: '0%', pairs: 3, digests: 1, figures: [] }])
    expect(formatComparison(comparison)).toContain('every figure is the same; the journals of 1 of 3 differ')
  })
})

describe('a comparison of two single runs', () => {
  it('pairs them whatever their seeds, and shows a figure that only one run has', () => {
    const wait = { mean: 1, p50: 1, p95: 1, p99: 1 }
    const a = single(sweptRun({ percent: 0, seed: 1, utilization: 40 }))
    const b = single(sweptRun({ percent: 0, seed: 2, utilization: 39, queueWait: wait }))
    const comparison = compareRuns([a], [b])
    expect(comparison.groups[0]?.figures.map(({ figure, one_sided }) => [figure, one_sided])).toEqual([
      ['utilization_percent', 0],
      ['queue_wait_s.mean', 1],
      ['queue_wait_s.p50', 1],
      ['queue_wait_s.p95', 1],
      ['queue_wait_s.p99', 1],
    ])
    const text = formatComparison(comparison)
    expect(text).toMatch(/^1 pair of runs: 0 the same, 1 different\n\n +A +B +B − A\n/)
    expect(text).toMatch(/\nutilization_percent +40\.000 +39\.000 +−1\.000\n/)
    expect(text).toMatch(/\nqueue_wait_s\.mean +– +– +–\n/)
  })
})
