import { describe, expect, test } from 'vitest'
import type { Gpu, Node } from '../../controller/model/placement.ts'
import { ZERO_COUNTERS } from '../../controller/metrics/counters.ts'
import { Series } from '../../controller/series/series.ts'
import { apiClient } from '../support/api-client.ts'
import { FakeController, NODE_ID } from '../support/api-world.ts'

type Mutable<T> = { -readonly [K in keyof T]: T[K] }

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
    const [running, swapped, done] = [
      await submit(world, 10_000),
      await submit(world, 8_000),
      await submit(world, 1_000),
    ]
    await submit(world, 99_000)
    world.place(running, NODE_ID, [0])
    world.place(swapped, NODE_ID, [0], { residency: 'swapped_out' })
    world.finish(done, 'failed')
    const { body } = await api.send('GET', '/summary')
    expect(body).toMatchObject({
      at: '2026-01-02T03:04:05.678Z',
      fleet: 'simulated',
      tasks: {
        by_list: { running: 2, pending: 1, completed: 1 },
        by_state: { running: 2, pending: 1, failed: 1, completed: 0 },
      },
      nodes: { total: 1, up: 1 },
      gpus: { total: 2, up: 2 },
      vram: {
        physical_mib: 80_000,
        resident_mib: 10_000,
        used_mib: 10_000,
        committed_mib: 18_000,
        swapped_mib: 8_000,
      },
      overcommit: { default_percent: 0, source: 'environment', nodes_with_override: 0 },
      starvation_compute_is_estimate: false,
    })
    await api.app.close()
  })

  test('percentages are null, with a reason, until two readings are a second apart', async () => {
    const world = await oneNode()
    const api = await apiClient(world)
    const first = (await api.send('GET', '/summary')).body
    expect(first).toMatchObject({ window: null, utilization_percent: null, starvation_percent: null })
    expect(first.utilization_unknown_because).toContain('first measurement')
    world.now += 999
    expect((await api.send('GET', '/summary')).body.window).toBeNull()
    world.now += 1
    expect((await api.send('GET', '/summary')).body).toMatchObject({
      window: { seconds: 1 },
      utilization_unknown_because: null,
    })
    await api.app.close()
  })

  test('percentages describe the time between the two readings', async () => {
    const world = await oneNode()
    const api = await apiClient(world)
    grow(world, { demand: 5_000_000, queue: 5_000_000 })
    await api.send('GET', '/summary')
    world.now += 10_000
    grow(world, {
      demand: 16_000_000,
      served: 10_000_000,
      queue: 3_000_000,
      swap: 2_000_000,
      compute: 1_000_000,
      busy: 12_000_000,
    })
    const { body } = await api.send('GET', '/summary')
    expect(body.window).toEqual({
      from: '2026-01-02T03:04:05.678Z',
      to: '2026-01-02T03:04:15.678Z',
      seconds: 10,
    })
    expect(body.utilization_percent).toBe(60)
    expect(body.starvation_percent).toEqual({ total: 37.5, queue: 18.75, swap: 12.5, compute: 6.25 })
    await api.app.close()
  })

  test('without a GPU, utilization is unknown instead of 0', async () => {
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

  test('distinguishes GPUs that were not up all the time from GPUs that are not up', async () => {
    const world = await oneNode()
    const api = await apiClient(world)
    await api.send('GET', '/summary')
    const node = world.nodes.get(NODE_ID)
    if (node !== undefined) node.status = 'suspect'
    world.now += 5_000
    const { body } = await api.send('GET', '/summary')
    // The world counts every node as up, but for the sampler this node is not up.
    expect(body).toMatchObject({ gpus: { up: 2 }, utilization_percent: null })
    expect(body.utilization_unknown_because).toBe(
      'No GPU was up for the entire time between the two measurements.',
    )
    await api.app.close()
  })

  test('Counts the nodes with each condition and with any condition, over the whole list', async () => {
    const world = new FakeController()
    const ids = Array.from(
      { length: 1_200 },
      (_, n) => `5f0c9a52-1d3e-4b7a-9c11-${String(n).padStart(12, '0')}`,
    )
    for (const id of ids) await world.addNode({ id, gpus: 1, physicalMib: 40_000 })
    const api = await apiClient(world)
    expect((await api.send('GET', '/summary')).body.nodes).toMatchObject({
      total: 1_200,
      attention: 0,
      cordoned: 0,
      silent: 0,
    })
    const node = (n: number) => world.nodes.get(ids[n] as string) as Mutable<Node>
    for (const n of [300, 600, 900]) node(n).isCordoned = true
    Object.assign(node(1_199), { isCordoned: true, drain: { since: 0, movesAt: null, by: 'api', event: 1 } })
    node(700).status = 'suspect'
    node(701).status = 'unreachable'
    const gpu = (n: number) => node(n).gpus[0] as Mutable<Gpu>
    Object.assign(gpu(800), { swappableMib: gpu(800).limitMib + 1 })
    Object.assign(gpu(801), { noswapResidentMib: gpu(801).capacityMib + 1 })
    const { nodes } = (await api.send('GET', '/summary')).body
    expect(nodes).toMatchObject({
      silent: 2,
      cordoned: 4,
      draining: 1,
      over_limit: 1,
      reserve_breached: 1,
      auto_cordoned: 0,
      attention: 8,
    })
    for (const [status, count] of Object.entries(nodes).slice(2)) {
      expect((await api.send('GET', `/nodes?status=${status}&limit=1`)).body.total, status).toBe(count)
    }
    await api.app.close()
  })

  test('The summary sums VRAM of nodes that are up, and separately of all nodes', async () => {
    const world = await oneNode()
    await world.addNode({ id: NODE_ID.replace('1', '2'), gpus: 1, physicalMib: 24_000 })
    const api = await apiClient(world, { brokerUrls: ['nats://127.0.0.1:31899'] })
    const task = await submit(world, 10_000)
    world.place(task, NODE_ID, [0])
    ;(world.nodes.get(NODE_ID) as Mutable<Node>).status = 'unreachable'
    const { vram, broker_urls: urls } = (await api.send('GET', '/summary')).body
    expect(vram).toMatchObject({ physical_mib: 104_000, committed_mib: 10_000, used_mib: 10_000 })
    expect(vram.up).toEqual({
      physical_mib: 24_000,
      used_mib: 0,
      committed_mib: 0,
      swapped_mib: 0,
      effective_schedulable_mib: 24_000,
    })
    expect(urls).toEqual(['nats://127.0.0.1:31899'])
    await api.app.close()
  })

  test('Counts tasks that failed or were lost within the hour, also before a restart', async () => {
    const world = await oneNode()
    const ended = (state: string, at: number) => world.addEvent('task_finished', { at, data: { state } })
    for (const [state, minutesAgo] of [
      ['lost', 61],
      ['lost', 59],
      ['completed', 30],
      ['failed', 20],
      ['lost', 0],
    ] as const)
      ended(state, world.now - minutesAgo * 60_000)
    const api = await apiClient(world)
    const lately = async () => (await api.send('GET', '/summary')).body.tasks.ended_last_hour
    expect(await lately()).toEqual({ since: '2026-01-02T02:04:05.678Z', failed: 1, lost: 2 })
    world.now += 120_000
    ended('failed', world.now)
    expect(await lately()).toMatchObject({ failed: 2, lost: 1 })
    // As after a session was moved back in time.
    world.events.length = 2
    world.now -= 120_000
    expect(await lately()).toMatchObject({ failed: 0, lost: 1 })
    await api.app.close()
  })

  test('States the start of its count if older events are no longer kept', async () => {
    const world = await oneNode()
    world.addEvent('task_finished', { seq: 5_000, at: world.now - 60_000, data: { state: 'lost' } })
    const api = await apiClient(world)
    const { ended_last_hour: lately } = (await api.send('GET', '/summary')).body.tasks
    expect(lately).toEqual({ since: '2026-01-02T03:03:05.678Z', failed: 0, lost: 1 })
    await api.app.close()
  })

  test('Leaves the figure null if the store does not respond, without delaying the summary', async () => {
    const world = await oneNode()
    world.views.stored.eventRange = () => new Promise(() => {})
    const api = await apiClient(world)
    expect((await api.send('GET', '/summary')).body.tasks.ended_last_hour).toBeNull()
    await api.app.close()
  })
})

