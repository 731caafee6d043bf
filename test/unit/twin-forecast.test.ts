/** Forecasts of a world with a known outcome: starts, changes, and predictions against outcomes. */
import { describe, expect, it } from 'vitest'
import {
  isForecast,
  type ChangeForecast,
  type ClusterSnapshot,
  type DriftEntry,
  type RecentPast,
} from '../../controller/ports/twin.ts'
import { DriftMonitor } from '../../services/twin/drift-monitor.ts'
import { LatestStarts } from '../../services/twin/latest-starts.ts'
import { RecentPastReader } from '../../services/twin/recent-past.ts'
import { twinJob, type TwinAnswer } from '../../services/twin/twin-job.ts'
import { workloadOf } from '../../simulator/scenario/generate.ts'
import { loadScenario } from '../../simulator/scenario/load.ts'
import { changeOf, forecastChange } from '../../simulator/twin/change-forecast.ts'
import {
  compare,
  driftReport,
  DRIFT_INTERVAL_MS,
  predictInterval,
  MAX_DRIFT_HISTORY,
  withEntry,
  withheldBecause,
} from '../../simulator/twin/drift.ts'
import { forecastStarts } from '../../simulator/twin/start-forecast.ts'
import { World } from '../../simulator/world/world.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const PLENTY = { spent: () => 0, maxRuns: 6, horizonMs: HOUR_MS }

/** One GPU for one task at a time, each busy for 20 minutes; a task always waits. */
const QUEUE = `
scenario: queue
version: 1
fleet: [{ name: one, gpu: { vram_mib: 24000 } }]
workload:
${Array.from(
  { length: 40 },
  (_, i) => `  - { task: { id: t${i}, at: ${i * 18}m, vram_mib: 16000, run: 20m } }`,
).join('\n')}
`
/** Tasks that idle most of the time on two GPUs, more than fit at once. */
const IDLERS = `
scenario: idlers
version: 1
fleet: [{ name: one, gpus: 2, gpu: { vram_mib: 40000 } }]
config: { default_vram_overcommit_percent: 0, idle_swap_out_seconds: 120 }
workload:
  - { generate: poisson, rate_per_hour: 24, until: 14h, vram_mib: 15000,
      duration: { exponential: { mean: 30m } }, activity: serving }
`

describe('a forecast of starts', () => {
  it('is exact for each waiting task if all tasks are equal', async () => {
    const { world, image, past } = await worldAt(QUEUE, 12 * HOUR_MS)
    const forecast = await forecastStarts(image, past, PLENTY)
    if (!isForecast(forecast)) throw new Error(forecast.detail)
    const waiting = image.tasks.filter(({ placement }) => placement === null).map(({ id }) => id)
    expect(waiting.length).toBeGreaterThanOrEqual(1)
    const started = new Map<string, number>()
    world.listen((events) =>
      events.forEach(({ kind, taskId, at }) => kind === 'task_started' && started.set(taskId ?? '', at)),
    )
    await world.runUntil(14 * HOUR_MS)
    for (const id of waiting.slice(0, 2)) {
      expect(forecast.starts.get(id)).toEqual({
        p50: started.get(id),
        p90: started.get(id),
        notWithinHorizon: 0,
      })
    }
    const short = await forecastStarts(image, past, { ...PLENTY, horizonMs: 10 * MINUTE_MS })
    const last = isForecast(short) ? short.starts.get(waiting.at(-1) ?? '') : null
    expect(last).toEqual({ p50: null, p90: null, notWithinHorizon: 1 })
  })

  it('states why it is missing: too little history, or too little time', async () => {
    const { image, past } = await worldAt(QUEUE, 2 * HOUR_MS)
    expect(await forecastStarts(image, { ...past, ended: [] }, PLENTY)).toMatchObject({
      reason: 'NO_HISTORY',
    })
    const late = await worldAt(QUEUE, 12 * HOUR_MS)
    let asked = 0
    const none = { ...PLENTY, spent: () => (asked += 1) }
    expect(await forecastStarts(late.image, late.past, none)).toMatchObject({ reason: 'TOO_LARGE' })
  })
})

