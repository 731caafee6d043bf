import { expect, test } from 'vitest'
import { FakeController } from '../support/api-world.ts'
import { apiClient } from '../support/api-client.ts'

test('POST /tasks/{id}/keepalive extends a lease, returns its end, and refuses other tasks', async () => {
  const world = new FakeController()
  const api = await apiClient(world)
  const { id } = (await api.send('POST', '/tasks', { vram_mib: 100 })).body as { readonly id: string }
  const keep = (task: string, body: unknown) => api.send('POST', `/tasks/${task}/keepalive`, body)
  expect(await keep(id, { busy: true })).toMatchObject({
    status: 200,
    body: {
      task_id: id,
      state: 'pending',
      residency: 'none',
      at: '2026-01-02T03:04:05.678Z',
      expires_at: '2026-01-02T03:05:05.678Z',
    },
  })
  expect((await keep(id, { busy: false })).status).toBe(200)
  expect((await keep(id, {})).status).toBe(200)
  // The server of its process reports its use.
  expect(world.kept).toEqual([true, false, null])
  for (const body of [undefined, { busy: 1 }, { busy: 'true' }, { busy: true, more: 1 }])
    expect((await keep(id, body)).status).toBe(400)
  expect(await keep('none', { busy: true })).toMatchObject({ status: 404, body: { code: 'not_found' } })
  const runs = (await api.send('POST', '/tasks', { vram_mib: 100, command: ['true'] })).body as {
    readonly id: string
  }
  expect(await keep(runs.id, { busy: true })).toMatchObject({ status: 409, body: { code: 'conflict' } })
  world.finish(id, 'cancelled')
  expect(await keep(id, { busy: true })).toMatchObject({
    status: 409,
    body: { detail: expect.stringContaining('is cancelled') },
  })
  expect(world.kept).toHaveLength(3)
})
