import { readFileSync } from 'node:fs'
import { afterEach, describe, expect, it } from 'vitest'
import { createMemoryStore } from '../../controller/adapters/memory-store.ts'
import { createEventMetrics } from '../../controller/api/metrics/event-metrics.ts'
import { expose } from '../../controller/api/metrics/exposition.ts'
import { Counter, Histogram, MAX_SERIES } from '../../controller/api/metrics/instruments.ts'
import { gauge, gauges, Metrics } from '../../controller/api/metrics/metrics.ts'
import { createPendingReasons, MAX_SAMPLE } from '../../controller/api/observe/pending-reasons.ts'
import { taskRequest } from '../../controller/api/tasks/task-request.ts'
import { createController } from '../../controller/controller.ts'
import type { Event } from '../../controller/model/event.ts'
import {
  createServedMetrics,
  uploadMetrics,
  type ServedMetrics,
} from '../../services/controller/served-metrics.ts'
import { createSeededRandom } from '../../simulator/kernel/seeded-random.ts'
import { plainBus } from '../support/plain-bus.ts'
import { VirtualClock } from '../../simulator/kernel/virtual-clock.ts'
import { apiClient } from '../support/api-client.ts'
import { FakeController, NODE_ID } from '../support/api-world.ts'
import { parseExposition, type ParsedFamily } from '../support/prometheus-parser.ts'

const DOCS = readFileSync(new URL('../../docs/metrics.md', import.meta.url), 'utf8')

let served: ServedMetrics | null = null
afterEach(() => {
  served?.process.stop()
  served = null
})

/** All metrics that `headroom serve` exposes, over a small world. */
async function exposition(world = new FakeController(), fleet: 'live' | 'simulated' = 'live') {
  served = createServedMetrics()
  const clock = new VirtualClock(0)
  const bus = plainBus(clock)
  const controller = createController({
    clock,
    bus,
    store: createMemoryStore(),
    random: createSeededRandom('metrics'),
  })
  const recording = { isOpen: true, entries: 7, writtenBytes: 70 }
  served.watch({
    controller,
    dropped: new Map([['wrong_version', 3]]),
    succession: () => ({ standbys: 1, others: 1, terms: 2, lagMs: 250 }),
    leaseAgeMs: () => 40,
    commitQueueDepth: () => 2,
    diskFreeBytes: () => 5e9,
    recording,
  })
  served.metrics.add(...uploadMetrics(() => 0, 1))
  const api = await apiClient(world, { metrics: served.metrics, inVirtualTime: false, fleet })
  const read = async (): Promise<ReadonlyMap<string, ParsedFamily>> =>
    parseExposition((await api.send('GET', '//metrics')).body)
  return { api, read, served }
}

const valuesOf = (family: ParsedFamily | undefined) =>
  Object.fromEntries(
    (family?.samples ?? []).map(({ labels, value }) => [[...labels.values()].join(' '), value]),
  )

const event = (at: number, kind: Event['kind'], data: Event['data'] = {}): Event => ({
  seq: at,
  at,
  kind,
  taskId: 'a',
  nodeId: 'n',
  causedBy: null,
  by: null,
  data,
})
const moving = (at: number, residency: string, because: string | null = null) =>
  event(at, 'task_residency', { residency, because })

