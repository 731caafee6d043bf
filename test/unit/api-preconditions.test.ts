/** Conditional requests: honoured where there is something to compare, refused elsewhere, never ignored. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { apiClient, type ApiClient } from '../support/api-client.ts'
import type { ApiContractWorld } from '../support/api-contract.ts'
import { realEngine } from '../support/real-engine.ts'

const NODE = '5f0c9a52-1d3e-4b7a-9c11-0000000000aa'

let world: ApiContractWorld
let api: ApiClient
beforeEach(async () => {
  world = await realEngine()
  await world.addNode({ id: NODE, gpus: 1, physicalMib: 10_000 })
  api = await apiClient(world)
})
afterEach(async () => {
  await api.app.close()
  await world.close?.()
})

describe('settings have an ETag', () => {
  const putConfig = (headers: Record<string, string>) =>
    api.send('PUT', '/config', { idle_swap_out_seconds: 7 }, headers)

  it.each([
    ['if-match', '*', 200],
    ['if-match', '"0-0"', 200],
    ['if-match', '"9", "0-0"', 200],
    ['if-match', '"9"', 412],
    ['if-match', 'W/"0-0"', 412],
    ['if-match', '', 412],
    ['if-none-match', '"9"', 200],
    ['if-none-match', '*', 412],
    ['if-none-match', '"0-0"', 412],
    ['if-none-match', '"9", W/"0-0"', 412],
  ])('%s: %s is answered with %i', async (name, value, status) => {
    const before = world.snapshot()
    const answer = await putConfig({ [name]: value })
    expect(answer.status).toBe(status)
    if (status === 412) {
      expect(answer).toMatchObject({ body: { code: 'precondition_failed' }, headers: { etag: '"0-0"' } })
      expect(world.snapshot()).toBe(before)
    }
  })

  it('settings of a node have an ETag', async () => {
    const change = { overcommit_vram_percent: 20 }
    expect((await api.send('PUT', `/nodes/${NODE}/config`, change, { 'if-none-match': '*' })).status).toBe(
      412,
    )
    expect(
      (await api.send('PUT', `/nodes/${NODE}/config`, change, { 'if-none-match': '"20-default"' })).status,
    ).toBe(200)
  })
})

describe('a group has no ETag; only its existence can be a condition', () => {
  const put = (headers: Record<string, string>) => api.send('PUT', '/groups/g', { node_ids: [NODE] }, headers)

  it('If-None-Match: * creates a group and replaces none', async () => {
    expect((await put({ 'if-none-match': '*' })).status).toBe(201)
    const before = world.snapshot()
    expect(await put({ 'if-none-match': '*' })).toMatchObject({
      status: 412,
      body: { code: 'precondition_failed' },
    })
    expect(world.snapshot()).toBe(before)
  })

  it('If-Match: * replaces a group and creates none', async () => {
    expect((await put({ 'if-match': '*' })).status).toBe(412)
    expect((await put({})).status).toBe(201)
    expect((await put({ 'if-match': '*' })).status).toBe(200)
  })

  it('a condition with an ETag is refused', async () => {
    expect(await put({ 'if-match': '"1"' })).toMatchObject({
      status: 400,
      body: { errors: [{ pointer: '/If-Match' }] },
    })
    expect(await put({ 'if-none-match': '"1"' })).toMatchObject({
      status: 400,
      body: { errors: [{ pointer: '/If-None-Match' }] },
    })
  })
})

describe('requests without a precondition', () => {
  it('a condition is refused, and nothing changes', async () => {
    const { body: task } = await api.send('POST', '/tasks', { vram_mib: 100 })
    const before = world.snapshot()
    const path = `/tasks/${task.id}`
    expect(await api.send('PATCH', path, { priority: 1 }, { 'if-match': '"1"' })).toMatchObject({
      status: 400,
      body: { code: 'invalid_request', errors: [{ pointer: '/If-Match' }] },
    })
    expect((await api.send('PATCH', path, { priority: 1 }, { 'if-none-match': '*' })).status).toBe(400)
    expect((await api.send('DELETE', path, undefined, { 'if-match': '"1"' })).status).toBe(400)
    expect((await api.send('POST', '/tasks', { vram_mib: 100 }, { 'if-none-match': '*' })).status).toBe(400)
    expect((await api.send('POST', `/nodes/${NODE}/cordon`, undefined, { 'if-match': '"1"' })).status).toBe(
      400,
    )
    expect(world.snapshot()).toBe(before)
    expect((await api.send('PATCH', path, { priority: 1 }, { 'if-match': '*' })).status).toBe(200)
  })

  it('a read is answered whatever the condition', async () => {
    expect((await api.send('GET', '/config', undefined, { 'if-none-match': '*' })).status).toBe(200)
  })
})
