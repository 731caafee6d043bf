/** GPUs as columns, owners, capabilities, and lists as CSV. */
import { gunzipSync } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Gpu } from '../../controller/model/placement.ts'
import { createApi } from '../../controller/api/server.ts'
import { Series } from '../../controller/series/series.ts'
import { createSeededRandom } from '../../simulator/kernel/seeded-random.ts'
import { accessWorld } from '../support/access-world.ts'
import { apiClient, type ApiClient } from '../support/api-client.ts'
import { FakeController } from '../support/api-world.ts'

type Mutable<T> = { -readonly [K in keyof T]: T[K] }

const idOf = (n: number): string => `5f0c9a52-1d3e-4b7a-9c11-${String(n).padStart(12, '0')}`
let world: FakeController
let series: Series
let api: ApiClient

beforeEach(async () => {
  world = new FakeController()
  for (let n = 0; n < 3; n++) await world.addNode({ id: idOf(n), gpus: 2, physicalMib: 40_000 })
  series = new Series(world.views)
  series.take()
  api = await apiClient(world, { series })
})
afterEach(() => api.app.close())

const gpu = (n: number, index = 0) => world.nodes.get(idOf(n))?.gpus[index] as Mutable<Gpu>

/** Advances the clock by samples of 10 s. */
function pass(samples: number): void {
  for (let i = 0; i < samples; i++) {
    world.now += 10_000
    series.take()
  }
}

/** Counters since the start, by node and index. */
function report({ outs, copyMs, lostMs }: { outs: number; copyMs: number; lostMs: number }): void {
  const isFirst = ({ node, index }: Gpu): boolean => node.ordinal === 1 && index === 1
  world.views.gpuSwaps = (each) => ({
    swapOuts: isFirst(each) ? outs : 0,
    swapIns: 0,
    swappedOutMib: 0,
    swappedInMib: 0,
  })
  world.views.gpuCopyMs = (each) => (isFirst(each) ? copyMs : 0)
  world.views.gpuCounters = (each) => ({
    demand: isFirst(each) ? 1000 * (lostMs + 1_000) : 0,
    served: isFirst(each) ? 1_000_000 : 0,
    queue: 0,
    swap: isFirst(each) ? 1000 * lostMs : 0,
    compute: 0,
    busy: isFirst(each) ? 1_000_000 : 0,
  })
}

