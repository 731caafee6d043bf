import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { constant } from '../../simulator/kernel/distributions.ts'
import {
  ACTIVITY_MODEL_NAMES,
  type ActivityModel,
  activityModel,
  alwaysBusy,
  GENTD26,
  MAX_PHASES,
  onOff,
  serving,
  SERVING_IDLE_RUNS,
  training,
} from '../../simulator/trace/activity.ts'
import { seededStream } from '../../simulator/kernel/seeded-random.ts'
import type { Work } from '../../simulator/trace/trace-format.ts'
import { aloneMsOf, busyMsOf } from '../../simulator/trace/work.ts'

const HOUR_MS = 3_600_000

function phasesOf(work: Work): ReadonlyArray<readonly [number, number]> {
  if (work.kind !== 'phases') throw new Error(`expected phases, got ${work.kind}`)
  return work.phases
}

function idleShareOver(tasks: number, residenceMs: number, model: ActivityModel): number {
  let busyMs = 0
  for (let i = 0; i < tasks; i++)
    busyMs += busyMsOf(model(residenceMs, seededStream('activity', `task-${i}`)))
  return 1 - busyMs / (tasks * residenceMs)
}

describe('every activity model', () => {
  it.each(ACTIVITY_MODEL_NAMES)(
    '%s fills exactly the given residence time, with GPU work in every phase and no empty phase',
    (name) => {
      const model = activityModel(name)
      fc.assert(
        fc.property(fc.integer({ min: 1, max: 72 * HOUR_MS }), fc.nat(), (residenceMs, seed) => {
          const work = model(residenceMs, seededStream(seed, 'activity'))
          expect(aloneMsOf(work)).toBe(residenceMs)
          if (work.kind !== 'phases') return
          for (const [i, [busyMs, idleMs]] of work.phases.entries()) {
            expect(Number.isSafeInteger(busyMs) && Number.isSafeInteger(idleMs)).toBe(true)
            expect(busyMs).toBeGreaterThanOrEqual(1)
            expect(idleMs).toBeGreaterThanOrEqual(i === work.phases.length - 1 ? 0 : 1)
          }
        }),
      )
    },
  )
  it.each(ACTIVITY_MODEL_NAMES)('%s makes the same phases from the same stream', (name) => {
    const make = (): Work => activityModel(name)(5 * HOUR_MS, seededStream(3, 'activity'))
    expect(make()).toEqual(make())
  })
  it('is found by its name, and an unknown name is refused with the list of names', () => {
    expect(activityModel('serving')).toBe(serving)
    expect(() => activityModel('Serving')).toThrow(
      'no activity model "Serving": there are always-busy, serving, training',
    )
    expect(() => activityModel('constructor')).toThrow(RangeError)
  })
})

describe('always-busy', () => {
  it('works from start to end, for at least 1 ms', () => {
    expect(alwaysBusy(1234, seededStream(1, 'x'))).toEqual({ kind: 'duration', ms: 1234 })
    expect(aloneMsOf(alwaysBusy(0, seededStream(1, 'x')))).toBe(1)
  })
})

describe('serving has the published figures of GenTD26', () => {
  const work = serving(200_000 * 850_000, seededStream('activity', 'calibration'))
  const idleRunsS = phasesOf(work)
    .map(([, idleMs]) => idleMs / 1000)
    .sort((a, b) => a - b)
  const idleS = idleRunsS.reduce((sum, s) => sum + s, 0)
  const longRunsS = idleRunsS.filter((s) => s >= GENTD26.longRunS)
  const quantile = (p: number): number => idleRunsS[Math.ceil(p * idleRunsS.length) - 1]!
  const within = (actual: number, published: number, tolerance: number): void => {
    expect(Math.abs(actual / published - 1), `${actual}, published ${published}`).toBeLessThanOrEqual(
      tolerance,
    )
  }

  it('over about 200,000 idle runs', () => expect(idleRunsS.length).toBeGreaterThan(190_000))
  it('66.8 % of the time without GPU work, within 1 %', () =>
    within(1 - busyMsOf(work) / aloneMsOf(work), 0.668, 0.01))
  it('idle runs of 171 s at the median, within 2 %', () => within(quantile(0.5), 171, 0.02))
  it('idle runs of 1026 s at p90, within 2 %', () => within(quantile(0.9), 1026, 0.02))
  it('idle runs of 5014 s at p99, within 3 %', () => within(quantile(0.99), 5014, 0.03))
  it('29.3 % of idle runs last at least 300 s, within 2 %', () =>
    within(longRunsS.length / idleRunsS.length, 0.293, 0.02))
  it('idle runs of at least 300 s make up 82.5 % of the idle time, within 1 %', () => {
    within(longRunsS.reduce((sum, s) => sum + s, 0) / idleS, 0.825, 0.01)
  })
})

