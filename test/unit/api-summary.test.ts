import { describe, expect, test } from 'vitest'
import { createPendingReasons, PENDING_LOOKED_AT } from '../../controller/api/pending-reasons.ts'
import { ZERO_COUNTERS } from '../../controller/metrics/counters.ts'
import { Series } from '../../controller/series/series.ts'
import { apiClient } from '../support/api-client.ts'
import { FakeController, NODE_ID } from '../support/api-world.ts'

/** GPU-microseconds. */
const grow = (world: FakeController, by: Partial<FakeController['counters']>) => {
  const next = { ...world.counters }
  for (const [name, value] of Object.entries(by)) next[name as keyof typeof next] += value
  world.counters = next
}

async function oneNode(): Promise<FakeController> {
  const world = new FakeController()
  await world.addNode({ id: NODE_ID, gpus: 2, physicalMib: 40_000 })
  return world
}

async function submit(world: FakeController, vramMib: number): Promise<string> {
  const api = await apiClient(world)
  const { body } = await api.send('POST', '/tasks', { vram_mib: vramMib })
  await api.app.close()
  return body.id
}

describe('GET /summary', () => {
  test('counts tasks by state and by the lists of the specification, and sums VRAM', async () => {
    const world = await oneNode()
    const api = await apiClient(world, { fleet: 'simulated' })
    const [running, swapped, done] = [await submit(world, 10_000), await submit(world, 8_000), await submit(world, 1_000)]
    await submit(world, 99_000)
    world.place(running, NODE_ID, [0])
    world.place(swapped, NODE_ID, [0], { residency: 'swapped_out' })
    world.finish(done, 'failed')
    const { body } = await api.send('GET', '/summary')
    expect(body).toMatchObject({
      at: '2026-01-02T03:04:05.678Z',
      fleet: 'simulated',
      tasks: { by_list: { running: 2, pending: 1, completed: 1 }, by_state: { running: 2, pending: 1, failed: 1, completed: 0 } },
      nodes: { total: 1, up: 1 },
      gpus: { total: 2, up: 2 },
      vram: { physical_mib: 80_000, resident_mib: 10_000, used_mib: 10_000, committed_mib: 18_000, swapped_mib: 8_000 },
      overcommit: { default_percent: 0, source: 'environment', nodes_with_override: 0 },
      starvation_compute_is_estimate: false,
    })
    await api.app.close()
  })

  test('percentages are null with a reason until two readings are a second apart', async () => {
    const world = await oneNode()
    const api = await apiClient(world)
    const first = (await api.send('GET', '/summary')).body
    expect(first).toMatchObject({ window: null, utilization_percent: null, starvation_percent: null })
    expect(first.utilization_unknown_because).toContain('first reading')
    world.now += 999
    expect((await api.send('GET', '/summary')).body.window).toBeNull()
    world.now += 1
    expect((await api.send('GET', '/summary')).body).toMatchObject({ window: { seconds: 1 }, utilization_unknown_because: null })
    await api.app.close()
  })

  test('percentages are about the time between the readings', async () => {
    const world = await oneNode()
    const api = await apiClient(world)
    grow(world, { demand: 5_000_000, queue: 5_000_000 })
    await api.send('GET', '/summary')
    world.now += 10_000
    grow(world, { demand: 16_000_000, served: 10_000_000, queue: 3_000_000, swap: 2_000_000, compute: 1_000_000, busy: 12_000_000 })
    const { body } = await api.send('GET', '/summary')
    expect(body.window).toEqual({ from: '2026-01-02T03:04:05.678Z', to: '2026-01-02T03:04:15.678Z', seconds: 10 })
    expect(body.utilization_percent).toBe(60)
    expect(body.starvation_percent).toEqual({ total: 37.5, queue: 18.75, swap: 12.5, compute: 6.25 })
    await api.app.close()
  })

  test('without a GPU utilization is unknown, not 0', async () => {
    const world = new FakeController()
    const api = await apiClient(world)
    await api.send('GET', '/summary')
    world.now += 5_000
    const { body } = await api.send('GET', '/summary')
    expect(body).toMatchObject({
      utilization_percent: null,
      utilization_unknown_because: 'No GPU is up.',
      starvation_percent: { total: 0 },
    })
    await api.app.close()
  })

  test('with GPUs that were not up all the time it does not say that none is', async () => {
    const world = await oneNode()
    const api = await apiClient(world)
    await api.send('GET', '/summary')
    const node = world.nodes.get(NODE_ID)
    if (node !== undefined) node.status = 'suspect'
    world.now += 5_000
    const { body } = await api.send('GET', '/summary')
    // The world counts every node as up: of the sampler's reading the node is not.
    expect(body).toMatchObject({ gpus: { up: 2 }, utilization_percent: null })
    expect(body.utilization_unknown_because).toBe('No GPU was up all the time between the two readings.')
    await api.app.close()
  })

  test('looks at a bounded number of pending tasks, and once a second', async () => {
    const world = await oneNode()
    const api = await apiClient(world)
    const request = {
      id: null,
      name: null,
      vramMib: 1,
      gpuCount: 1,
      gpuMode: 'shared',
      noswap: 0,
      priority: 2,
      groups: [],
      labels: {},
    } as const
    for (let i = 0; i < PENDING_LOOKED_AT + 5; i += 1) {
      world.commands.submitTask({ ...request, owner: null, command: null, maxRuntimeSeconds: null, onNodeLoss: 'wait' }, () => {})
    }
    let elapsedMs = 0
    const reasonsOf = createPendingReasons(world.views, () => elapsedMs)
    const reasons = [{ reason: 'WAITING_VRAM', tasks: PENDING_LOOKED_AT }]
    expect(reasonsOf()).toEqual({ counted: PENDING_LOOKED_AT, of: PENDING_LOOKED_AT + 5, reasons })
    reasonsOf()
    expect(world.explained).toBe(PENDING_LOOKED_AT)
    world.now += 1_000
    reasonsOf()
    expect(world.explained).toBe(2 * PENDING_LOOKED_AT)

    // Each look at the clock 3 ms after the one before: the budget is 20 ms.
    const slowly = createPendingReasons(world.views, () => (elapsedMs += 3))
    expect(slowly()).toEqual({ counted: 7, of: PENDING_LOOKED_AT + 5, reasons: [{ reason: 'WAITING_VRAM', tasks: 7 }] })
    await api.app.close()
  })
})

