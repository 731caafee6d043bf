import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { KEY_RETENTION_MS, SubmissionKeys } from '../../controller/state/submission-keys.ts'
import { Transaction } from '../../controller/state/transaction.ts'
import { apiClient, type ApiClient } from '../support/api-client.ts'
import { FakeController } from '../support/api-world.ts'

describe('Idempotency-Key', () => {
  let world: FakeController
  let api: ApiClient
  beforeEach(async () => {
    world = new FakeController()
    api = await apiClient(world)
  })
  afterEach(() => api.app.close())

  const submit = (key: string, body: object = { name: 'a', vram_mib: 100 }) =>
    api.send('POST', '/tasks', body, { 'idempotency-key': key })

  it('returns the first task again for an equal body, whatever the order of its fields', async () => {
    const first = await submit('k1')
    expect([first.status, first.headers['idempotency-replayed']]).toEqual([201, undefined])
    const again = await submit('k1', { vram_mib: 100, name: 'a' })
    expect([again.status, again.headers['idempotency-replayed'], again.headers['location']]).toEqual([
      201,
      'true',
      first.headers['location'],
    ])
    expect(again.body.id).toBe(first.body.id)
    expect(world.open.size).toBe(1)
  })

  it('returns the current state of the first task, also when it has ended', async () => {
    const { id } = (await submit('k1')).body
    world.finish(id, 'completed')
    expect(await submit('k1')).toMatchObject({ status: 201, body: { id, state: 'completed' } })
  })

  it('is refused with another body, and submits nothing', async () => {
    const { id } = (await submit('k1')).body
    const other = await submit('k1', { name: 'b', vram_mib: 100 })
    expect(other).toMatchObject({ status: 422, body: { code: 'idempotency_key_reused' } })
    expect(other.body.detail).toContain(id)
    expect(world.open.size).toBe(1)
  })

  it('creates one task for each key, and one for each submission without a key', async () => {
    for (const key of ['k1', 'k2']) await submit(key)
    for (let i = 0; i < 2; i += 1) await api.send('POST', '/tasks', { name: 'a', vram_mib: 100 })
    expect(world.open.size).toBe(4)
  })

  it.each(['', ' ', 'ü', 'x'.repeat(256), 'a\tb'])('refuses %j', async (key) => {
    expect(await submit(key)).toMatchObject({
      status: 400,
      body: { errors: [{ pointer: '/Idempotency-Key' }] },
    })
    expect(world.open.size).toBe(0)
  })
})

describe('stored idempotency keys', () => {
  const add = (keys: SubmissionKeys, seq: number, at: number, turn = new Transaction()) => {
    keys.add({ seq, key: `k${seq}`, body: 'b', taskId: `t${seq}`, at }, turn)
    return turn.submissionKeys
  }

  it('expire after a day but are kept, because the clock may be wrong', () => {
    const keys = new SubmissionKeys()
    add(keys, 1, 1000)
    expect(keys.find('k1', 1000 + KEY_RETENTION_MS - 1)?.taskId).toBe('t1')
    expect(keys.find('k1', 1000 + KEY_RETENTION_MS)).toBeNull()
    expect(add(keys, 2, 1000 + 3 * 365 * KEY_RETENTION_MS)).toMatchObject({ keptFromSeq: 1 })
    expect(keys.find('k1', 1000 + 60_000)?.taskId).toBe('t1')
  })

  it('are deleted when there are too many, oldest first', () => {
    const keys = new SubmissionKeys(3)
    const turn = new Transaction()
    for (let seq = 1; seq <= 5; seq += 1) add(keys, seq, seq, turn)
    expect([keys.size, keys.find('k2', 9), keys.find('k3', 9)?.seq]).toEqual([3, null, 3])
    expect([turn.submissionKeys?.added.length, turn.submissionKeys?.keptFromSeq]).toEqual([5, 3])
  })

  it('that are used again after they expired refer to the later task', () => {
    const keys = new SubmissionKeys()
    add(keys, 1, 0)
    keys.add({ seq: 9, key: 'k1', body: 'b', taskId: 't9', at: KEY_RETENTION_MS }, new Transaction())
    expect(keys.find('k1', KEY_RETENTION_MS)?.taskId).toBe('t9')
  })
})
