import { describe, expect, test } from 'vitest'
import { MAX_SERIES_VALUES } from '../../controller/api/http/limits.ts'
import { MEASURE_NAMES } from '../../controller/series/measures.ts'
import { DurableEvents } from '../../controller/engine/durable-events.ts'
import type { Event } from '../../controller/model/event.ts'
import { Series } from '../../controller/series/series.ts'
import { apiClient, type ApiClient } from '../support/api-client.ts'
import { FakeController, NODE_ID } from '../support/api-world.ts'

const OTHER_ID = '5f0c9a52-1d3e-4b7a-9c11-000000000002'

interface SeriesWorld {
  readonly world: FakeController
  readonly api: ApiClient
  /** Advances the clock by `seconds`, with one sample a second and the given growth of each counter. */
  pass(seconds: number, perSecond?: Partial<FakeController['counters']>): void
}

/** 2026-01-02T03:00:00Z, two nodes with two GPUs each; the first is in group `research`. */
async function seriesWorld(): Promise<SeriesWorld> {
  const world = new FakeController()
  world.now = Date.UTC(2026, 0, 2, 3, 0, 0)
  await world.addNode({ id: NODE_ID, gpus: 2, physicalMib: 40_000 })
  await world.addNode({ id: OTHER_ID, gpus: 2, physicalMib: 40_000 })
  world.groups.set('research', { id: 'research', description: '', nodeIds: [NODE_ID] })
  const node = world.nodes.get(NODE_ID)
  if (node !== undefined) node.groups = ['research']
  const series = new Series(world.views)
  series.take()
  return {
    world,
    api: await apiClient(world, { series }),
    pass(seconds, perSecond = {}) {
      for (let second = 0; second < seconds; second++) {
        world.now += 1_000
        const next = { ...world.counters }
        for (const [name, ms] of Object.entries(perSecond)) next[name as keyof typeof next] += ms * 1_000
        world.counters = next
        series.take()
      }
    },
  }
}

/** Returns the values of one series of a response. */
const valuesOf = (
  body: { series: { scope: string; name: string; values: unknown[] }[] },
  scope: string,
  name: string,
) => body.series.find((one) => one.scope === scope && one.name === name)?.values

