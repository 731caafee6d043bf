import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { QuarantinedAttempt } from '../../controller/model/node.ts'
import type { AttemptRecord } from '../../protocol/messages.ts'
import { apiClient, type ApiClient } from '../support/api-client.ts'
import { FakeController, NODE_ID } from '../support/api-world.ts'

describe('a silent node', () => {
  const world = new FakeController()
  let api: ApiClient
  beforeAll(async () => {
    api = await apiClient(world)
    await world.addNode({ id: NODE_ID, gpus: 1, physicalMib: 1000 })
  })
  afterAll(() => api.app.close())

  it('is taken for dead when an operator confirms it', async () => {
    const answer = await api.send('POST', '/cluster/requeue-freeze/release')
    expect([answer.status, answer.body]).toEqual([200, { is_frozen: false, since: null, silent_nodes: 0 }])
  })

  it('loses a task to the queue, with or without confirmed fencing', async () => {
    const { id } = (await api.send('POST', '/tasks', { vram_mib: 100 })).body as { readonly id: string }
    for (const body of [{}, { confirm_fenced: true }]) {
      expect((await api.send('POST', `/tasks/${id}/requeue`, body)).status).toBe(202)
    }
    expect((await api.send('POST', `/tasks/${id}/requeue`)).status).toBe(202)
    expect((await api.send('POST', `/tasks/${id}/requeue`, { confirm_fenced: 'yes' })).status).toBe(400)
    expect((await api.send('POST', `/tasks/${id}/requeue`, { force: true })).status).toBe(400)
    expect((await api.send('POST', '/tasks/absent/requeue', {})).status).toBe(404)
  })

  it('keeps its task while the engine refuses the requeue', async () => {
    world.nextRefusal = {
      code: 'conflict',
      detail: 'task t is running: its server can still confirm that it has ended; omit confirm_fenced',
    }
    const answer = await api.send('POST', '/tasks/t/requeue', { confirm_fenced: true })
    expect([answer.status, answer.body.code]).toEqual([409, 'conflict'])
  })

  it('is removed once, and not while the engine refuses', async () => {
    world.nextRefusal = { code: 'conflict', detail: 'node a is up: stop its server first' }
    expect(await api.send('DELETE', `/nodes/${NODE_ID}`)).toMatchObject({
      status: 409,
      body: { detail: 'node a is up: stop its server first' },
    })
    expect((await api.send('DELETE', `/nodes/${NODE_ID}`)).status).toBe(204)
    expect((await api.send('DELETE', `/nodes/${NODE_ID}`)).status).toBe(404)
  })
})

describe('an attempt that is not in the store', () => {
  const world = new FakeController()
  let api: ApiClient
  beforeAll(async () => {
    api = await apiClient(world)
  })
  afterAll(() => api.app.close())

  it.each<readonly [string, object]>([
    ['adopt', { owner: null }],
    ['stop', {}],
  ])('is named in a path by its task and number: %s', async (verb, body) => {
    expect(await api.send('POST', `/attempts/t/1/${verb}`, body)).toMatchObject({
      status: 404,
      body: { code: 'not_found' },
    })
    for (const number of ['0', '-1', '1.5', 'x', '12345678901']) {
      expect((await api.send('POST', `/attempts/t/${number}/${verb}`, body)).status, number).toBe(400)
    }
  })

  it.each(['before the request', 'while its server is asked'])(
    'is not adopted if its task ended %s',
    async (when) => {
      const lost = new FakeController()
      await lost.addNode({ id: NODE_ID, gpus: 1, physicalMib: 1000 })
      const readRecord = () => {
        if (lost.open.has(id)) lost.finish(id, 'cancelled')
        return Promise.resolve(null)
      }
      const { app, send } = await apiClient(lost, { logs: { read: () => Promise.resolve(null), readRecord } })
      const { id } = (await send('POST', '/tasks', { vram_mib: 100 })).body as { readonly id: string }
      if (when === 'before the request') lost.finish(id, 'cancelled')
      Object.assign(lost.nodes.get(NODE_ID) ?? {}, { quarantine: [{ ...QUARANTINED, taskId: id }] })
      expect(await send('POST', `/attempts/${id}/1/adopt`, { owner: null })).toMatchObject({
        status: 409,
        body: {
          code: 'conflict',
          detail: `Task ${id} is already cancelled. Stop its attempt: \`headroom attempts stop ${id}/1\`.`,
        },
      })
      await app.close()
    },
  )

  it.each([
    ['resident', null, 1],
    ['resident', 0, 0],
    ['swapped_out', null, 0],
    ['swapped_out', 1, 0],
  ] as const)(
    'that is %s and was started with noswap %s is adopted with noswap %i',
    async (residency, started, noswap) => {
      const lost = new FakeController()
      await lost.addNode({ id: NODE_ID, gpus: 1, physicalMib: 1000 })
      Object.assign(lost.nodes.get(NODE_ID) ?? {}, { quarantine: [{ ...QUARANTINED, residency }] })
      const record = started === null ? null : { ...RECORD, noswap: started }
      const logs = { read: () => Promise.resolve(null), readRecord: () => Promise.resolve(record) }
      const { app, send } = await apiClient(lost, { logs })
      await send('POST', '/attempts/t/1/adopt', { owner: null })
      expect(lost.adoptions.map((adoption) => adoption.noswap)).toEqual([noswap])
      await app.close()
    },
  )
})

const RECORD: AttemptRecord = {
  ...{ op: 'attempt', task_id: 't', attempt: 1, is_lease: false, name: 't', owner: null },
  ...{ command: ['run'], gpu_mode: 'shared', noswap: 0, priority: 2, on_node_loss: 'wait' },
}

const QUARANTINED: QuarantinedAttempt = {
  ...{ taskId: 't', attempt: 1, gpus: [0], vramMib: 100, residency: 'resident', generation: 1 },
  ...{ wantsGpu: true, since: 0, stoppedBy: null },
}
