import { pino } from 'pino'
import { describe, expect, it } from 'vitest'
import { createEventLog } from '../../services/controller/event-log.ts'
import type { Event } from '../../controller/model/event.ts'
import { apiClient } from '../support/api-client.ts'
import { FakeController, NODE_ID } from '../support/api-world.ts'

type Line = Readonly<Record<string, unknown>>

function logTo(lines: Line[], level: string) {
  return pino({ level }, { write: (text: string) => void lines.push(JSON.parse(text) as Line) })
}

async function logged(level: string, world = new FakeController()) {
  const lines: Line[] = []
  const api = await apiClient(world, { logger: logTo(lines, level), inVirtualTime: false })
  return { api, lines }
}

describe('the log of requests', () => {
  it('has one line for each request that may have changed something, with the ids involved', async () => {
    const world = new FakeController()
    await world.addNode({ id: NODE_ID, gpus: 1, physicalMib: 1000 })
    const { api, lines } = await logged('info', world)
    const made = await api.send(
      'POST',
      '/tasks',
      { vram_mib: 10, labels: { secret: 'canary' } },
      { 'x-request-id': 'from-client:7' },
    )
    await api.send('PUT', `/nodes/${NODE_ID}/config?x=canary`, { overcommit_vram_percent: 1 })
    await api.send('GET', '/config')
    expect(lines).toMatchObject([
      {
        request_id: 'from-client:7',
        method: 'POST',
        route: '/api/v1/tasks',
        status: 201,
        task_id: made.body.id,
        caller: null,
        level: 30,
      },
      { method: 'PUT', route: '/api/v1/nodes/:node_id/config', status: 400, node_id: NODE_ID },
    ])
    expect(JSON.stringify(lines)).not.toContain('canary')
    await api.app.close()
  })

  it('contains the other requests at level debug', async () => {
    const { api, lines } = await logged('debug')
    await api.send('GET', '/config')
    expect(lines).toMatchObject([{ level: 20, method: 'GET', route: '/api/v1/config', status: 200 }])
    await api.app.close()
  })
})

describe('the request id', () => {
  it('is taken from the client if it is safe to write anywhere', async () => {
    const { api } = await logged('silent')
    const idFor = async (given: string) =>
      (await api.send('GET', '//livez', undefined, { 'x-request-id': given })).headers['x-request-id']
    for (const sane of ['a', 'trace:01-ab.c_d', 'f'.repeat(64)]) expect(await idFor(sane)).toBe(sane)
    for (const odd of ['', '-a', 'a b', 'a"b', 'ü', '<x>', 'f'.repeat(65)])
      expect(await idFor(odd)).toMatch(/^[0-9a-f]{32}$/)
    const problem = await api.send('GET', '/no-such', undefined, { 'x-request-id': 'mine' })
    expect(problem.body.request_id).toBe('mine')
    await api.app.close()
  })
})

describe('the event log', () => {
  const event = (kind: Event['kind'], data: Event['data'] = {}): Event => ({
    seq: 4,
    at: 1,
    kind,
    taskId: 't',
    nodeId: 'n',
    causedBy: 3,
    by: null,
    data,
  })

  it('contains decisions with their number at level debug, and alarms at every level', () => {
    const lines: Line[] = []
    createEventLog(
      logTo(lines, 'debug'),
      'live',
    )([event('swap_decided', { decision: 12 }), event('duplicate_node'), event('node_status')])
    expect(lines).toMatchObject([
      {
        level: 20,
        msg: 'swap_decided',
        event_seq: 4,
        task_id: 't',
        node_id: 'n',
        decision_id: 12,
        caused_by: 3,
      },
      { level: 40, msg: 'duplicate_node' },
      { level: 30, msg: 'node_status' },
    ])
    const few: Line[] = []
    createEventLog(
      logTo(few, 'info'),
      'live',
    )([event('swap_decided'), event('task_placed'), event('requeue_freeze')])
    expect(few.map(({ msg }) => msg)).toEqual(['requeue_freeze'])
  })
})