describe('GET /series', () => {
  test('returns columns on one x axis: the first GPU works, the other three are idle', async () => {
    const { api, pass } = await seriesWorld()
    pass(60, { busy: 800, served: 800, demand: 1_000, queue: 200 })
    const { status, body } = await api.send(
      'GET',
      '/series?names=utilization_percent,starvation_percent,starvation_queue_percent,' +
        `vram_physical_mib&scope=cluster,group:research,node:${NODE_ID},gpu:${NODE_ID}/*&from=-1m&` +
        'max_points=3',
    )
    expect(status).toBe(200)
    expect(body).toMatchObject({
      from: '2026-01-02T03:00:00.000Z',
      to: '2026-01-02T03:01:00.000Z',
      resolution_seconds: 10,
      step_seconds: 20,
    })
    expect(body.x).toEqual([0, 20, 40].map((seconds) => Date.UTC(2026, 0, 2, 3) / 1000 + seconds))
    expect(body.series).toHaveLength(5 * 4)
    expect(valuesOf(body, 'cluster', 'utilization_percent')).toEqual([20, 20, 20])
    expect(valuesOf(body, 'group:research', 'utilization_percent')).toEqual([40, 40, 40])
    expect(valuesOf(body, `node:${NODE_ID}`, 'utilization_percent')).toEqual([40, 40, 40])
    expect(valuesOf(body, `gpu:${NODE_ID}/0`, 'utilization_percent')).toEqual([80, 80, 80])
    expect(valuesOf(body, `gpu:${NODE_ID}/1`, 'utilization_percent')).toEqual([0, 0, 0])
    expect(valuesOf(body, 'cluster', 'starvation_percent')).toEqual([20, 20, 20])
    expect(valuesOf(body, 'cluster', 'starvation_queue_percent')).toEqual([20, 20, 20])
    expect(valuesOf(body, `node:${NODE_ID}`, 'starvation_percent')).toEqual([0, 0, 0])
    expect(valuesOf(body, 'cluster', 'vram_physical_mib')).toEqual([160_000, 160_000, 160_000])
    expect(valuesOf(body, `gpu:${NODE_ID}/1`, 'vram_physical_mib')).toEqual([40_000, 40_000, 40_000])
    await api.app.close()
  })

  test('computes a percentage of a longer step from its sums, not as a mean of percentages', async () => {
    const { api, pass } = await seriesWorld()
    pass(10, { served: 1_000, demand: 1_000 })
    pass(10, { served: 1_000, compute: 7_000, demand: 8_000 })
    const { body } = await api.send('GET', '/series?names=starvation_percent&from=-20s&max_points=1')
    expect(body.series[0].values).toEqual([Math.round((100 * 70 * 10_000) / 90) / 10_000])
    await api.app.close()
  })

  test('A series is null without a sample: before the start, for a silent node, in an outage', async () => {
    const { api, pass, world } = await seriesWorld()
    pass(10, { busy: 1_000 })
    const node = world.nodes.get(NODE_ID)
    if (node === undefined) throw new Error('no node')
    node.status = 'suspect'
    pass(10, { busy: 1_000 })
    node.status = 'up'
    pass(10, { busy: 1_000 })
    pass(10, { busy: 1_000 })
    const scope = `cluster,node:${NODE_ID},node:${OTHER_ID}`
    const { body } = await api.send(
      'GET',
      `/series?names=utilization_percent,vram_physical_mib&scope=${scope}&from=-50s&max_points=10`,
    )
    // The interval in which its contact resumed counts as little as the one in which it was lost.
    expect(valuesOf(body, `node:${NODE_ID}`, 'utilization_percent')).toEqual([null, 50, null, null, 50])
    expect(valuesOf(body, `node:${OTHER_ID}`, 'utilization_percent')).toEqual([null, 0, 0, 0, 0])
    expect(valuesOf(body, 'cluster', 'utilization_percent')).toEqual([null, 25, 0, 0, 25])
    expect(valuesOf(body, `node:${NODE_ID}`, 'vram_physical_mib')).toEqual([
      null,
      80_000,
      null,
      80_000,
      80_000,
    ])
    expect(valuesOf(body, 'cluster', 'vram_physical_mib')).toEqual([null, 160_000, 80_000, 160_000, 160_000])
    await api.app.close()
  })

  test('without a GPU, utilization is unknown and the queue length is known', async () => {
    const world = new FakeController()
    const series = new Series(world.views)
    series.take()
    world.now += 10_000
    series.take()
    const api = await apiClient(world, { series })
    const { body } = await api.send(
      'GET',
      '/series?names=utilization_percent,starvation_percent,vram_used_mib,tasks_pending&from=-15s&' +
        'max_points=1',
    )
    expect(body.series.map(({ values }: { values: unknown[] }) => values[0])).toEqual([null, null, null, 0])
    await api.app.close()
  })

  test('a new node has no earlier values, and a removed node can no longer be requested', async () => {
    const { api, pass, world } = await seriesWorld()
    pass(20)
    const joined = '5f0c9a52-1d3e-4b7a-9c11-000000000003'
    world.nodes.delete(OTHER_ID)
    pass(10)
    await world.addNode({ id: joined, gpus: 2, physicalMib: 20_000 })
    pass(10)
    pass(10)
    const { body } = await api.send(
      'GET',
      `/series?names=vram_physical_mib&scope=node:${joined},gpu:${joined}/0&from=-50s&max_points=10`,
    )
    expect(valuesOf(body, `node:${joined}`, 'vram_physical_mib')).toEqual([null, null, null, 40_000, 40_000])
    expect(valuesOf(body, `gpu:${joined}/0`, 'vram_physical_mib')).toEqual([null, null, null, 20_000, 20_000])
    expect((await api.send('GET', `/series?scope=node:${OTHER_ID}`)).status).toBe(400)
    await api.app.close()
  })

  test('serves a range beyond the finest intervals from coarser ones', async () => {
    const { api, pass, world } = await seriesWorld()
    for (let hour = 0; hour < 10; hour++) pass(3_600, { busy: 1_000 })
    const recent = (await api.send('GET', '/series?from=-10m&max_points=100')).body
    expect(recent).toMatchObject({ resolution_seconds: 10, step_seconds: 10 })
    const old = (await api.send('GET', '/series?from=-10h&max_points=5000&names=utilization_percent')).body
    expect(old).toMatchObject({ resolution_seconds: 60, step_seconds: 60 })
    expect(old.series[0].values).toEqual(Array.from({ length: 600 }, () => 25))
    const day = (
      await api.send('GET', `/series?from=2026-01-02T03:00:00Z&to=2026-01-02T13:00:00Z&max_points=10`)
    ).body
    expect(day).toMatchObject({ step_seconds: 3_600, resolution_seconds: 3_600 })
    expect(world.now).toBe(Date.UTC(2026, 0, 2, 13))
    await api.app.close()
  })

  test('marks configuration changes and swap storms in the range', async () => {
    const { api, pass, world } = await seriesWorld()
    const fields = world.config.fields
    world.views.stored.configRevisions = async () => [
      { revision: 2, at: world.now - 90_000, author: 'ada', fields },
      {
        ...{ revision: 1, at: world.now - 7_200_000, author: null },
        fields: {
          ...fields,
          default_vram_overcommit_percent: 20,
          swap_in_aging_seconds: 1,
          max_tasks_per_gpu: 3,
        },
      },
    ]
    pass(60)
    world.swaps = { swapOuts: 7, swapIns: 5, swappedOutMib: 7_000, swappedInMib: 5_000 }
    pass(120)
    const { body } = await api.send(
      'GET',
      '/series?names=swap_outs,swap_ins,swap_out_mib&from=-30m&max_points=30',
    )
    expect(body.marks).toEqual([
      {
        kind: 'config_changed',
        from: world.now / 1000 - 90,
        to: world.now / 1000 - 90,
        text:
          'Configuration 2 by ada: default_vram_overcommit_percent 20 → 0, ' +
          'swap_in_aging_seconds 1 → 600, and 1 more',
      },
      {
        kind: 'swap_storm',
        from: world.now / 1000 - 120,
        to: world.now / 1000 - 60,
        text: 'Swap storm: 12 swaps in 1 min',
      },
    ])
    expect(valuesOf(body, 'cluster', 'swap_outs')?.slice(-3)).toEqual([0, 7, 0])
    expect(valuesOf(body, 'cluster', 'swap_out_mib')?.slice(-3)).toEqual([0, 7_000, 0])
    await api.app.close()
  })

  test('returns every measure for every kind of scope, or says that the scope does not have it', async () => {
    const { api, pass } = await seriesWorld()
    pass(20)
    for (const scope of ['cluster', 'group:*', 'node:*', `gpu:${NODE_ID}/*`]) {
      // Without a return there is no wake.
      for (const name of MEASURE_NAMES.filter((each) => !each.startsWith('wake'))) {
        const { status, body } = await api.send('GET', `/series?scope=${scope}&names=${name}&from=-10s`)
        if (status === 200)
          expect(
            body.series[0].values.some((value: unknown) => typeof value === 'number'),
            `${name} of ${scope}`,
          ).toBe(true)
        else expect(body.errors[0].pointer).toBe('/names')
      }
    }
    await api.app.close()
  })
})

