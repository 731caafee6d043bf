/** The forecasts of the twin in the REST API; the runner of its simulations is a fake. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { FastifyInstance } from 'fastify'
import { createApi } from '../../controller/api/server.ts'
import { TASK_DEFAULTS } from '../../protocol/limits.ts'
import type {
  ChangeForecast,
  ForecastBand,
  DriftReport,
  MetricChange,
  NoForecast,
  NodeSpeeds,
  SettingsChange,
  StartForecast,
  Twin,
} from '../../controller/ports/twin.ts'
import { TRIED_TASK_ID } from '../../controller/ports/twin.ts'
import type { TaskRequest } from '../../protocol/task.ts'
import { loadScenario } from '../../simulator/scenario/load.ts'
import { World } from '../../simulator/world/world.ts'

const BASIS = { horizonMs: 7_200_000, runs: 10, assumes: ['all stays as it is'] }
const QUIET: DriftReport = { state: 'unknown', scores: NO_SCORES(), threshold: 1, because: null, history: [] }

type Served = Awaited<ReturnType<typeof open>>

/** The current forecast of the fake. */
const says: {
  starts: MakeStarts
  noChange: NoForecast | null
  drift: DriftReport
  change: ChangeForecast['metrics'] | null
  speeds: readonly NodeSpeeds[]
} = {
  starts: () => NOTHING,
  noChange: null,
  drift: QUIET,
  change: null,
  speeds: [],
}
const apps: FastifyInstance[] = []
let one: Served

beforeAll(async () => {
  one = await open(true)
})
afterAll(() => Promise.all(apps.map((app) => app.close())))

/** All tests share one server and differ only in the forecast. */
function served(
  starts: MakeStarts,
  noChange: NoForecast | null = null,
  drift = QUIET,
  change: ChangeForecast['metrics'] | null = null,
): Served {
  Object.assign(says, { starts, noChange, drift, change, speeds: [] })
  one.asked.length = 0
  return one
}

describe('explain', () => {
  it('says when a waiting task is expected to start', async () => {
    const { get } = served(({ at }) =>
      startsOf({ p50: at + 300_000, p90: at + 1_800_000, notWithinHorizon: 0 }, at),
    )
    expect(await get('/tasks/waits/explain')).toMatchObject({
      forecast: {
        at: '2026-01-01T00:00:00.000Z',
        horizon_seconds: 7200,
        runs: 10,
        starts_p50: '2026-01-01T00:05:00.000Z',
        starts_p90: '2026-01-01T00:30:00.000Z',
        not_within_horizon: 0,
        sentence: 'It is expected to start in 5 minutes, and within 30 minutes in 90% of 10 runs.',
      },
      forecast_unavailable_because: null,
    })
    expect(await get('/tasks/waits/explain?forecast=none')).toMatchObject({
      forecast: null,
      forecast_unavailable_because: expect.stringMatching(/^NOT_ASKED/) as string,
    })
    expect(await get('/tasks/sits/explain')).toMatchObject({
      forecast: null,
      forecast_unavailable_because: 'NOT_NEEDED: the task does not wait for its first start.',
    })
    expect(await get('/tasks/waits/explain?forecast=maybe')).toMatchObject({ status: 400 })
  })

  it.each([
    [
      { p50: 60_000, p90: null, notWithinHorizon: 0.3 },
      'It is expected to start in 1 minute, but in 30% of 10 runs it did not start within 2.0 hours.',
    ],
    [
      { p50: null, p90: null, notWithinHorizon: 0.8 },
      'It is not expected to start within 2.0 hours: it did not start in 80% of 10 runs.',
    ],
    [
      { p50: 1000, p90: 59_000_000, notWithinHorizon: 0 },
      'It is expected to start in less than a minute, and within 16.4 hours in 90% of 10 runs.',
    ],
  ])('describes %o in a sentence', async ({ p50, p90, notWithinHorizon }, sentence) => {
    const { get } = served(({ at }) =>
      startsOf(
        { p50: p50 === null ? null : at + p50, p90: p90 === null ? null : at + p90, notWithinHorizon },
        at,
      ),
    )
    expect(await get('/tasks/waits/explain')).toMatchObject({ forecast: { sentence } })
  })

  it('says why a forecast is missing', async () => {
    const { get } = served(() => ({ reason: 'NO_HISTORY', detail: 'nothing has ended' }))
    expect(await get('/tasks/waits/explain')).toMatchObject({
      forecast: null,
      forecast_unavailable_because: 'NO_HISTORY: nothing has ended.',
    })
    const late = served(({ at, isAnew }) => ({
      ...BASIS,
      at,
      starts: isAnew ? new Map([['waits', NEVER]]) : new Map(),
    }))
    expect(await late.get('/tasks/waits/explain')).toMatchObject({
      forecast_unavailable_because: expect.stringMatching(/^NOT_YET: the task was submitted after/) as string,
    })
    expect(await late.get('/tasks/waits/explain?forecast=wait')).toMatchObject({
      forecast: { starts_p50: null },
    })
  })
})

