/** GET /summary compares its figures with those of the same hour yesterday. */
import { describe, expect, test } from 'vitest'
import { createYesterday, trendsOf } from '../../controller/api/observe/trends.ts'
import { Series } from '../../controller/series/series.ts'
import { trendWords } from '../../ui/format/figures.ts'
import { apiClient } from '../support/api-client.ts'
import { FakeController, NODE_ID } from '../support/api-world.ts'

const UNKNOWN = { utilization: null, starvation: null, pending: null }

describe('the trends of the summary', () => {
  test('are unknown before a day has passed, and then differences to yesterday', async () => {
    const world = new FakeController()
    world.now = Date.UTC(2026, 0, 2, 3)
    await world.addNode({ id: NODE_ID, gpus: 1, physicalMib: 40_000 })
    const series = new Series(world.views)
    series.take()
    const api = await apiClient(world, { series })
    /** One sample a minute, in which one GPU is busy and starved for this share. */
    const pass = (minutes: number, busyPercent: number, starvedPercent: number): void => {
      for (let minute = 0; minute < minutes; minute++) {
        world.now += 60_000
        const { busy, served, demand, queue } = world.counters
        world.counters = {
          ...world.counters,
          busy: busy + busyPercent * 600_000,
          demand: demand + 60_000_000,
          served: served + (100 - starvedPercent) * 600_000,
          queue: queue + starvedPercent * 600_000,
        }
        series.take()
      }
    }
    pass(60, 80, 10)
    expect((await api.send('GET', '/summary')).body.trends).toEqual({
      ...{ utilization_points: null, starvation_points: null, pending_tasks: null },
    })
    pass(24 * 60, 55, 30)
    const { trends } = (await api.send('GET', '/summary')).body
    expect(trends.utilization_points).toBeCloseTo(-25, 0)
    expect(trends.starvation_points).toBeCloseTo(20, 0)
    expect(trends.pending_tasks).toBe(0)
    await api.app.close()
  })

  test('are in tenths, and unknown if one of the two figures is', () => {
    expect(
      trendsOf(
        { utilization: 70.16, starvation: 5, pending: 3 },
        { utilization: 60, starvation: 5.04, pending: null },
      ),
    ).toEqual({ utilization_points: 10.2, starvation_points: 0, pending_tasks: null })
    expect(trendsOf(UNKNOWN, { utilization: 1, starvation: 1, pending: 1 })).toEqual({
      ...{ utilization_points: null, starvation_points: null, pending_tasks: null },
    })
  })

  test('read the past once a minute, and nothing before 1970', () => {
    let reads = 0
    const yesterday = createYesterday({
      answer: ({ from, to }) => {
        reads += 1
        expect(to - from).toBe(3_600_000)
        return { grid: { tier: 0, from, stepMs: to - from, points: 1 }, columns: [], storms: [] }
      },
    })
    expect(yesterday(3_600_000)).toEqual(UNKNOWN)
    expect(reads).toBe(0)
    const at = Date.UTC(2026, 0, 1)
    for (const after of [0, 1_000, 59_999]) yesterday(at + after)
    expect(reads).toBe(1)
    yesterday(at + 60_000)
    expect(reads).toBe(2)
    // A session that jumps back has another yesterday.
    yesterday(at)
    expect(reads).toBe(3)
  })

  test.each([
    [null, 'pp', '—'],
    [undefined, 'tasks', '—'],
    [5.2, 'pp', '+5.2 pp'],
    [-0.1, 'pp', '−0.1 pp'],
    [0, 'pp', '±0 pp'],
    [-1234.4, 'tasks', '−1,234 tasks'],
    [0.3, 'tasks', '±0 tasks'],
  ] as const)('are shown with their sign: %s %s', (by, unit, words) => {
    expect(trendWords(by, unit)).toBe(words)
  })
})
