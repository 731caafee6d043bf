import { beforeEach, afterEach, describe, expect, test } from 'vitest'
import { apiClient, type ApiClient } from '../support/api-client.ts'
import type { ApiContractWorld } from '../support/api-contract.ts'
import { realEngine } from '../support/real-engine.ts'

const NODE = '5f0c9a52-1d3e-4b7a-9c11-0000000000aa'

let world: ApiContractWorld
let api: ApiClient

beforeEach(async () => {
  world = await realEngine()
  await world.addNode({ id: NODE, gpus: 2, physicalMib: 49_140 })
  api = await apiClient(world)
})
afterEach(() => api.app.close())

const put = (body: object, query = '', headers = {}) => api.send('PUT', `/config${query}`, body, headers)
const revisions = async (query = '') => (await api.send('GET', `/config/revisions${query}`)).body

describe('a dry run of PUT /config', () => {
  test('returns the configuration after the change with its impact, and changes nothing', async () => {
    const before = world.snapshot()
    const { status, body, headers } = await put({ default_vram_overcommit_percent: 15 }, '?dry_run=true')
    expect(status).toBe(200)
    expect(headers['etag']).toBe('"0-0"')
    expect(body).toMatchObject({
      default_vram_overcommit_percent: 15,
      source: 'persisted',
      revision: 1,
      dry_run: true,
    })
    expect(body.impact.total).toEqual({
      before: {
        effective_schedulable_mib: 98_280,
        commit_limit_mib: 94_184,
        over_committed_mib: 0,
        reserve_deficit_mib: 0,
      },
      // Each GPU has 56511: the product is computed before the division.
      after: {
        effective_schedulable_mib: 113_022,
        commit_limit_mib: 113_022,
        over_committed_mib: 0,
        reserve_deficit_mib: 0,
      },
    })
    expect(body.impact.nodes).toMatchObject([
      { node_id: NODE, before: { overcommit_percent: 0 }, after: { overcommit_percent: 15 } },
    ])
    expect(body.impact).toMatchObject({ forecast: null, forecast_unavailable_because: expect.any(String) })
    expect(world.snapshot()).toBe(before)
    expect((await revisions()).items).toEqual([])
  })

  test('names the pending tasks that would fit and those that could never fit again', async () => {
    const { id } = (await api.send('POST', '/tasks', { vram_mib: 48_000 })).body
    const lowered = await put({ safety_reserve_mib: 1000 }, '?dry_run=true')
    expect(lowered.body.impact.pending).toMatchObject({
      would_fit: 1,
      would_fit_ids: [id],
      infeasible: 0,
      looked_at: 1,
      of: 1,
      cut: false,
    })
    expect(lowered.body.impact.next_cycle).toEqual({
      starts: 1,
      starts_after_swaps: 0,
      task_ids: [id],
      swap_outs: 0,
      swap_out_mib: 0,
    })
    await put({ safety_reserve_mib: 1000, max_tasks_per_gpu: 1 })
    const { body } = await api.send('POST', '/tasks', { vram_mib: 47_000, gpu_count: 2 })
    const raised = await put({ safety_reserve_mib: 4096 }, '?dry_run=true')
    expect(raised.body.impact.pending).toMatchObject({
      would_fit: 0,
      infeasible: 1,
      infeasible_ids: [body.id],
    })
  })

  test('lists GPUs over the limit and tasks that could not return, like the real change', async () => {
    const { id } = (await api.send('POST', '/tasks', { vram_mib: 40_000 })).body
    const change = { safety_reserve_mib: 20_000 }
    const { impact, over } = (await put(change, '?dry_run=true')).body
    expect(impact.gpu_over_count).toBe(1)
    expect(impact.gpus_over).toMatchObject([
      { node_id: NODE, over_committed_mib: 10_860, reserve_deficit_mib: 10_860, task_ids: [id] },
    ])
    expect(impact.residency_impossible).toMatchObject([{ task_id: id, need_mib: 40_000, have_mib: 29_140 }])
    expect(over).toEqual({ gpus: 1, over_committed_mib: 10_860, reserve_deficit_mib: 10_860 })
    const { body } = await put(change)
    expect(body.over).toEqual(over)
    expect(body).not.toHaveProperty('impact')
    expect((await api.send('GET', `/tasks/${id}`)).body.state).toBe('assigned')
  })

  test.each([
    [{ default_vram_overcommit_percent: 1001 }, '/default_vram_overcommit_percent'],
    [{ heartbeat_seconds: 60, run_lease_seconds: 60 }, '/run_lease_seconds'],
    [{}, ''],
  ])('refuses %j exactly as the change itself would be refused', async (change, pointer) => {
    for (const query of ['', '?dry_run=true']) {
      expect(await put(change, query)).toMatchObject({
        status: 400,
        body: { code: 'invalid_request', errors: [{ pointer }] },
      })
    }
  })

  test('adjusts the default heartbeat interval and run lease to each other', async () => {
    expect((await put({ run_lease_seconds: 15 }, '?dry_run=true')).body).toMatchObject({
      run_lease_seconds: 15,
      heartbeat_seconds: 5,
    })
    expect((await put({ heartbeat_seconds: 60 }, '?dry_run=true')).body).toMatchObject({
      run_lease_seconds: 300,
      heartbeat_seconds: 60,
    })
  })

  test('honours If-Match and accepts only true or false as its value', async () => {
    const change = { default_vram_overcommit_percent: 20 }
    expect((await put(change, '?dry_run=true', { 'if-match': '"7"' })).status).toBe(412)
    expect((await put(change, '?dry_run=yes')).status).toBe(400)
    expect((await put(change, '?dry_run=false')).body.revision).toBe(1)
  })
})

