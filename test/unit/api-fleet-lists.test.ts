/** Nodes sorted by their figures, and groups with sums over all their members. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Gpu, Node } from '../../controller/model/placement.ts'
import { apiClient, type ApiClient } from '../support/api-client.ts'
import { FakeController } from '../support/api-world.ts'

type Mutable<T> = { -readonly [K in keyof T]: T[K] }

const idOf = (n: number): string => `5f0c9a52-1d3e-4b7a-9c11-${String(n).padStart(12, '0')}`
const NODES = 250
let world: FakeController
let api: ApiClient

beforeEach(async () => {
  world = new FakeController()
  for (let n = 0; n < NODES; n++) await world.addNode({ id: idOf(n), gpus: 8, physicalMib: 40_000 })
  api = await apiClient(world)
})
afterEach(() => api.app.close())

const node = (n: number) => world.nodes.get(idOf(n)) as Mutable<Node>
const gpu = (n: number) => node(n).gpus[0] as Mutable<Gpu>

/** Registration positions, over all pages. */
async function listed(query: string): Promise<readonly number[]> {
  const found: number[] = []
  let cursor = ''
  do {
    const { status, body } = await api.send('GET', `/nodes?${query}&limit=40${cursor}`)
    expect([status, body.total]).toEqual([200, NODES])
    found.push(...body.items.map(({ node_id: id }: { node_id: string }) => Number(id.slice(-12))))
    cursor = body.next_cursor === null ? '' : `&cursor=${body.next_cursor}`
  } while (cursor !== '')
  return found
}

const upwards = Array.from({ length: NODES }, (_, n) => n)

describe('GET /nodes', () => {
  test('Sorts by each figure over all nodes and pages, in descending or ascending order', async () => {
    for (const n of upwards) gpu(n).swappableMib = (n * 37) % 101
    const committed = upwards.toSorted((a, b) => ((b * 37) % 101) - ((a * 37) % 101) || b - a)
    expect(await listed('sort=allocated')).toEqual(committed)
    expect(await listed('sort=allocated&order=asc')).toEqual(committed.toReversed())
    for (const n of upwards) gpu(n).foreignMib = n % 7
    expect(await listed('sort=used')).toEqual(upwards.toSorted((a, b) => (b % 7) - (a % 7) || b - a))
    world.views.nodeSwaps = ({ ordinal }) => ({
      swapOuts: ordinal % 5,
      swapIns: 1,
      swappedOutMib: 0,
      swappedInMib: 0,
    })
    expect(await listed('sort=swaps')).toEqual(upwards.toSorted((a, b) => (b % 5) - (a % 5) || b - a))
    expect((await api.send('GET', '/nodes?sort=swaps&limit=1')).body.items[0].swaps).toEqual({
      outs: 4,
      ins: 1,
    })
    node(123).queue = [{}, {}] as unknown as Node['queue']
    expect(await listed('sort=load')).toEqual([123, ...committed.filter((n) => n !== 123)])
  })

  test('Sorts by name, and by registration by default', async () => {
    expect(await listed('')).toEqual(upwards)
    expect(await listed('order=desc')).toEqual(upwards.toReversed())
    const byName = upwards.toSorted((a, b) => (`node-${a + 1}` < `node-${b + 1}` ? -1 : 1))
    expect(await listed('sort=name')).toEqual(byName)
  })

  test('Refuses an unknown order, and a cursor of another order', async () => {
    expect(await api.send('GET', '/nodes?sort=age')).toMatchObject({
      status: 400,
      body: { errors: [{ pointer: '/sort' }] },
    })
    const { next_cursor: cursor } = (await api.send('GET', '/nodes?sort=load&limit=1')).body
    expect((await api.send('GET', `/nodes?sort=load&limit=1&cursor=${cursor}`)).body.items).toHaveLength(1)
    for (const query of [
      `cursor=${cursor}`,
      `sort=load&order=asc&cursor=${cursor}`,
      `sort=used&cursor=${cursor}`,
      'cursor=cDE',
      'cursor=W10',
    ]) {
      expect(await api.send('GET', `/nodes?${query}`), query).toMatchObject({
        status: 400,
        body: { errors: [{ pointer: '/cursor' }] },
      })
    }
  })
})

describe('GET /groups', () => {
  test('Has sums over all members of a group and of the common pool, whatever their number', async () => {
    const members = upwards.filter((n) => n >= 200)
    for (const n of members) node(n).groups = ['vision']
    node(249).status = 'suspect'
    gpu(248).swappableMib = 500
    gpu(0).noswapMib = 70
    world.groups.set('vision', {
      id: 'vision',
      description: '',
      nodeIds: [...members.map(idOf), 'not-registered'],
    })
    const { body } = await api.send('GET', '/groups')
    const each = { physical_mib: 8 * 40_000, effective_schedulable_mib: 8 * 40_000 }
    const times = (count: number) => ({
      nodes: count,
      gpus: 8 * count,
      physical_mib: each.physical_mib * count,
      effective_schedulable_mib: each.effective_schedulable_mib * count,
    })
    expect(body.items[0].sums).toEqual({ ...times(50), nodes_up: 49, committed_mib: 500 })
    expect(body.items[0].node_ids).toHaveLength(51)
    expect(body.items[0].first_nodes.map(({ name }: { name: string }) => name)).toEqual(
      [201, 202, 203, 204, 205, 206, 207, 208].map((n) => `node-${n}`),
    )
    expect(body.common_pool).toEqual({ ...times(200), nodes_up: 200, committed_mib: 70 })
    expect((await api.send('GET', '/groups/vision')).body.sums).toEqual(body.items[0].sums)
  })
})