describe('GET /metrics', () => {
  it('is valid text of version 0.0.4, at the root and under /api/v1', async () => {
    const { api } = await exposition()
    for (const path of ['//metrics', '/metrics']) {
      const answer = await api.send('GET', path)
      expect([answer.status, answer.headers['content-type']]).toEqual([
        200,
        'text/plain; version=0.0.4; charset=utf-8',
      ])
      expect(parseExposition(answer.body).size).toBeGreaterThan(30)
    }
    await api.app.close()
  })

  it('has exactly the metrics that docs/metrics.md lists, each with its type and labels', async () => {
    const world = new FakeController()
    await world.addNode({ id: NODE_ID, gpus: 1, physicalMib: 1000 })
    const { api, read, served: all } = await exposition(world)
    await api.send('POST', '/tasks', { vram_mib: 10 })
    all.onEvents([event(1, 'swap_failed'), moving(1, 'swapping_out', 'ordered'), moving(2, 'swapped_out')])
    await read()
    world.now += 60_000
    const shown = new Map([...(await read())].map(([name, { type }]) => [name, type]))
    const documented = [...DOCS.matchAll(/^\| `(\w+)`(?: \*)? \| (\w+) \|([^|]*)\|/gm)]
    expect(new Map(documented.map(([, name, type]) => [name, type]))).toEqual(shown)
    const families = await read()
    const withoutSample: string[] = []
    for (const [, name, , labels] of documented) {
      const samples = families.get(name as string)?.samples ?? []
      if (samples.length === 0) withoutSample.push(name as string)
      const expected = (labels as string)
        .split(',')
        .map((each) => each.trim())
        .filter(Boolean)
      for (const sample of samples)
        expect([name, [...sample.labels.keys()].filter((label) => label !== 'le')]).toEqual([name, expected])
    }
    // This world does not swap by itself.
    expect(withoutSample).toEqual([
      'headroom_swap_fairness_jain',
      'headroom_wake_part_seconds',
      'headroom_twin_drift_ratio',
      'headroom_twin_drifting',
    ])
    await api.app.close()
  })

  it('has the same values as the API, in base units', async () => {
    const world = new FakeController()
    await world.addNode({ id: NODE_ID, gpus: 2, physicalMib: 1000 })
    await new Promise<void>((done) =>
      world.commands.putNodeConfig(NODE_ID, { overcommitPercent: 30 }, null, () => done()),
    )
    const { api, read } = await exposition(world)
    await api.send('POST', '/tasks', { vram_mib: 10, priority: 1 })
    world.now += 7_500
    const families = await read()
    expect(valuesOf(families.get('headroom_vram_bytes'))).toMatchObject({ physical: 2000 * 1_048_576 })
    expect(valuesOf(families.get('headroom_tasks'))).toMatchObject({
      'pending P1': 1,
      'pending P2': 0,
      'running P0': 0,
    })
    expect(valuesOf(families.get('headroom_tasks_pending'))).toEqual({ WAITING_VRAM: 1 })
    expect(Object.values(valuesOf(families.get('headroom_overcommit_percent')))).toEqual([30])
    expect(Object.values(valuesOf(families.get('headroom_node_heartbeat_age_seconds')))).toEqual([7.5])
    expect(valuesOf(families.get('headroom_messages_refused_total'))).toMatchObject({
      wrong_version: 3,
      wrong_sender: 0,
    })
    expect(valuesOf(families.get('headroom_store_queue_batches'))).toEqual({ '': 2 })
    const requests = families
      .get('headroom_http_request_duration_seconds')
      ?.samples.filter(({ name }) => name.endsWith('_count'))
    expect(
      requests?.map(({ labels, value }) => [
        labels.get('method'),
        labels.get('route'),
        labels.get('status'),
        value,
      ]),
    ).toEqual([['POST', '/api/v1/tasks', '2xx', 1]])
    await api.app.close()
  })

  it('The metrics have what nodes report of refused requests, and 0 for other nodes', async () => {
    const world = new FakeController()
    await world.addNode({ id: NODE_ID, gpus: 1, physicalMib: 1000 })
    const [node] = world.views.nodes()
    const { api, read } = await exposition(world)
    expect(Object.values(valuesOf((await read()).get('headroom_node_full_queues')))).toEqual([0])
    Object.assign(node ?? {}, { requests: { full_queues: 2, refused: 5, expired: 3 } })
    const families = await read()
    expect(Object.values(valuesOf(families.get('headroom_node_full_queues')))).toEqual([2])
    expect(valuesOf(families.get('headroom_node_refused_requests_total'))).toEqual({
      'node-1 full': 5,
      'node-1 late': 3,
    })
    await api.app.close()
  })

  it('The metrics have no heartbeat age for a node that sends no heartbeats', async () => {
    const world = new FakeController()
    await world.addNode({ id: NODE_ID, gpus: 1, physicalMib: 1000 })
    const { api, read } = await exposition(world, 'simulated')
    expect((await read()).get('headroom_node_heartbeat_age_seconds')?.samples).toEqual([])
    await api.app.close()
  })

  it('labels requests by the declared route, whatever ids and paths are sent', async () => {
    const { api, read } = await exposition()
    for (let i = 0; i < 20; i++) {
      await api.send('GET', `/tasks/unknown-${i}`)
      await api.send('GET', `/no-such-path-${i}`)
    }
    const routes = (await read())
      .get('headroom_http_request_duration_seconds')
      ?.samples.map(({ labels }) => labels.get('route'))
    expect(new Set(routes)).toEqual(new Set(['/api/v1/tasks/:task_id', 'none']))
    await api.app.close()
  })
})