describe('a dry run of PUT /nodes/{node_id}/config', () => {
  test('returns the node after the change with its impact, and changes nothing', async () => {
    const before = world.snapshot()
    const planned = await api.send('PUT', `/nodes/${NODE}/config?dry_run=true`, {
      overcommit_vram_percent: 50,
      safety_reserve_mib: 0,
    })
    expect(planned).toMatchObject({ status: 200, body: { dry_run: true } })
    expect(planned.headers['etag']).toBe('"default-default"')
    expect(world.snapshot()).toBe(before)
    const { dry_run: _, impact, ...node } = planned.body
    expect(node).toEqual(
      (await api.send('PUT', `/nodes/${NODE}/config`, { overcommit_vram_percent: 50, safety_reserve_mib: 0 }))
        .body,
    )
    expect(impact.total.after.commit_limit_mib).toBe(node.vram.commit_limit_mib)
    expect(impact.node_count).toBe(1)
  })

  test('of an unknown node is answered with 404', async () => {
    expect((await api.send('PUT', '/nodes/nowhere/config?dry_run=true', {})).status).toBe(404)
  })
})

describe('revisions of the configuration', () => {
  beforeEach(async () => {
    await put({ default_vram_overcommit_percent: 20 })
    await put({ idle_swap_out_seconds: 60 })
    await put({ default_vram_overcommit_percent: 50 })
  })

  test('list author, change and time, newest first, and continue below a number', async () => {
    const { items, next_before: next } = await revisions('?limit=2')
    expect(items).toMatchObject([
      {
        revision: 3,
        author: null,
        changed: ['default_vram_overcommit_percent'],
        before: { default_vram_overcommit_percent: 20 },
      },
      {
        revision: 2,
        changed: ['idle_swap_out_seconds'],
        before: { idle_swap_out_seconds: 300 },
        after: { idle_swap_out_seconds: 60 },
      },
    ])
    expect(next).toBe(2)
    const rest = await revisions(`?before=${next}`)
    expect(rest).toMatchObject({
      items: [{ revision: 1, before: null, after: { default_vram_overcommit_percent: 20 } }],
      next_before: null,
    })
  })

  test('a restored revision becomes a new revision with equal settings', async () => {
    const { status, body, headers } = await api.send('POST', '/config/revisions/1/restore')
    expect(status).toBe(200)
    expect(body).toMatchObject({
      revision: 4,
      default_vram_overcommit_percent: 20,
      idle_swap_out_seconds: 300,
    })
    expect(headers['etag']).toBe('"4"')
    const { items } = await revisions()
    expect(items[0].after).toEqual(items[3].after)
    expect(items[0].changed).toEqual(['default_vram_overcommit_percent', 'idle_swap_out_seconds'])
  })

  test('a dry run of a restore changes nothing', async () => {
    const { body } = await api.send('POST', '/config/revisions/1/restore?dry_run=true')
    expect(body).toMatchObject({
      dry_run: true,
      revision: 4,
      default_vram_overcommit_percent: 20,
      impact: { node_count: 1 },
    })
    expect((await api.send('GET', '/config')).body.revision).toBe(3)
  })

  test('A restore honours If-Match, answers 404 for a missing revision, and checks its number', async () => {
    expect(
      (await api.send('POST', '/config/revisions/1/restore', undefined, { 'if-match': '"2"' })).status,
    ).toBe(412)
    expect(await api.send('POST', '/config/revisions/9/restore')).toMatchObject({
      status: 404,
      body: { detail: 'Revision "9" not found.' },
    })
    for (const number of ['0', '-1', '1.5', 'x', '99999999999999999999']) {
      const answer = await api.send('POST', `/config/revisions/${number}/restore`)
      expect(answer).toMatchObject({ status: 400, body: { errors: [{ pointer: '/revision' }] } })
    }
    expect((await api.send('GET', '/config')).body.revision).toBe(3)
  })
})
