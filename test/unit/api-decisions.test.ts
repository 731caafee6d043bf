import { afterEach, beforeEach, expect, test } from 'vitest'
import { apiClient, type ApiClient } from '../support/api-client.ts'
import type { ApiContractWorld } from '../support/api-contract.ts'
import { realEngine } from '../support/real-engine.ts'

const NODE = '5f0c9a52-1d3e-4b7a-9c11-0000000000aa'

let world: ApiContractWorld
let api: ApiClient
const ids: string[] = []

beforeEach(async () => {
  ids.length = 0
  world = await realEngine({ retainDecisions: 100 })
  await world.addNode({ id: NODE, gpus: 2, physicalMib: 49_140 })
  api = await apiClient(world)
  for (const mib of [10_000, 20_000, 30_000])
    ids.push((await api.send('POST', '/tasks', { vram_mib: mib })).body.id)
})
afterEach(() => api.app.close())

const decisions = async (query = '') => (await api.send('GET', `/decisions${query}`)).body

test('decisions are listed newest first, page by page', async () => {
  const { items, next_before: next } = await decisions('?limit=2')
  expect(items).toMatchObject([
    { kind: 'placement', task_id: ids[2], node_id: NODE, rule: 'fits_now', strategy: 'best_fit' },
    { task_id: ids[1] },
  ])
  expect(next).toBe(items[1].number)
  expect(await decisions(`?before=${next}`)).toMatchObject({
    items: [{ task_id: ids[0] }],
    next_before: null,
    next_after: null,
  })
})

test('with after, decisions are listed oldest first', async () => {
  const { items, next_after: next } = await decisions('?after=0&limit=2')
  expect(items.map(({ task_id: id }: { task_id: string }) => id)).toEqual(ids.slice(0, 2))
  expect(await decisions(`?after=${next}`)).toMatchObject({ items: [{ task_id: ids[2] }] })
})

test('an event that records a decision links to it, and the decision links to the event', async () => {
  const { body } = await api.send('GET', '/events')
  const placed = body.items.find(({ kind }: { kind: string }) => kind === 'task_placed')
  expect(placed.decision).toBe(placed.seq)
  expect(body.items.find(({ kind }: { kind: string }) => kind === 'task_submitted').decision).toBeNull()
  const { status, body: decision } = await api.send('GET', `/decisions/${placed.decision}`)
  expect(status).toBe(200)
  expect(decision).toMatchObject({ number: placed.seq, task_id: placed.task_id, gpus: placed.data.gpus })
})

test('decisions are filtered by task, node and kind', async () => {
  expect((await decisions(`?task=${ids[1]}`)).items).toMatchObject([{ task_id: ids[1] }])
  expect((await decisions(`?node=${NODE}&kind=placement`)).items).toHaveLength(3)
  expect((await decisions('?kind=swap_out')).items).toEqual([])
})

test('an unknown decision is answered with 404, and an invalid query with 400 and its name', async () => {
  expect(await api.send('GET', '/decisions/999999')).toMatchObject({
    status: 404,
    body: { detail: 'Decision "999999" not found.' },
  })
  for (const [path, pointer] of [
    ['/decisions/0', '/number'],
    ['/decisions?kind=guess', '/kind'],
    ['/decisions?limit=201', '/limit'],
    ['/decisions?after=1&before=9', '/before'],
    ['/decisions?whose=mine', '/whose'],
  ] as const) {
    expect(await api.send('GET', path), path).toMatchObject({ status: 400, body: { errors: [{ pointer }] } })
  }
})