describe('the exposition', () => {
  it('escapes any text in labels and help', () => {
    const label = 'a "quoted" \\ back\nslash, {brace} = Ω'
    const text = expose(
      gauges('odd_bytes', 'One\nline \\ only', ['node'], () => [{ labels: [label], value: 1.5e-9 }]),
    )
    const family = parseExposition(text).get('odd_bytes')
    expect(family?.samples).toEqual([
      { name: 'odd_bytes', labels: new Map([['node', label]]), value: 1.5e-9 },
    ])
  })

  it('writes infinities, and no sample for an unknown value', () => {
    const family = parseExposition(
      expose(gauge('a', 'A.', () => Infinity)) + expose(gauge('b', 'B.', () => null)),
    )
    expect(family.get('a')?.samples[0]?.value).toBe(Infinity)
    expect(family.get('b')?.samples).toEqual([])
  })

  it('counts each observation in its bucket, with an inclusive upper bound', () => {
    const histogram = new Histogram({ name: 'h_seconds', help: 'H.', bounds: [1, 2] })
    for (const value of [0.5, 1, 1.5, 2, 3]) histogram.observe(value)
    const samples = parseExposition(expose(histogram)).get('h_seconds')?.samples ?? []
    expect(samples.map(({ value }) => value)).toEqual([2, 4, 5, 8, 5])
  })

  it('limits the number of series of an instrument', () => {
    const counter = new Counter({ name: 'c_total', help: 'C.', labels: ['a', 'b'] })
    for (let i = 0; i < 2 * MAX_SERIES; i++) counter.add(1, String(i), 'x')
    const samples = [...counter.samples()]
    expect(samples).toHaveLength(MAX_SERIES + 1)
    expect(samples.find(({ labels }) => labels[0] === 'other')?.value).toBe(MAX_SERIES)
  })

  it('refuses two metrics with the same name', () => {
    const metrics = new Metrics()
    metrics.add(gauge('a', 'A.', () => 1))
    expect(() => metrics.add(gauge('a', 'A.', () => 2))).toThrow(/two metrics are named a/)
  })

  it.each([
    ['a 1', 'without its family'],
    ['# HELP a A.\n# TYPE a gauge\na 1\na 2', 'comes twice'],
    ['# HELP a A.\n# TYPE a gauge\nb 1', 'another family'],
    ['# HELP a A.\n# TYPE a gauge\na{x="1} 1', 'without an end'],
    ['# HELP a A.\n# TYPE a gauge\na{x="1"} 1 2', 'more than one'],
    ['# HELP a_total A.\n# TYPE a_total gauge\na_total 1', 'is not a counter'],
    [
      '# HELP h H.\n# TYPE h histogram\nh_bucket{le="1"} 2\nh_bucket{le="+Inf"} 1\nh_sum 1\nh_count 1',
      'not cumulative',
    ],
    ['# HELP h H.\n# TYPE h histogram\nh_bucket{le="1"} 1\nh_sum 1\nh_count 1', 'incomplete'],
  ])('is checked by a strict parser that refuses %j', (text, why) => {
    expect(() => parseExposition(`${text}\n`)).toThrow(why)
  })
})