describe('GET /gpus', () => {
  test('Returns one value per GPU in each column, in order of registration and index', async () => {
    gpu(1, 1).swappableResidentMib = 900
    gpu(1, 1).foreignMib = 100
    const { status, body } = await api.send('GET', '/gpus')
    expect(status).toBe(200)
    expect(body).toMatchObject({ total: 6, next_cursor: null, models: ['Fake GPU'] })
    expect(body.nodes.map((node: { node_id: string }) => node.node_id)).toEqual([idOf(0), idOf(1), idOf(2)])
    expect(body.columns).toMatchObject({
      node: [0, 0, 1, 1, 2, 2],
      index: [0, 1, 0, 1, 0, 1],
      used_mib: [0, 0, 0, 1000, 0, 0],
      resident_mib: [0, 0, 0, 900, 0, 0],
    })
    for (const column of Object.values(body.columns)) expect(column).toHaveLength(6)
  })

  test('Figures of the hour are sums and not extrapolated, and null before anything is known', async () => {
    expect((await api.send('GET', '/gpus')).body.columns).toMatchObject({
      utilization_percent: Array(6).fill(null),
      lost_seconds: Array(6).fill(null),
    })
    pass(1)
    report({ outs: 3, copyMs: 4_500, lostMs: 9_000 })
    pass(2)
    const { body } = await api.send('GET', '/gpus?sort=swap_outs&limit=2')
    expect(body.columns).toMatchObject({
      node: [0, 1],
      swap_outs: [3, 0],
      copy_seconds: [4.5, 0],
      lost_seconds: [9, 0],
      starvation_percent: [90, 0],
    })
    expect(body.nodes[0].name).toBe('node-2')
    const hourMs = Date.parse(body.hour.to) - Date.parse(body.hour.from)
    expect(hourMs).toBeGreaterThanOrEqual(3_600_000)
    pass(366)
    expect((await api.send('GET', '/gpus?sort=swap_outs&limit=1')).body.columns.swap_outs).toEqual([0])
  })

  test('Continues after a cursor in every order, and refuses a cursor of another order', async () => {
    gpu(0).foreignMib = 7
    gpu(2, 1).foreignMib = 9
    for (const sort of ['registered', 'name', 'utilization', 'used', 'out', 'copy', 'lost']) {
      const seen: string[] = []
      let cursor = ''
      do {
        const { body } = await api.send('GET', `/gpus?sort=${sort}&limit=4${cursor}`)
        body.columns.node.forEach((place: number, i: number) =>
          seen.push(`${body.nodes[place].name}/${body.columns.index[i]}`),
        )
        cursor = body.next_cursor === null ? '' : `&cursor=${body.next_cursor}`
      } while (cursor !== '')
      expect([sort, new Set(seen).size, seen.length]).toEqual([sort, 6, 6])
      if (sort === 'used') expect(seen.slice(0, 2)).toEqual(['node-3/1', 'node-1/0'])
    }
    const { next_cursor: cursor } = (await api.send('GET', '/gpus?sort=used&limit=1')).body
    for (const query of [
      `cursor=${cursor}`,
      `sort=used&order=asc&cursor=${cursor}`,
      'sort=used&cursor=W10',
    ]) {
      expect(await api.send('GET', `/gpus?${query}`), query).toMatchObject({
        status: 400,
        body: { errors: [{ pointer: '/cursor' }] },
      })
    }
  })

  test('Selects the GPUs of a node or of a group', async () => {
    world.groups.set('vision', { id: 'vision', description: '', nodeIds: [idOf(2)] })
    const node = world.nodes.get(idOf(2))
    if (node !== undefined) node.groups = ['vision']
    expect((await api.send('GET', '/gpus?node=node-2')).body.nodes[0].node_id).toBe(idOf(1))
    expect((await api.send('GET', '/gpus?group=vision')).body.columns.index).toEqual([0, 1])
    expect((await api.send('GET', '/gpus?node=node-9')).status).toBe(400)
    expect((await api.send('GET', '/gpus?group=none')).status).toBe(400)
  })

  test('10,000 GPUs with different figures take at most 150 KB compressed', async () => {
    const large = new FakeController()
    const random = createSeededRandom('api-gpus').stream('gpus')
    for (let n = 0; n < 1_250; n++) {
      const id = `${random().toString(16).slice(2, 10).padEnd(8, '0')}${idOf(n).slice(8)}`
      await large.addNode({ id, gpus: 8, physicalMib: 81_559 })
    }
    const upTo = (limit: number): number => Math.floor(random() * limit)
    for (const node of large.nodes.values())
      for (const each of node.gpus as Mutable<Gpu>[]) each.swappableResidentMib = upTo(81_559)
    const grown = new Map<Gpu, number>()
    for (const node of large.nodes.values()) for (const each of node.gpus) grown.set(each, random())
    let isLater = false
    const of = (each: Gpu, most: number): number => (isLater ? Math.floor((grown.get(each) ?? 0) * most) : 0)
    large.views.gpuSwaps = (each) => ({
      swapOuts: of(each, 40),
      swapIns: 0,
      swappedOutMib: 0,
      swappedInMib: 0,
    })
    large.views.gpuCopyMs = (each) => of(each, 600_000)
    large.views.gpuCounters = (each) => {
      const busy = 1000 * of(each, 10_000)
      return { demand: 2 * busy, served: busy, queue: 0, swap: busy, compute: 0, busy }
    }
    const taken = new Series(large.views)
    taken.take()
    isLater = true
    large.now += 10_000
    taken.take()
    const app = createApi({ commands: large.commands, views: large.views, version: '0', series: taken })
    const answer = await app.inject({
      url: '/api/v1/gpus?limit=10000',
      headers: { 'accept-encoding': 'gzip, br' },
    })
    await app.close()
    expect(answer.headers['content-encoding']).toBe('gzip')
    const body = JSON.parse(gunzipSync(answer.rawPayload).toString())
    expect(body.columns.lost_seconds).toHaveLength(10_000)
    expect(new Set(body.columns.used_mib).size).toBeGreaterThan(5_000)
    expect(answer.rawPayload.length).toBeLessThan(150_000)
  })
})

describe('GET /owners', () => {
  test('Sums the open tasks of each owner', async () => {
    for (const [owner, vram] of [
      ['ann', 100],
      ['ann', 200],
      ['bob', 300],
    ] as const) {
      const { body } = await api.send('POST', '/tasks', { vram_mib: vram })
      const task = world.open.get(body.id)
      if (task !== undefined) task.spec = { ...task.spec, owner }
    }
    await api.send('POST', '/tasks', { vram_mib: 5 })
    world.views.taskCounters = ({ spec }) => ({
      demand: 0,
      served: 0,
      queue: spec.owner === 'bob' ? 9_000_000 : 1_000_000,
      swap: 0,
      compute: 0,
      busy: 0,
    })
    const { status, body } = await api.send('GET', '/owners')
    expect(status).toBe(200)
    expect(body.items.map(({ owner }: { owner: string | null }) => owner)).toEqual(['bob', 'ann', null])
    expect(body.items[1]).toMatchObject({
      tasks: { running: 0, pending: 2, on_hold: 0 },
      lost: { queue_seconds: 2, total_seconds: 2 },
    })
    expect((await api.send('GET', '/owners?sort=name&limit=1')).body).toMatchObject({
      items: [{ owner: null }],
      total: 3,
    })
    expect((await api.send('GET', '/owners?q=bo')).body.items).toHaveLength(1)
    expect((await api.send('GET', '/owners?owner=bo')).body.items).toEqual([])
    expect((await api.send('GET', '/owners?owner=bob')).body).toMatchObject({
      ...{ items: [{ owner: 'bob' }], total: 1 },
    })
    expect((await api.send('GET', '/owners?format=csv')).body).toContain('\nbob,0,0,1,0,0,0,0,9,0,0,9,')
  })
})