describe('a forecast of a change', () => {
  it('compares runs that share every draw: no change has no effect', async () => {
    const { image, past } = await worldAt(IDLERS, 8 * HOUR_MS)
    const same = await forecastChange(image, past, { config: { default_vram_overcommit_percent: 0 } }, PLENTY)
    if (!isForecast(same)) throw new Error(same.detail)
    for (const metric of Object.values(same.metrics)) {
      expect(metric).toMatchObject({ difference: { p10: 0, p50: 0, p90: 0 }, agreement: 1, verdict: 'stays' })
    }
    const change = { config: { default_vram_overcommit_percent: 150 } }
    const more = await forecastChange(image, past, change, PLENTY)
    if (!isForecast(more)) throw new Error(more.detail)
    expect(more.metrics.queue_wait_s).toMatchObject({ verdict: 'falls' })
    expect(more.metrics.swap_outs_per_hour?.after).toBeGreaterThan(0)
    expect(more).toMatchObject({ runs: 6, horizonMs: HOUR_MS })
    expectCourses(more)
    expect(await forecastChange(image, past, change, PLENTY)).toEqual(more)
    const [node] = image.nodes
    const ofNode = await forecastChange(
      image,
      past,
      { node: { id: node?.id ?? '', overcommitPercent: 150 } },
      PLENTY,
    )
    expect(isForecast(ofNode) && ofNode.metrics.queue_wait_s).toEqual(more.metrics.queue_wait_s)
  })

  function expectCourses({ courses: { endsMs, metrics }, metrics: whole }: ChangeForecast): void {
    expect(endsMs).toHaveLength(24)
    expect([endsMs[0], endsMs.at(-1)]).toEqual([2.5 * MINUTE_MS, HOUR_MS])
    const { before, after } = metrics.queue_wait_s
    expect(before.p50).toHaveLength(24)
    // A longer wait under the current settings is also longer after the change, and the bands are ordered.
    expect(after.p50.at(-1) ?? 0).toBeLessThan(before.p50.at(-1) as number)
    for (const [i, p10] of before.p10.entries()) expect(p10 ?? 0).toBeLessThanOrEqual(before.p90[i] ?? 0)
    // Equal intervals: the overall swap-outs per hour are between the edges of their bands.
    const { p10, p90 } = metrics.swap_outs_per_hour.after
    const mean = (values: readonly (number | null)[]) =>
      values.reduce<number>((sum, each) => sum + (each ?? 0), 0) / values.length
    expect(whole.swap_outs_per_hour?.after).toBeGreaterThanOrEqual(mean(p10))
    expect(whole.swap_outs_per_hour?.after).toBeLessThanOrEqual(mean(p90))
  }

  it('claims a direction only if at least 5 pairs exclude zero between p10 and p90', () => {
    const pairs = (differences: readonly number[]) =>
      changeOf(differences.map((each) => [10, 10 + each] as const))
    expect(pairs([1, 2, 3, 4, 5])).toMatchObject({
      verdict: 'rises',
      agreement: 1,
      difference: { p10: 1, p50: 3, p90: 5 },
    })
    expect(pairs([-1, -2, -3, -4, -5])).toMatchObject({ verdict: 'falls', agreement: 1 })
    expect(pairs([-1, -2, -3, -4, 5])).toMatchObject({
      verdict: 'unclear',
      agreement: 0.8,
      difference: { p10: -4, p90: 5 },
    })
    expect(pairs([-1, -2, -3, -4, -5, -6, -7, -8, -9, 5])).toMatchObject({ verdict: 'falls', agreement: 0.9 })
    expect(pairs([-1, -2, -3, 4, 5])).toMatchObject({ verdict: 'unclear' })
    expect(pairs([1, 2, 3, 4])).toMatchObject({ verdict: 'unclear' })
    expect(pairs([0, 0])).toMatchObject({ verdict: 'stays' })
    expect(changeOf([[null, 3]])).toBeNull()
  })
})

