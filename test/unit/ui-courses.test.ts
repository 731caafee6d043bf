/**
 * Curves of the planner: means over intervals, bands over seeds, the compared percentages, and the placement
 * of labels.
 */
import { describe, expect, it, test } from 'vitest'
import { labelPlaces } from '../../ui/charts/label-places.ts'
import { csvOf } from '../../ui/format/csv.ts'
import { coursesOf, meansOf, sidesOf } from '../../ui/pages/planner/run-courses.ts'

describe('the mean over an interval', () => {
  it('weights each value by its duration', () => {
    // 10 for 30 s, 40 for 10 s, then 20 for 40 s.
    expect(meansOf([30, 40, 80], [10, 40, 20], [20, 40, 80])).toEqual([10, (10 * 10 + 40 * 10) / 20, 20])
  })

  it('is null after the end of the run, and covers the part before an end within the interval', () => {
    expect(meansOf([10], [5], [8, 16, 24])).toEqual([5, 5, null])
    expect(meansOf([], [], [10])).toEqual([null])
  })

  it('of a finer axis is the value in effect', () => {
    expect(meansOf([60], [7], [20, 40, 60])).toEqual([7, 7, 7])
  })
})

test('Curves have one time axis, swap-outs per hour, and the median over seeds with its band', () => {
  const run = (busy: number, swaps: number, length: number) => ({
    x: [length / 2, length],
    series: [
      { name: 'utilization_percent', values: [busy, busy] },
      { name: 'swap_outs', values: [swaps, 0] },
    ],
  })
  const { ends, of } = coursesOf([run(10, 1, 3600), run(20, 2, 3600), run(30, 3, 3600)], [run(90, 0, 7200)])
  expect([ends.length, ends[0], ends.at(-1)]).toEqual([60, 120, 7200])
  expect([
    of.utilization_percent.before.values[0],
    of.utilization_percent.before.band.map((edge) => edge[0]),
  ]).toEqual([20, [10, 30]])
  // The shorter run has ended in the second half.
  expect([of.utilization_percent.before.values[29], of.utilization_percent.before.values[30]]).toEqual([
    20,
    null,
  ])
  expect(of.utilization_percent.after.values.at(-1)).toBe(90)
  // One in half an hour is two an hour.
  expect(of.swap_outs.before.band[0].slice(0, 16)).toEqual([...Array.from({ length: 15 }, () => 2), 0])
  // A series that a run does not have is not 0.
  expect(of.tasks_pending.before.values[0]).toBeNull()
})

describe('the compared percentages', () => {
  const advice = (recommended: number | null, nearest?: number) => ({
    settings: {},
    objectives: [],
    recommended_percent: recommended,
    utilization_percent: null,
    knee_percent: null,
    caveats: nearest === undefined ? [] : [{ kind: 'none_keeps', nearest_percent: nearest }],
    candidates: [],
    text: '',
  })
  test.each([
    ['the current setting and the recommendation', [0, 25, 50], advice(50), 25, { before: 25, after: 50 }],
    [
      'the lowest one if the current setting was not tried',
      [0, 25, 50],
      advice(50),
      30,
      { before: 0, after: 50 },
    ],
    [
      'the lowest one if the current setting is recommended',
      [0, 25, 50],
      advice(25),
      25,
      { before: 0, after: 25 },
    ],
    ['the next one if the lowest is recommended', [0, 25, 50], advice(0), null, { before: 25, after: 0 }],
    [
      'the closest one if none keeps the objectives',
      [0, 25, 50],
      advice(null, 25),
      0,
      { before: 0, after: 25 },
    ],
    ['the highest one if nothing is known', [0, 25, 50], advice(null), 0, { before: 0, after: 50 }],
    ['missing if only one was tried', [25], advice(25), 0, null],
    ['missing if none was tried', [], advice(null), 0, null],
  ] as const)('are %s', (_name, tried, given, current, sides) =>
    expect(sidesOf(tried, given, current)).toEqual(sides),
  )
})

describe('the labels of points', () => {
  const room = { left: 0, right: 100, top: 0, bottom: 100, height: 10, gap: 4 }
  it('are above their point, and next to it if that place is taken or outside', () => {
    expect(labelPlaces([{ x: 10, y: 50, width: 20 }], room)).toEqual([{ left: 14, middle: 43 }])
    const [, second] = labelPlaces(
      [
        { x: 10, y: 50, width: 20 },
        { x: 12, y: 50, width: 20 },
      ],
      room,
    )
    expect(second).toEqual({ left: 16, middle: 57 })
    expect(labelPlaces([{ x: 95, y: 50, width: 20 }], room)).toEqual([{ left: 71, middle: 43 }])
  })

  it('overlap neither each other nor a point', () => {
    const points = Array.from({ length: 6 }, (_, index) => ({ x: 40 + index * 3, y: 50, width: 18 }))
    const boxes = labelPlaces(points, room).flatMap((place) =>
      place === null
        ? []
        : [{ left: place.left, right: place.left + 18, top: place.middle - 5, bottom: place.middle + 5 }],
    )
    expect(boxes.length).toBeGreaterThan(3)
    boxes.forEach((a, at) => {
      const others = boxes.filter((_, index) => index > at)
      expect(
        others.some((b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom),
      ).toBe(false)
      expect(points.some(({ x, y }) => a.left < x && x < a.right && a.top < y && y < a.bottom)).toBe(false)
    })
  })

  it('are left out without space', () => {
    expect(labelPlaces([{ x: 50, y: 50, width: 200 }], room)).toEqual([null])
  })
})

test('A table as CSV quotes special characters and contains no formulas', () => {
  expect(csvOf([['a,b', 'say "x"', '=1+1', '-3', '-x', null, 0.1 + 0.2, 0]])).toBe(
    `"a,b","say ""x""",'=1+1,-3,'-x,,0.30000000000000004,0\n`,
  )
})