describe('serving', () => {
  it('has exactly the published quantiles of idle runs before any number is drawn', () => {
    const quantileS = (p: number): number => SERVING_IDLE_RUNS.sample(() => p) / 1000
    const published = [[0.5, 171], [0.9, 1026], [0.99, 5014], [1 - 0.293, 300]] as const // prettier-ignore
    for (const [p, seconds] of published) expect(quantileS(p)).toBeCloseTo(seconds, 6)
  })
  it('keeps the idle share and the share of long idle runs for any seed, within 1.5 %', () => {
    for (const seed of ['a', 'b', 'c']) {
      const work = serving(50_000 * 850_000, seededStream(seed, 'activity'))
      const idleRunsS = phasesOf(work).map(([, idleMs]) => idleMs / 1000)
      const longS = idleRunsS.filter((s) => s >= 300).reduce((sum, s) => sum + s, 0)
      expect(Math.abs((1 - busyMsOf(work) / aloneMsOf(work)) / 0.668 - 1)).toBeLessThan(0.015)
      expect(Math.abs(longS / idleRunsS.reduce((sum, s) => sum + s, 0) / 0.825 - 1)).toBeLessThan(0.015)
    }
  })
  it.each([
    ['1 s', 1_000],
    ['1 min', 60_000],
    ['9 min, the median of openb', 545_000],
    ['1 h', HOUR_MS],
    ['1 d', 24 * HOUR_MS],
  ])('has the published idle share in expectation over residences of %s', (_length, residenceMs) => {
    expect(Math.abs(idleShareOver(10_000, residenceMs, serving) - GENTD26.idleShare)).toBeLessThan(0.015)
  })
  it('uses the GPU even when the whole residence is idle', () => {
    for (let i = 0; i < 1000; i++)
      expect(busyMsOf(serving(1000, seededStream(i, 'activity')))).toBeGreaterThanOrEqual(1)
  })
})

describe('training', () => {
  it('starts busy and stays busy nearly all the time, in long runs with short gaps', () => {
    const phases = phasesOf(training(1000 * HOUR_MS, seededStream(1, 'activity')))
    const gaps = phases.map(([, idleMs]) => idleMs).sort((a, b) => a - b)
    expect(gaps[Math.floor(gaps.length / 2)]! / 1000).toBeCloseTo(20, -1)
    expect(idleShareOver(2000, 10 * HOUR_MS, training)).toBeGreaterThan(0.005)
    expect(idleShareOver(2000, 10 * HOUR_MS, training)).toBeLessThan(0.025)
  })
})

describe('on-off', () => {
  it('alternates the given runs, busy first, and cuts the last one at the end', () => {
    const model = onOff(constant(100), constant(50))
    // prettier-ignore
    const phases = [[100, 50], [100, 50]]
    expect(model(400, seededStream(1, 'x'))).toEqual({ kind: 'phases', phases: [...phases, [100, 0]] })
    expect(model(420, seededStream(1, 'x'))).toEqual({ kind: 'phases', phases: [...phases, [100, 20]] })
    expect(model(30, seededStream(1, 'x'))).toEqual({ kind: 'phases', phases: [[30, 0]] })
  })
  it('raises runs below 1 ms to 1 ms and refuses more phases than a task may have', () => {
    // prettier-ignore
    expect(phasesOf(onOff(constant(0), constant(0))(4, seededStream(1, 'x')))).toEqual([[1, 1], [1, 1]])
    expect(() => onOff(constant(0), constant(0))(2 * MAX_PHASES + 1, seededStream(1, 'x'))).toThrow(
      `more than ${MAX_PHASES} phases`,
    )
  })
})