describe('the last minute', () => {
  test('begins at the last reading that is at least one minute old, and ends now', async () => {
    const world = await oneNode()
    const start = world.now
    const series = new Series(world.views)
    expect(series.lastMinute()).toBeNull()
    for (let second = 0; second <= 200; second += 1) {
      world.now = start + second * 1_000
      grow(world, { busy: 1_000 })
      series.take()
    }
    // The test begins at :05.678, so the tenth second after each multiple of ten is the first with a reading.
    const from = start + 135_000
    const busy = (200 - 135) * 1_000
    expect(series.lastMinute()).toMatchObject({
      from,
      to: start + 200_000,
      counters: { busy },
      knownUs: 2 * 65_000_000,
    })
  })

  test('has demand equal to served plus starved time, also since the last reading', async () => {
    const world = await oneNode()
    const series = new Series(world.views)
    series.take()
    for (const seconds of [4, 10, 13]) {
      world.now += seconds * 1_000
      grow(world, {
        demand: 12_000_000,
        served: 5_000_000,
        queue: 3_000_000,
        swap: 2_000_000,
        compute: 2_000_000,
      })
      if (seconds === 10) series.take()
      const { demand, served, queue, swap, compute } = series.lastMinute()?.counters ?? ZERO_COUNTERS
      expect([demand > 0, served + queue + swap + compute]).toEqual([true, demand])
    }
  })

  test('counts a node only while its status is up', async () => {
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