describe('a list as CSV', () => {
  const lines = async (path: string): Promise<readonly string[]> =>
    String((await api.send('GET', path)).body)
      .trimEnd()
      .split('\n')

  test('Has all matching rows, whatever the size of a page', async () => {
    for (let n = 0; n < 1_203; n++)
      await api.send('POST', '/tasks', { name: `t${n}`, vram_mib: 100, priority: n % 2 === 0 ? 1 : 2 })
    const all = await lines('/tasks?format=csv&state=pending')
    expect(all).toHaveLength(1_204)
    expect(all[0]).toMatch(/^id,name,owner,state,/)
    expect(all[1]).toMatch(/,t1202,/)
    expect(await lines('/tasks?format=csv&priority=1')).toHaveLength(603)
    expect(await lines('/tasks?format=csv&reason=WAITING_VRAM&q=t120')).toHaveLength(5)
    expect(await lines('/nodes?format=csv')).toHaveLength(4)
    expect(await lines('/gpus?format=csv&sort=name&order=desc')).toHaveLength(7)
  })

  test('Has final tasks after open ones, and text that is not a formula', async () => {
    const { body } = await api.send('POST', '/tasks', { name: '=1+1', vram_mib: 100 })
    await api.send('POST', '/tasks', { name: 'a,"b"', vram_mib: 100 })
    world.finish(body.id, 'failed', 'exit code 1')
    const rows = await lines('/tasks?format=csv')
    expect(rows.slice(1).map((row) => row.split(',').slice(1, 3).join())).toEqual(['"a,""b"""', "'=1+1,"])
    expect(await lines('/tasks?format=csv&state=failed')).toHaveLength(2)
    expect(await lines('/tasks?format=csv&state=succeeded')).toHaveLength(1)
  })

  test('Is refused for a page or another order', async () => {
    for (const [query, pointer] of [
      ['limit=5', '/limit'],
      ['cursor=x', '/cursor'],
      ['sort=oldest', '/sort'],
    ]) {
      expect(await api.send('GET', `/tasks?format=csv&${query}`), query).toMatchObject({
        status: 400,
        body: { errors: [{ pointer }] },
      })
    }
  })
})

test('state=failed selects failed and lost tasks, and succeeded those with exit code 0', async () => {
  for (const state of ['completed', 'failed', 'lost', 'cancelled'] as const) {
    const { body } = await api.send('POST', '/tasks', { name: state, vram_mib: 100 })
    world.finish(body.id, state, 'it ended')
  }
  const names = async (state: string) =>
    (await api.send('GET', `/tasks?state=${state}`)).body.items.map(({ name }: { name: string }) => name)
  expect(await names('failed')).toEqual(['lost', 'failed'])
  expect(await names('succeeded')).toEqual(['completed'])
  expect(await names('completed')).toEqual(['cancelled', 'lost', 'failed', 'completed'])
})

describe('GET /capabilities', () => {
  test('Lists exactly the operations that the role permits', async () => {
    const access = await accessWorld()
    const of = async (role: 'viewer' | 'submitter' | 'operator') =>
      (
        await access.ask('GET', '/api/v1/capabilities', { token: await access.token(role, { name: role }) })
      ).json<{
        operations: string[]
        own_tasks_only: string[]
      }>()
    const [viewer, submitter, operator] = [await of('viewer'), await of('submitter'), await of('operator')]
    expect(viewer.operations).toContain('listGpus')
    expect(viewer.operations).not.toContain('submitTask')
    expect(submitter.operations).toContain('cancelTask')
    expect(submitter.own_tasks_only).toContain('cancelTask')
    expect(operator.own_tasks_only).not.toContain('cancelTask')
    expect(operator.operations).toContain('putConfig')
    expect(submitter.operations).not.toContain('putConfig')
    await access.app.close()
  })

  test('Without authentication the caller may do everything, and missing parts are named', async () => {
    const { body } = await api.send('GET', '/capabilities')
    expect(body).toMatchObject({
      caller: { name: null, role: 'admin' },
      features: { simulations: false, forecasts: false, task_output: false },
      own_tasks_only: [],
    })
    expect(body.operations).toContain('createToken')
  })
})
