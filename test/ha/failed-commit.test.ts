/**
 * A controller whose commit failed has a task in memory that PostgreSQL never stored. Its process takes a
 * while to end, and answers nothing from memory meanwhile.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { resignFunction } from '../../controller/adapters/postgres/lease-schema.ts'
import { controllerOn, newFolder, type ControllerOn } from '../durability/controller-on.ts'
import { PostgresServer, whyNoPostgres } from '../support/postgres-server.ts'

describe.skipIf(whyNoPostgres() !== null)('a controller whose commit failed', { timeout: 300_000 }, () => {
  let server: PostgresServer
  let controller: ControllerOn
  beforeAll(async () => {
    server = await PostgresServer.start()
    controller = controllerOn(newFolder(), {
      CONTROLLER_STORE_URL: server.url,
      // The end of the process waits for a statement, which may take three quarters of it.
      CONTROLLER_LEASE_MS: '60000',
    })
    await controller.start()
  }, 300_000)
  afterAll(async () => {
    await controller.member.end()
    await server.remove()
  })

  const get = async (path: string) => {
    const answer = await fetch(controller.url() + path)
    return { status: answer.status, retry: answer.headers.get('retry-after'), body: await answer.json() }
  }

  it('answers no read from memory while it ends', async () => {
    await server.query("alter table headroom.tasks add check (name <> 'never stored')")
    await server.query(resignFunction('perform pg_sleep(30);'))
    const submitted = await fetch(`${controller.url()}/tasks`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ name: 'never stored', vram_mib: 1_000 }),
    })
    expect([submitted.status, await submitted.json()]).toMatchObject([503, { code: 'commit_unknown' }])
    for (const path of ['/tasks?state=pending', '/tasks', '/summary', '/config'])
      expect(await get(path)).toMatchObject({ status: 503, retry: '1', body: { code: 'no_leader' } })
    expect(await get('/readyz')).toMatchObject({ status: 503, body: { status: 'not_ready' } })
    expect(await server.query('select from headroom.tasks')).toEqual([])
  })
})
