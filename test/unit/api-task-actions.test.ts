import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { apiClient, type ApiClient } from '../support/api-client.ts'
import { FakeController, NODE_ID } from '../support/api-world.ts'

describe('operator actions', () => {
  const world = new FakeController()
  let api: ApiClient
  let id: string
  beforeAll(async () => {
    api = await apiClient(world)
    await world.addNode({ id: NODE_ID, gpus: 1, physicalMib: 1000 })
    id = (await api.send('POST', '/tasks', { vram_mib: 100 })).body.id as string
  })
  afterAll(() => api.app.close())

  it('a task is put on hold and released', async () => {
    expect(await api.send('POST', `/tasks/${id}/hold`)).toMatchObject({
      status: 200,
      body: { id, held: true },
    })
    expect(await api.send('POST', `/tasks/${id}/release`)).toMatchObject({
      status: 200,
      body: { id, held: false },
    })
  })

  it('a swap-out or swap-in is accepted, and the GPU server decides', async () => {
    for (const verb of ['swap-out', 'swap-in']) {
      expect(await api.send('POST', `/tasks/${id}/${verb}`)).toMatchObject({ status: 202, body: { id } })
    }
  })

  it.each(['hold', 'release', 'swap-out', 'swap-in'])(
    '%s is refused with the reason, and answered with 404 for an unknown task',
    async (verb) => {
      const detail = `task ${id} wants the GPU: an active task is not swapped out`
      world.nextRefusal = { code: 'conflict', detail }
      expect(await api.send('POST', `/tasks/${id}/${verb}`)).toMatchObject({
        status: 409,
        body: { code: 'conflict', detail },
      })
      expect((await api.send('POST', `/tasks/absent/${verb}`)).status).toBe(404)
      expect((await api.send('POST', `/tasks/${id}/${verb}`, { force: true })).status).toBe(400)
      expect((await api.send('POST', `/tasks/${id}/${verb}?force=true`)).status).toBe(400)
    },
  )

  it('on_node_loss can be changed', async () => {
    expect(await api.send('PATCH', `/tasks/${id}`, { on_node_loss: 'requeue' })).toMatchObject({
      status: 200,
      body: { on_node_loss: 'requeue' },
    })
    expect((await api.send('PATCH', `/tasks/${id}`, { on_node_loss: 'never' })).status).toBe(400)
  })

  it('a drained node reports the tasks that are left, and is uncordoned again', async () => {
    world.place(id, NODE_ID)
    const drain = await api.send('POST', `/nodes/${NODE_ID}/drain?requeue=true&after_seconds=60`)
    expect(drain).toMatchObject({
      status: 202,
      body: {
        cordoned: true,
        drain: {
          since: '2026-01-02T03:04:05.678Z',
          moves_at: '2026-01-02T03:05:05.678Z',
          by: 'api',
          tasks_left: 1,
        },
      },
    })
    expect((await api.send('POST', `/nodes/${NODE_ID}/drain`)).body.drain.moves_at).toBeNull()
    expect((await api.send('POST', `/nodes/${NODE_ID}/uncordon`)).body).toMatchObject({
      cordoned: false,
      drain: null,
    })
  })

  it.each([
    ['after_seconds=60', '/after_seconds'],
    ['requeue=true&after_seconds=604801', '/after_seconds'],
    ['requeue=1', '/requeue'],
  ])('a drain with %s is refused', async (query, pointer) => {
    expect(await api.send('POST', `/nodes/${NODE_ID}/drain?${query}`)).toMatchObject({
      status: 400,
      body: { errors: [{ pointer }] },
    })
    expect((await api.send('POST', '/nodes/nowhere/drain')).status).toBe(404)
  })
})

describe('nodes', () => {
  const world = new FakeController()
  let api: ApiClient
  beforeAll(async () => {
    api = await apiClient(world)
    for (const id of ['a', 'b', 'c']) await world.addNode({ id, gpus: 1, physicalMib: 1000 })
    const [, b, c] = [...world.nodes.values()]
    world.groups.set('g', { id: 'g', description: '', nodeIds: ['b'] })
    Object.assign(b ?? {}, { status: 'suspect', groups: ['g'] })
    Object.assign(c ?? {}, { isCordoned: true, drain: { since: 0, movesAt: null, by: 'bob' } })
  })
  afterAll(() => api.app.close())

  it.each([
    ['', ['a', 'b', 'c']],
    ['status=up', ['a', 'c']],
    ['status=suspect', ['b']],
    ['status=unreachable', []],
    ['status=cordoned', ['c']],
    ['status=draining', ['c']],
    ['group=g', ['b']],
    ['q=node-1', ['a']],
    ['q=node&status=up', ['a', 'c']],
  ])('are filtered by %s', async (query, ids) => {
    const { body } = await api.send('GET', `/nodes?${query}`)
    expect([body.items.map((node: { readonly node_id: string }) => node.node_id), body.total]).toEqual([
      ids,
      ids.length,
    ])
  })

  it('refuse an unknown status as a filter', async () => {
    expect((await api.send('GET', '/nodes?status=down')).status).toBe(400)
  })
})
