import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { apiClient, type ApiClient } from '../support/api-client.ts'
import type { ApiContractWorld } from '../support/api-contract.ts'
import { realEngine } from '../support/real-engine.ts'

const NODE = '5f0c9a52-1d3e-4b7a-9c11-0000000000aa'
const OTHER_NODE = '5f0c9a52-1d3e-4b7a-9c11-0000000000bb'

describe('a dry run', () => {
  let world: ApiContractWorld
  let api: ApiClient
  beforeEach(async () => {
    world = await realEngine()
    await world.addNode({ id: NODE, gpus: 1, physicalMib: 10_000 })
    await world.addNode({ id: OTHER_NODE, gpus: 2, physicalMib: 20_000 })
    api = await apiClient(world)
  })
  afterEach(async () => {
    await api.app.close()
    await world.close?.()
  })

  it('of a submission returns the predicted placement and submits nothing', async () => {
    const before = world.snapshot()
    expect(await api.send('POST', '/tasks?dry_run=true', { vram_mib: 12_000 })).toMatchObject({
      status: 200,
      body: {
        dry_run: true,
        starts: 'now',
        placement: { node_id: OTHER_NODE, gpus: [0], demand_mib: 12_000 },
        victims: [],
        wait: null,
      },
    })
    expect(await api.send('POST', '/tasks?dry_run=true', { vram_mib: 50_000 })).toMatchObject({
      status: 200,
      body: { starts: 'later', placement: null, wait: { reason: 'NEVER_FITS', queue_position: 1 } },
    })
    expect(
      (await api.send('POST', '/tasks?dry_run=true', { vram_mib: 100, groups: ['none'] })).body.wait.reason,
    ).toBe('GROUP_NOT_FOUND')
    expect((await api.send('POST', '/tasks?dry_run=true', {})).status).toBe(400)
    expect((await api.send('POST', '/tasks?dry_run=1', { vram_mib: 100 })).status).toBe(400)
    expect(world.snapshot()).toBe(before)
  })

  it('is required for forecast: without dry_run the request is refused and changes nothing', async () => {
    const before = world.snapshot()
    const changes = [
      ['PUT', '/config', { default_vram_overcommit_percent: 20 }],
      ['PUT', `/nodes/${NODE}/config`, { overcommit_vram_percent: 20 }],
      ['PUT', '/groups/g', { node_ids: [NODE] }],
    ] as const
    for (const [method, path, body] of changes) {
      for (const query of ['forecast=true', 'forecast=false', 'dry_run=false&forecast=true']) {
        expect(await api.send(method, `${path}?${query}`, body), `${path}?${query}`).toMatchObject({
          status: 400,
          body: { errors: [{ pointer: '/forecast' }] },
        })
      }
    }
    expect(world.snapshot()).toBe(before)
  })

  it('of a group lists the GPUs that leave and rejoin the common pool, and changes nothing', async () => {
    await api.send('PUT', '/groups/g', { node_ids: [NODE] })
    const before = world.snapshot()
    const nothing = { nodes: 0, node_ids: [], gpus: 0 }
    const [one, other] = [
      { nodes: 1, node_ids: [NODE], gpus: 1, effective_schedulable_mib: 10_000 },
      { nodes: 1, node_ids: [OTHER_NODE], gpus: 2, effective_schedulable_mib: 40_000 },
    ]
    expect(await api.send('PUT', '/groups/g?dry_run=true', { node_ids: [OTHER_NODE] })).toMatchObject({
      status: 200,
      body: {
        id: 'g',
        dry_run: true,
        node_ids: [OTHER_NODE],
        preview: { leaves_common_pool: other, returns_to_common_pool: one },
      },
    })
    expect(await api.send('PUT', `/groups/g/nodes/${OTHER_NODE}?dry_run=true`)).toMatchObject({
      status: 200,
      body: { node_ids: [NODE, OTHER_NODE], preview: { joining: other, leaving: nothing } },
    })
    expect(await api.send('DELETE', `/groups/g/nodes/${NODE}?dry_run=true`)).toMatchObject({
      status: 200,
      body: { node_ids: [], preview: { leaving: one, returns_to_common_pool: one } },
    })
    expect(await api.send('DELETE', '/groups/g?dry_run=true')).toMatchObject({
      status: 200,
      body: { dry_run: true, preview: { returns_to_common_pool: one, leaves_common_pool: nothing } },
    })
    expect((await api.send('DELETE', '/groups/none?dry_run=true')).status).toBe(404)
    expect(world.snapshot()).toBe(before)
  })

  it('of a group names the pending tasks that become feasible and those that become infeasible', async () => {
    await api.send('PUT', '/groups/g', { node_ids: [NODE] })
    const grouped = (await api.send('POST', '/tasks', { vram_mib: 15_000, groups: ['g'] })).body.id as string
    const common = (await api.send('POST', '/tasks', { vram_mib: 17_999, gpu_count: 2 })).body.id as string
    await api.send('POST', `/tasks/${common}/hold`)
    const { body } = await api.send('PUT', '/groups/g?dry_run=true', { node_ids: [NODE, OTHER_NODE] })
    expect(body.preview.become_feasible).toEqual({ tasks: 1, task_ids: [grouped] })
    expect(body.preview.become_infeasible).toEqual({ tasks: 0, task_ids: [] })
  })
})