describe('GET /series refuses invalid queries and names the parameter:', () => {
  const refused: readonly (readonly [string, string])[] = [
    ['names=cpu_percent', 'names'],
    ['names=', 'names'],
    ['names=utilization_percent,', 'names'],
    ['names=__proto__', 'names'],
    ['names=utilization_percent&names=starvation_percent', 'names'],
    ['scope=', 'scope'],
    ['scope=everything', 'scope'],
    ['scope=node', 'scope'],
    ['scope=node:absent', 'scope'],
    ['scope=group:absent', 'scope'],
    ['scope=gpu:absent/0', 'scope'],
    [`scope=gpu:${NODE_ID}`, 'scope'],
    [`scope=gpu:${NODE_ID}/2`, 'scope'],
    [`scope=gpu:${NODE_ID}/00`, 'scope'],
    [`scope=${'node:*,'.repeat(1000)}`, 'scope'],
    [`scope=node:${NODE_ID}&names=tasks_pending`, 'names'],
    ['from=yesterday', 'from'],
    ['from=2026-01-02', 'from'],
    ['from=2026-13-02T03:04:05Z', 'from'],
    ['from=2026-01-02T03:04:05', 'from'],
    ['from=-1y', 'from'],
    ['from=-9999999s', 'from'],
    ['from=-999999w', 'from'],
    ['from=1969-12-31T23:59:59Z', 'from'],
    ['from=now', 'from'],
    ['to=-2h', 'from'],
    ['to=1e9', 'to'],
    ['max_points=0', 'max_points'],
    ['max_points=5001', 'max_points'],
    ['max_points=1e3', 'max_points'],
    ['max_points=-1', 'max_points'],
    ['points=3', 'points'],
  ]
  test.each(refused)('%s', async (query, parameter) => {
    const { api } = await seriesWorld()
    const { status, body } = await api.send('GET', `/series?${query}`)
    expect({ status, pointer: body.errors?.[0]?.pointer }).toEqual({ status: 400, pointer: `/${parameter}` })
    await api.app.close()
  })

  test(`more than ${MAX_SERIES_VALUES} values, with a maximum that is possible`, async () => {
    const { api } = await seriesWorld()
    const all = MEASURE_NAMES.filter(
      (name) => !/^(tasks|wake)/.test(name) && name !== 'vram_queue_length',
    ).join(',')
    const scope = `cluster,node:*,gpu:${NODE_ID}/*,gpu:${OTHER_ID}/*`
    const { status, body } = await api.send(
      'GET',
      `/series?names=${all}&scope=${scope}&from=-14d&max_points=5000`,
    )
    expect(status).toBe(400)
    expect(body.errors[0].pointer).toBe('/max_points')
    const most = /at most (\d+)/.exec(body.detail)?.[1]
    expect(
      (await api.send('GET', `/series?names=${all}&scope=${scope}&from=-14d&max_points=${most}`)).status,
    ).toBe(200)
    await api.app.close()
  })

  test('accepts a range of any length and answers at once', async () => {
    const { api, pass } = await seriesWorld()
    pass(30)
    for (const points of [1, 2, 3, 5000]) {
      const { status, body } = await api.send(
        'GET',
        `/series?from=1970-01-01T00:00:00Z&to=9999-12-31T23:59:59Z&max_points=${points}`,
      )
      expect(status).toBe(200)
      expect(body.x.length).toBeLessThanOrEqual(points)
    }
    await api.app.close()
  })
})