describe('a dry run of a submission', () => {
  const start = { p50: 300_000, p90: 600_000, notWithinHorizon: 0 }
  const waits = { vram_mib: 6000, command: ['x'] }

  it('says when the task would start, only if it is asked and the task would wait', async () => {
    const { post, tried } = served(({ at }) =>
      startsOf({ ...start, p50: at + start.p50, p90: at + start.p90 }, at),
    )
    expect(await post('/tasks?dry_run=true&forecast=true', waits)).toMatchObject({
      starts: 'later',
      forecast: { starts_p50: '2026-01-01T00:05:00.000Z', starts_p90: '2026-01-01T00:10:00.000Z' },
      forecast_unavailable_because: null,
    })
    expect(tried.map(({ vramMib }) => vramMib)).toEqual([6000])
    expect(await post('/tasks?dry_run=true', waits)).toMatchObject({
      forecast: null,
      forecast_unavailable_because: expect.stringMatching(/^NOT_ASKED: send forecast=true/) as string,
    })
    expect(await post('/tasks?dry_run=true&forecast=true', { ...waits, vram_mib: 100 })).toMatchObject({
      starts: 'now',
      forecast: null,
      forecast_unavailable_because: 'NOT_NEEDED: the task would start immediately.',
    })
    expect(tried).toHaveLength(1)
  })

  it('says why the start is unknown, and refuses the parameter without a dry run', async () => {
    const { post } = served(() => ({ reason: 'TOO_LARGE', detail: 'more than 20000 tasks are open' }))
    expect(await post('/tasks?dry_run=true&forecast=true', waits)).toMatchObject({
      forecast: null,
      forecast_unavailable_because: 'TOO_LARGE: more than 20000 tasks are open.',
    })
    expect(await post('/tasks?forecast=true', waits)).toMatchObject({
      status: 400,
      errors: [{ pointer: '/forecast' }],
    })
  })
})

describe('the forecast of a dry run', () => {
  it('describes swap-outs like the other figures: as a rate that rises', async () => {
    const { put } = served(() => NOTHING, null, QUIET, {
      ...CHANGE,
      swap_outs_per_hour: changeOf('rises', 3, 5),
    })
    const { impact } = await put('/config?dry_run=true', { default_vram_overcommit_percent: 40 })
    expect(impact).toMatchObject({
      forecast: {
        sentence: expect.stringContaining(
          '; the rate of swap-outs rises from 3.0 an hour to 5.0 an hour.',
        ) as string,
      },
    })
  })

  it('predicts the effect of a change of the cluster or a node, unless it is disabled', async () => {
    const { get, put, asked, nodeId } = served(() => NOTHING)
    const { impact } = await put('/config?dry_run=true', { default_vram_overcommit_percent: 40 })
    expect(impact).toMatchObject({
      forecast: {
        horizon_seconds: 7200,
        queue_wait_s: {
          before: 100.123,
          after: 60,
          difference: { p10: -50, p50: -40.123, p90: -10 },
          agreement: 0.9,
          verdict: 'falls',
        },
        starvation_percent: { verdict: 'unclear' },
        utilization_percent: { verdict: 'stays' },
        swap_outs_per_hour: null,
        courses: {
          ends_seconds: [3600, 7200],
          queue_wait_s: {
            before: { p10: [null, 0], p50: [null, 1.235], p90: [null, 2] },
            after: { p90: [9, 9] },
          },
        },
        sentence:
          'Over the next 2.0 hours, in 10 pairs of runs: queue wait falls from 100 s to 60.0 s; ' +
          'starvation could rise or fall (2.0% → 2.5%); utilization stays at 50.0%.',
      },
      forecast_unavailable_because: null,
    })
    await put(`/nodes/${nodeId}/config?dry_run=true`, {
      overcommit_vram_percent: 30,
      safety_reserve_mib: 1000,
    })
    expect(asked).toEqual([
      { config: { default_vram_overcommit_percent: 40 } },
      { node: { id: nodeId, overcommitPercent: 30, reserveMib: 1000 } },
    ])
    const without = await put('/config?dry_run=true&forecast=false', { default_vram_overcommit_percent: 40 })
    expect(without.impact).toMatchObject({
      forecast: null,
      forecast_unavailable_because: expect.stringMatching(/^NOT_ASKED/) as string,
    })
    expect(asked).toHaveLength(2)
    expect(await get('/config')).toMatchObject({ default_vram_overcommit_percent: 0 })
  })

  it('is withheld while the twin drifts', async () => {
    const { put } = served(() => NOTHING, { reason: 'DRIFT', detail: 'the twin drifts' })
    const { impact } = await put('/config?dry_run=true', { default_vram_overcommit_percent: 40 })
    expect(impact).toMatchObject({ forecast: null, forecast_unavailable_because: 'DRIFT: the twin drifts.' })
  })
})

