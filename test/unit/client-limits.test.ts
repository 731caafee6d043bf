/** Bus clients have limits and an audit log like REST clients, and owner names that no token can have. */
import Database from 'better-sqlite3'
import { expect, test } from 'vitest'
import { kyselyOf } from '../../controller/adapters/sqlite/dialect.ts'
import { migrate, MIGRATIONS } from '../../controller/adapters/sqlite/migrations.ts'
import { TOKEN_NAME_PATTERN } from '../../controller/api/auth/token-schema.ts'
import { personOf } from '../../controller/model/role-claims.ts'
import type { ClientAudit } from '../../controller/wire/client-audit.ts'
import { aSubmission, clientWorld } from '../support/client-world.ts'

const LAB = 'gpu.v1.client.lab'

function recordedAudit() {
  const entries: unknown[] = []
  const audit: ClientAudit = {
    begin: ({ actor, role, action, target, requestId }) =>
      entries.push({ actor, role, action, target, requestId }),
    end: (begun, { action }, status, code) => void entries.push({ begun, action, status, code }),
  }
  return { audit, entries }
}

test('A change by a bus client is audited before it is carried out, and its outcome afterwards', async () => {
  const { audit, entries } = recordedAudit()
  const world = await clientWorld({ clientAudit: audit })
  const { task_id } = (await world.ask(`${LAB}.submit`, aSubmission(), 'm1')) as { task_id: string }
  const who = { actor: 'nats:lab', role: 'submitter' }
  expect(entries.splice(0)).toEqual([
    { ...who, action: 'submitTask', target: `${LAB}.submit`, requestId: 'm1' },
    { begun: 1, action: 'submitTask', status: 200, code: null },
  ])
  await world.ask(`${LAB}.cancel`, { op: 'cancel', task_id }, 'm2')
  await world.ask(`${LAB}.cancel`, { op: 'cancel', task_id: '5f0c9a52-1d3e-4b7a-9c11-000000000001' }, 'm3')
  await world.ask(`${LAB}.submit`, aSubmission({ groups: ['a', 'a'] }), 'm4')
  expect(entries.splice(0)).toEqual([
    { ...who, action: 'cancelTask', target: `${LAB}.cancel`, requestId: 'm2' },
    { begun: 1, action: 'cancelTask', status: 200, code: null },
    { ...who, action: 'cancelTask', target: `${LAB}.cancel`, requestId: 'm3' },
    { begun: 3, action: 'cancelTask', status: 404, code: 'not_found' },
    { ...who, action: 'submitTask', target: `${LAB}.submit`, requestId: 'm4' },
    { begun: 5, action: 'submitTask', status: 400, code: 'invalid' },
  ])
  await world.ask(`${LAB}.get`, { op: 'get', task_id })
  expect(entries).toEqual([])
})

test('All bus clients share a request rate limit; further requests are refused and counted', async () => {
  const world = await clientWorld({ clientRequestsPerSecond: 10 })
  const ask = (client: string) =>
    world.ask(`gpu.v1.client.${client}.get`, { op: 'get', task_id: '5f0c9a52-1d3e-4b7a-9c11-000000000001' })
  const reasons: string[] = []
  for (let i = 0; i < 40; i++)
    reasons.push(((await ask(i % 2 === 0 ? 'lab' : 'other')) as { reason: string }).reason)
  const refused = reasons.filter((reason) => reason.startsWith('too_many_requests'))
  expect(refused.length).toBeGreaterThan(15)
  expect(refused[0]).toBe('too_many_requests: try again after a second')
  expect(world.controller.messages.refused.too_many_requests).toBe(refused.length)
  await world.pass(1_000)
  expect(await ask('lab')).toMatchObject({ reason: 'not_found' })
})

test('A bus client owns tasks under a name that no token and no person can have', async () => {
  const world = await clientWorld({ ownerLimits: { maxPending: 1, maxPlacedGpus: null, p0: ['lab'] } })
  const { task_id } = (await world.ask(`${LAB}.submit`, aSubmission())) as { task_id: string }
  expect(world.controller.views.openTask(task_id)?.spec.owner).toBe('nats:lab')
  expect(await world.ask(`${LAB}.submit`, aSubmission())).toMatchObject({
    reason: 'too_many_pending: at most 1',
  })
  expect(await world.ask(`${LAB}.submit`, aSubmission({ priority: 0 }))).toMatchObject({
    reason: expect.stringContaining('P0') as string,
  })
  expect(new RegExp(TOKEN_NAME_PATTERN).test('nats:lab')).toBe(false)
  const rules = { nameClaim: 'name', rolesClaim: 'groups', roles: [{ value: '*', role: 'admin' as const }] }
  expect(personOf({ name: 'nats:lab' }, rules)).toMatchObject({ ok: false })
  expect(personOf({ name: 'lab' }, rules)).toMatchObject({ ok: true, name: 'lab' })
})

test('A migration renames the owners of tasks submitted over the bus, and no others', async () => {
  const before = MIGRATIONS.findIndex(({ name }) => name === 'owners of tasks that came over the bus')
  const db = new Database(':memory:')
  await migrate(kyselyOf(db), ':memory:', 0, MIGRATIONS.slice(0, before))
  const add = db.prepare(
    "insert into tasks (seq, id, state, owner, name, is_final, record) values (?, ?, 'pending', ?, " +
      "'t', 0, ?)",
  )
  const rows = [
    ['5f0c9a52-1d3e-5b7a-9c11-000000000001', 'lab', 'nats:lab'],
    ['5f0c9a52-1d3e-4b7a-9c11-000000000002', 'lab', 'lab'],
    ['5f0c9a52-1d3e-5b7a-9c11-000000000003', null, null],
    ['t1', 'lab', 'lab'],
  ] as const
  rows.forEach(([id, owner], index) => add.run(index + 1, id, owner, JSON.stringify({ id, owner })))
  await migrate(kyselyOf(db), ':memory:', 0)
  const after = db
    .prepare<[], { owner: string | null; record: string }>('select owner, record from tasks order by seq')
    .all()
  expect(after.map(({ owner }) => owner)).toEqual(rows.map(([, , owner]) => owner))
  expect(after.map(({ record }) => (JSON.parse(record) as { owner: unknown }).owner)).toEqual(
    rows.map(([, , owner]) => owner),
  )
})