describe('the drift of a forecast', () => {
  it('is steady while the world continues as before, and drifting when it changes', async () => {
    const { world, past } = await worldAt(IDLERS, 6 * HOUR_MS)
    const watch = new DriftMonitor({ views: world.controller.views, forecast: () => predictIn(world, past) })
    world.listen((events) => watch.record(events))
    await watch.tick()
    for (let i = 0; i < 4; i++) await passInterval(world, watch)
    expect(watch.report()).toMatchObject({ state: 'steady', because: null })
    expect(watch.report().history).toHaveLength(4)
    expect(withheldBecause(watch.report())).toBeNull()
    // All tasks end and none arrives, so no prediction is right.
    for (let i = 0; i < 6; i++) {
      for (const { spec } of [...world.controller.views.openTasks()])
        world.controller.commands.cancelTask(spec.id, 'test', () => {})
      await passInterval(world, watch)
    }
    expect(watch.report().state).toBe('drifting')
    expect(withheldBecause(watch.report())).toMatchObject({ reason: 'DRIFT' })
  })

  it('is unknown before three intervals, and ignores old intervals and late measurements', async () => {
    const { world, past } = await worldAt(IDLERS, 6 * HOUR_MS)
    const { image } = { image: world.controller.views.snapshot() }
    const predicted = await predictInterval(image, past, PLENTY)
    if ('reason' in predicted) throw new Error(predicted.detail)
    const actual = {
      queue_wait_s: null,
      starvation_percent: 0,
      utilization_percent: 0,
      swap_outs_per_hour: 0,
    }
    const entry: DriftEntry = compare(predicted, actual)
    expect(entry.metrics.queue_wait_s).toBeNull()
    expect(driftReport([entry, entry], null).state).toBe('unknown')
    let history: readonly DriftEntry[] = []
    for (let i = 0; i < MAX_DRIFT_HISTORY + 5; i++) history = withEntry(history, { ...entry, from: i })
    expect([history.length, history[0]?.from]).toEqual([MAX_DRIFT_HISTORY, 5])
    const watch = new DriftMonitor({ views: world.controller.views, forecast: () => predictIn(world, past) })
    await watch.tick()
    await world.runUntil(world.nowMs + 3 * DRIFT_INTERVAL_MS)
    await watch.tick()
    expect(watch.report().history).toHaveLength(0)
    const silent = new DriftMonitor({
      views: world.controller.views,
      forecast: async () => ({ reason: 'NO_HISTORY', detail: 'x' }),
    })
    await silent.tick()
    expect(silent.report()).toMatchObject({ state: 'unknown', because: { reason: 'NO_HISTORY' } })
  })
})

describe('the latest forecast', () => {
  it('is shared by requests, recomputed when old, and reports a fault as its answer', async () => {
    let now = 1000
    let made = 0
    const latest = new LatestStarts({ now: () => now }, async () => {
      made += 1
      if (made === 3) throw new Error('broken')
      return { reason: 'NOT_YET', detail: String(made) }
    })
    expect(latest.latest()).toBeNull()
    expect(await latest.get(false)).toEqual(await latest.get(true))
    expect(made).toBe(1)
    expect(latest.latest()).toEqual({ reason: 'NOT_YET', detail: '1' })
    now += 5_000
    expect(await latest.get(false)).toMatchObject({ detail: '1' })
    expect(await latest.get(true)).toMatchObject({ detail: '2' })
    now += 10_001
    expect(await latest.get(false)).toEqual({ reason: 'FAILED', detail: 'broken' })
  })
})

async function worldAt(
  text: string,
  atMs: number,
): Promise<{ world: World; image: ClusterSnapshot; past: RecentPast }> {
  const { scenario } = loadScenario({ text, baseDir: '.' })
  const world = new World(scenario, { seed: 1, isJournalOff: true, keepsTasks: true })
  await world.start()
  world.feed(workloadOf(scenario, world.random))
  await world.runUntil(atMs)
  return {
    world,
    image: world.controller.views.snapshot(),
    past: await new RecentPastReader(world.controller.views, () => []).read(),
  }
}

async function predictIn(world: World, past: RecentPast): Promise<TwinAnswer> {
  const runs = world.controller.views.activityRuns()
  const image = world.controller.views.snapshot()
  return twinJob({
    kind: 'forecast',
    image,
    past: { ...past, runs },
    withinMs: 60_000,
    horizonMs: HOUR_MS,
    maxRuns: 1,
  })
}

async function passInterval(world: World, watch: DriftMonitor): Promise<void> {
  await world.runUntil(world.nowMs + DRIFT_INTERVAL_MS)
  await watch.tick()
}