describe('the twin', () => {
  it('The twin shows its forecasts, the outcomes and its score, also to Prometheus', async () => {
    const point = { p10: 1, p50: 2, p90: 3, actual: 6, score: 2 }
    const metrics = {
      queue_wait_s: null,
      starvation_percent: point,
      utilization_percent: null,
      swap_outs_per_hour: null,
    }
    const drift: DriftReport = {
      state: 'drifting',
      scores: { ...NO_SCORES(), starvation_percent: 2 },
      threshold: 1,
      because: { reason: 'NO_HISTORY', detail: 'x' },
      history: [{ from: 0, to: 600_000, metrics }],
    }
    const { get, text } = served(() => NOTHING, null, drift)
    expect(await get('/twin')).toEqual({
      state: 'drifting',
      scores: {
        queue_wait_s: null,
        starvation_percent: 2,
        utilization_percent: null,
        swap_outs_per_hour: null,
      },
      threshold: 1,
      unavailable_because: 'NO_HISTORY: x.',
      history: [{ from: '1970-01-01T00:00:00.000Z', to: '1970-01-01T00:10:00.000Z', ...metrics }],
      speeds: [],
    })
    const exposed = await text('/metrics')
    expect(exposed).toContain('headroom_twin_drift_ratio{metric="starvation_percent"} 2\n')
    expect(exposed).toContain('headroom_twin_drifting 1\n')
  })

  it('shows the speeds that it learned, of the nodes with the latest observations', async () => {
    const { get } = served(() => NOTHING)
    const copies = {
      fixedMs: 500,
      mibPerS: 1024,
      observed: 9,
      errorPercent: 0.51249,
      profileErrorPercent: 66,
    }
    const none = { fixedMs: 800, mibPerS: 5120, observed: 0, errorPercent: null, profileErrorPercent: null }
    says.speeds = Array.from({ length: 1001 }, (_, index) => ({
      nodeId: `n${index}`,
      methods: [{ method: 'driver' as const, out: copies, in: none, residualMib: 0 }],
      starts: { observed: 2, ms: 0 },
      latestAt: index,
    }))
    const { speeds } = (await get('/twin')) as { readonly speeds: readonly object[] }
    expect([speeds.length, speeds[0]]).toEqual([
      1000,
      {
        node_id: 'n1000',
        methods: [
          {
            method: 'driver',
            out: {
              fixed_ms: 500,
              mib_per_s: 1024,
              observed: 9,
              error_percent: 0.512,
              profile_error_percent: 66,
            },
            in: {
              fixed_ms: 800,
              mib_per_s: 5120,
              observed: 0,
              error_percent: null,
              profile_error_percent: null,
            },
            residual_mib: 0,
          },
        ],
        starts: { observed: 2, ms: 0 },
        latest_at: '1970-01-01T00:00:01.000Z',
      },
    ])
  })

  it('serves a snapshot in parts, and a simulated world has neither snapshot nor twin', async () => {
    const { text } = served(() => NOTHING)
    expect(JSON.parse(await text('/snapshot'))).toEqual(Array.from({ length: 1200 }, (_, i) => i))
    const plain = await open(false)
    expect(await plain.get('/snapshot')).toMatchObject({ status: 409, code: 'conflict' })
    expect(await plain.get('/twin')).toMatchObject({ status: 409, code: 'conflict' })
    expect(await plain.get('/tasks/waits/explain')).toMatchObject({
      forecast_unavailable_because: expect.stringMatching(/^NO_SIMULATOR/) as string,
    })
  })
})