describe('the last minute', () => {
  test('begins at the last reading that is at least as old, and ends now', async () => {
    const world = await oneNode()
    const start = world.now
    const series = new Series(world.views)
    expect(series.lastMinute()).toBeNull()
    for (let second = 0; second <= 200; second += 1) {
      world.now = start + second * 1_000
      grow(world, { busy: 1_000 })
      series.take()
    }
    // The test begins at :05.678, so the tenth second after each full ten is the first that takes a reading.
    const from = start + 135_000
    const busy = (200 - 135) * 1_000
    expect(series.lastMinute()).toMatchObject({ from, to: start + 200_000, counters: { busy }, knownUs: 2 * 65_000_000 })
  })

  test('demands what it serves and what it owes, also since the last reading', async () => {
    const world = await oneNode()
    const series = new Series(world.views)
    series.take()
    for (const seconds of [4, 10, 13]) {
      world.now += seconds * 1_000
      grow(world, { demand: 12_000_000, served: 5_000_000, queue: 3_000_000, swap: 2_000_000, compute: 2_000_000 })
      if (seconds === 10) series.take()
      const { demand, served, queue, swap, compute } = series.lastMinute()?.counters ?? ZERO_COUNTERS
      expect([demand > 0, served + queue + swap + compute]).toEqual([true, demand])
    }
  })

  test('counts a node only while it is heard', async () => {
    const world = await oneNode()
    const series = new Series(world.views)
    series.take()
    const node = world.nodes.get(NODE_ID)
    if (node !== undefined) node.status = 'suspect'
    world.now += 5_000
    grow(world, { busy: 5_000_000 })
    expect(series.lastMinute()).toMatchObject({ counters: { busy: 0 }, knownUs: 0 })
  })
})
