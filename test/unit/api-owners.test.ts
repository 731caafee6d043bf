import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { accessWorld, type AccessWorld } from '../support/access-world.ts'

describe('owners', () => {
  let world: AccessWorld
  let ann: string
  let bob: string
  beforeEach(async () => {
    world = await accessWorld({
      ownerLimits: { maxPending: 2, maxPlacedGpus: null, p0: ['ann', 'role:operator'] },
    })
    ann = await world.token('submitter', { name: 'ann' })
    bob = await world.token('submitter', { name: 'bob' })
  })
  afterEach(() => world.app.close())

  const submit = async (token: string, over: object = {}, headers: Record<string, string> = {}) => {
    const answer = await world.ask('POST', '/api/v1/tasks', {
      token,
      body: { vram_mib: 100, ...over },
      headers,
    })
    return {
      status: answer.statusCode,
      retryAfter: answer.headers['retry-after'],
      body: answer.json<{ id: string; code: string; owner: string }>(),
    }
  }

  it('Each owner has a separate limit of pending tasks', async () => {
    for (let i = 0; i < 2; i += 1)
      expect(await submit(ann)).toMatchObject({ status: 201, body: { owner: 'ann' } })
    expect(await submit(ann)).toMatchObject({
      status: 429,
      retryAfter: '5',
      body: { code: 'too_many_pending' },
    })
    expect((await submit(bob)).status).toBe(201)
  })

  it('An owner uses P0 only when it is on the list, also in a change or a dry run', async () => {
    expect((await submit(ann, { priority: 0 })).status).toBe(201)
    expect(await submit(bob, { priority: 0 })).toMatchObject({ status: 403, body: { code: 'forbidden' } })
    const tried = await world.ask('POST', '/api/v1/tasks?dry_run=true', {
      token: bob,
      body: { vram_mib: 100, priority: 0 },
    })
    expect(tried.statusCode).toBe(403)
    const { id } = (await submit(bob)).body
    const patch = (token: string) =>
      world.ask('PATCH', `/api/v1/tasks/${id}`, { token, body: { priority: 0 } })
    expect((await patch(bob)).statusCode).toBe(403)
    expect((await patch(await world.token('operator', { name: 'olga' }))).statusCode).toBe(200)
  })

  it('Each owner has separate idempotency keys', async () => {
    const key = { 'idempotency-key': 'k' }
    const [one, other, again] = [
      await submit(ann, {}, key),
      await submit(bob, { name: 'other' }, key),
      await submit(ann, {}, key),
    ]
    expect([one.status, other.status, again.status]).toEqual([201, 201, 201])
    expect([other.body.id === one.body.id, again.body.id === one.body.id]).toEqual([false, true])
  })
})