const NOTHING: NoForecast = { reason: 'NOT_YET', detail: 'later' }
const NEVER = { p50: null, p90: null, notWithinHorizon: 1 }

function NO_SCORES(): DriftReport['scores'] {
  return { queue_wait_s: null, starvation_percent: null, utilization_percent: null, swap_outs_per_hour: null }
}

function startsOf(
  start: { p50: number | null; p90: number | null; notWithinHorizon: number },
  at: number,
): StartForecast {
  return { ...BASIS, at, starts: new Map([['waits', start]]) }
}

function changeOf(verdict: MetricChange['verdict'], before: number, after: number): MetricChange {
  return { before, after, difference: { p10: -50, p50: after - before, p90: -10 }, agreement: 0.9, verdict }
}

const CHANGE: ChangeForecast['metrics'] = {
  queue_wait_s: changeOf('falls', 100.123, 60),
  starvation_percent: changeOf('unclear', 2, 2.5),
  utilization_percent: changeOf('stays', 50, 50),
  swap_outs_per_hour: null,
}

const BAND: ForecastBand = { p10: [null, 0], p50: [null, 1.23456], p90: [null, 2] }
const COURSES: ChangeForecast['courses'] = {
  endsMs: [3_600_000, 7_200_000],
  metrics: {
    queue_wait_s: { before: BAND, after: { ...BAND, p90: [9, 9] } },
    starvation_percent: { before: BAND, after: BAND },
    utilization_percent: { before: BAND, after: BAND },
    swap_outs_per_hour: { before: BAND, after: BAND },
  },
}

type MakeStarts = (asked: { readonly at: number; readonly isAnew: boolean }) => StartForecast | NoForecast

/** Creates a world with one task on its only GPU and one waiting task. */
async function open(hasTwin: boolean) {
  const text = '{ scenario: x, version: 1, fleet: [{ name: one, gpu: { vram_mib: 10000 } }] }'
  const world = new World(loadScenario({ text, baseDir: '.' }).scenario, { seed: 1 })
  await world.start()
  for (const id of ['sits', 'waits']) {
    const request = {
      ...TASK_DEFAULTS,
      id,
      name: null,
      vramMib: 6000,
      groups: [],
      labels: {},
      owner: null,
      command: ['x'],
      maxRuntimeSeconds: null,
    }
    world.controller.commands.submitTask(request, () => {})
    await world.runUntil(0)
  }
  const { commands, views } = world.controller
  const asked: SettingsChange[] = []
  const tried: TaskRequest[] = []
  const twin: Twin = {
    snapshot: async () => ['[', ...Array.from({ length: 1200 }, (_, i) => `${i === 0 ? '' : ','}${i}`), ']'],
    starts: async (isAnew = false) => says.starts({ at: views.now(), isAnew }),
    latestStarts: () => says.starts({ at: views.now(), isAnew: false }),
    tryTask: async (request) => {
      tried.push(request)
      const made = says.starts({ at: views.now(), isAnew: true })
      const starts =
        'starts' in made ? [...made.starts.values()].map((start) => [TRIED_TASK_ID, start] as const) : []
      return 'starts' in made ? { ...made, starts: new Map(starts) } : made
    },
    tryChange: async (change) => {
      asked.push(change)
      return says.noChange ?? { ...BASIS, at: views.now(), metrics: says.change ?? CHANGE, courses: COURSES }
    },
    drift: () => says.drift,
    speeds: () => says.speeds,
  }
  const api = createApi({
    commands,
    views,
    version: 'test',
    inVirtualTime: true,
    ...(hasTwin ? { twin } : {}),
  })
  apps.push(api)
  const ask = async (method: 'GET' | 'PUT' | 'POST', path: string, payload?: object) =>
    (await api.inject({ method, url: `/api/v1${path}`, ...(payload === undefined ? {} : { payload }) })).body
  return {
    asked,
    tried,
    post: async (path: string, body: object) => JSON.parse(await ask('POST', path, body)) as unknown,
    nodeId: [...views.nodes()][0]?.id ?? '',
    text: (path: string) => ask('GET', path),
    get: async (path: string) => JSON.parse(await ask('GET', path)) as unknown,
    put: async (path: string, body: object) =>
      JSON.parse(await ask('PUT', path, body)) as { readonly impact: unknown },
  }
}