describe('wait and swap metrics', () => {
  async function measured(events: readonly Event[], pendingSince = 0, wantsSince: number | null = null) {
    const metrics = new Metrics()
    const placement = { wantsGpu: wantsSince !== null, wantsSince: wantsSince ?? 0 }
    createEventMetrics(metrics, () => ({ pendingSince, placement }) as never).take(events)
    const families = parseExposition(await metrics.text())
    const sumOf = (name: string) =>
      Object.fromEntries(
        (families.get(name)?.samples ?? [])
          .filter((sample) => sample.name.endsWith('_sum'))
          .map(({ labels, value }) => [[...labels.values()].join(' '), value]),
      )
    return {
      swaps: valuesOf(families.get('headroom_swaps_total')),
      failed: valuesOf(families.get('headroom_swaps_failed_total')),
      sumOf,
    }
  }

  it('a wait ends with a placement', async () => {
    const { sumOf } = await measured([event(9_000, 'task_placed')], 2_000)
    expect(sumOf('headroom_task_wait_seconds')).toEqual({ '': 7 })
  })

  it('a swap is measured from its order to its end, in each direction', async () => {
    const { swaps, sumOf } = await measured([
      moving(1_000, 'swapping_out', 'for b'),
      moving(3_000, 'swapped_out'),
      moving(10_000, 'swapping_in'),
      moving(14_500, 'resident'),
    ])
    expect(swaps).toEqual({ 'out demand': 1, 'in wanted': 1 })
    expect(sumOf('headroom_swap_duration_seconds')).toEqual({ out: 2, in: 4.5 })
  })

  const away = [
    moving(1_000, 'swapping_out', 'for b'),
    moving(3_000, 'swapped_out'),
    moving(10_000, 'swapping_in'),
    moving(14_500, 'resident'),
  ]

  it.each([
    ['from the time at which the task wants the GPU', 9_000, { '': 5.5 }],
    ['from the swap-out where the task wanted the GPU before', 500, { '': 11.5 }],
    ['not at all where nothing wants the GPU', null, { '': 0 }],
  ])('a wake is measured %s', async (_how, wantsSince, sums) => {
    const { sumOf } = await measured(away, 0, wantsSince)
    expect(sumOf('headroom_wake_seconds')).toEqual(sums)
  })

  it('a failed swap-in does not begin another wake', async () => {
    const events = [...away.slice(0, 3), moving(11_000, 'swapped_out', 'no_vram'), ...away.slice(3)]
    const { sumOf } = await measured(events, 0, 500)
    expect(sumOf('headroom_wake_seconds')).toEqual({ '': 11.5 })
  })

  it('a swap that was cancelled or failed is not counted', async () => {
    const { swaps, failed } = await measured([
      moving(1_000, 'swapping_out', 'ordered'),
      moving(1_500, 'resident', 'woke_while_locked'),
      moving(2_000, 'swapping_in'),
      event(2_500, 'swap_failed'),
      moving(2_500, 'swapped_out', 'no_vram'),
    ])
    expect(swaps).toEqual({})
    expect(failed).toEqual({ in: 1 })
  })

  it('a swap that began before the start is counted without a duration', async () => {
    const { swaps, sumOf } = await measured([moving(1_000, 'swapped_out'), moving(2_000, 'resident')])
    expect(swaps).toEqual({ 'out unknown': 1, 'in unknown': 1 })
    expect(sumOf('headroom_swap_duration_seconds')).toEqual({})
  })
})

describe('the reasons of pending tasks', () => {
  function worldWith(tasks: number): FakeController {
    const world = new FakeController()
    const request = taskRequest({ vram_mib: 10 }, null, null)
    for (let i = 0; i < tasks; i++) world.commands.submitTask(request, () => {})
    return world
  }

  it('are exact while there are few tasks', () => {
    const world = worldWith(20)
    const reasons = [{ reason: 'WAITING_VRAM', tasks: 20 }]
    expect(createPendingReasons(world.views, () => 0)()).toEqual({
      counted: 20,
      of: 20,
      is_estimate: false,
      reasons,
    })
    expect(world.explained).toBe(20)
  })

  it('are estimated from a bounded sample when there are many tasks', () => {
    const world = worldWith(3 * MAX_SAMPLE + 7)
    const answer = createPendingReasons(world.views, () => 0)()
    expect(answer).toMatchObject({ of: 3 * MAX_SAMPLE + 7, is_estimate: true })
    expect(answer.reasons).toEqual([{ reason: 'WAITING_VRAM', tasks: 3 * MAX_SAMPLE + 7 }])
    expect(answer.counted).toBe(world.explained)
    expect(world.explained).toBeLessThanOrEqual(MAX_SAMPLE)
    expect(world.explained).toBeGreaterThan(MAX_SAMPLE / 2)
  })

  it('are limited to a few slow explanations; the next call continues with other tasks', () => {
    const world = worldWith(500)
    let [elapsed, explained] = [0, 0]
    const explain = world.views.explain.bind(world.views)
    const seen = new Set<string>()
    world.views.explain = (task) => {
      seen.add(task.spec.id)
      const explanation = explain(task)
      const reason = task.spec.seq % 3 === 0 ? 'NEVER_FITS' : 'WAITING_VRAM'
      return explanation === null ? null : { ...explanation, primary: { ...explanation.primary, reason } }
    }
    const read = createPendingReasons(world.views, () => (elapsed += 5))
    for (let scrape = 0; scrape < 3; scrape++) {
      expect(read().reasons.reduce((sum, { tasks }) => sum + tasks, 0)).toBe(500)
      expect(world.explained - explained).toBeLessThan(10)
      explained = world.explained
      world.now += 15_000
    }
    expect(seen.size).toBe(world.explained)
  })

  it('are not computed again within a second', () => {
    const world = worldWith(5)
    const read = createPendingReasons(world.views, () => 0)
    read()
    read()
    expect(world.explained).toBe(5)
  })
})
