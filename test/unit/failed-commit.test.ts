/** After a failed commit a controller answers nothing from memory: its state may not be stored. */
import { expect, test } from 'vitest'
import { NOT_LEADING } from '../../controller/api/http/leader-only.ts'
import { apiClient } from '../support/api-client.ts'
import { FakeController } from '../support/api-world.ts'

const TASK = { name: 'one', vram_mib: 1 }

/** A standby that took it for the leader sends the request to the next one. */
const HEADERS = { 'retry-after': '1', [NOT_LEADING]: '1' }
const REFUSED = { status: 503, headers: HEADERS, body: { code: 'no_leader' } }

/** The commit fails after this many questions whether one has. */
async function apiThatFailsAfter(questions: number) {
  const world = new FakeController()
  let asked = 0
  const client = await apiClient(world, { isFaulty: () => (asked += 1) > questions })
  return { ...client, world }
}

test.each(['/tasks', '/summary', '/config', '/nodes', '/events', '/version'])(
  'After a failed commit GET %s is refused, with another address as the way out',
  async (path) => {
    const { app, send } = await apiThatFailsAfter(0)
    const answer = await send('GET', path)
    expect(answer).toMatchObject(REFUSED)
    expect(answer.body.detail).toContain('another address')
    await app.close()
  },
)

test('After a failed commit a change is refused and not carried out', async () => {
  const { app, send, world } = await apiThatFailsAfter(0)
  expect(await send('POST', '/tasks', TASK)).toMatchObject(REFUSED)
  expect(world.open.size).toBe(0)
  await app.close()
})

test.each(['/livez', '/readyz', '/metrics', '//livez', '//readyz', '//metrics'])(
  'After a failed commit %s is still answered',
  async (path) => {
    const { app, send } = await apiThatFailsAfter(0)
    expect((await send('GET', path)).status).toBe(200)
    await app.close()
  },
)

test('A read that began before a commit failed is refused', async () => {
  const { app, send } = await apiThatFailsAfter(1)
  expect(await send('GET', '/tasks')).toMatchObject(REFUSED)
  await app.close()
})

test('A change that was durable before a commit failed is acknowledged', async () => {
  const { app, send } = await apiThatFailsAfter(1)
  expect((await send('POST', '/tasks', TASK)).status).toBe(201)
  await app.close()
})