test('Wakes are series: quantiles of the returns that ended in a step, by node', async () => {
  const world = new FakeController()
  world.now = Date.UTC(2026, 0, 2, 3, 0, 0)
  await world.addNode({ id: NODE_ID, gpus: 20, physicalMib: 40_000 })
  await world.addNode({ id: OTHER_ID, gpus: 1, physicalMib: 40_000 })
  const events = new DurableEvents()
  const wantsSince = world.now
  const openTask = () => ({ placement: { wantsGpu: true, wantsSince } }) as never
  const series = new Series({ ...world.views, openTask }, events)
  series.take()
  const move = (taskId: string, at: number, residency: string): Event =>
    ({ kind: 'task_residency', taskId, nodeId: NODE_ID, at, data: { residency } }) as never
  // 100 tasks return after 1.2 s, 4 after 4 s, one after an hour.
  const returns = [...Array<number>(100).fill(1_200), ...Array<number>(4).fill(4_000), 3_600_000]
  for (const [place, ms] of returns.entries()) {
    const id = String(place)
    events.publish([move(id, wantsSince, 'swapped_out'), move(id, wantsSince + ms, 'resident')])
  }
  world.now += 10_000
  series.take()
  const api = await apiClient(world, { series })
  const names = 'wake_p50_seconds,wake_p95_seconds,wake_p99_seconds'
  const read = async (scope: string): Promise<unknown[]> => {
    const { body } = await api.send('GET', `/series?scope=${scope}&names=${names}&from=-10s`)
    return body.series.map(({ values }: { values: unknown[] }) => values)
  }
  // 52.5 of 100 between 1 and 1.5 s; 99.75 of 100 there; 103.95 − 100 of 4 between 3 and 5 s.
  const expected = [[1.2625], [1.49875], [4.975]].map(([value = 0]) => [expect.closeTo(value, 3)])
  expect(await read('cluster')).toEqual(expected)
  expect(await read(`node:${NODE_ID}`)).toEqual(expected)
  expect(await read(`node:${OTHER_ID}`)).toEqual([[null], [null], [null]])
  const refused = await api.send('GET', `/series?scope=gpu:${NODE_ID}/0&names=${names}&from=-10s`)
  expect([refused.status, refused.body.errors[0].pointer]).toEqual([400, '/names'])
  world.now += 10_000
  series.take()
  expect(await read('cluster')).toEqual([[null], [null], [null]])
  await api.app.close()
})
