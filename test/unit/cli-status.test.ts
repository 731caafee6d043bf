import { expect, test } from 'vitest'
import { summaryFields } from '../../cli/status/status.ts'
import type { Summary } from '../../clients/typescript/client.ts'
import { FakeController, NODE_ID } from '../support/api-world.ts'
import { apiClient } from '../support/api-client.ts'

test('`headroom status` marks the reasons as an estimate if not all tasks were explained', async () => {
  const api = await apiClient(new FakeController())
  const summary = (await api.send('GET', '/summary')).body as Summary
  const pendingOf = (counted: number, of: number) => {
    const reasons = [{ reason: 'WAITING_VRAM' as const, tasks: counted }]
    return summaryFields({
      ...summary,
      pending_by_reason: { counted, of, is_estimate: counted < of, reasons },
    }).find(([name]) => name === 'pending')?.[1]
  }
  expect([pendingOf(7, 7), pendingOf(7, 900)]).toEqual([
    ['7 WAITING_VRAM'],
    ['7 WAITING_VRAM', 'estimated for 900 tasks from a sample of 7'],
  ])
  await api.app.close()
})

test('`headroom status` names the leader and counts the standbys of several controllers', async () => {
  const api = await apiClient(new FakeController())
  const summary = (await api.send('GET', '/summary')).body as Summary
  const shown = (controllers: Summary['controllers']) =>
    summaryFields({ ...summary, controllers }).find(([name]) => name === 'controllers')?.[1]
  expect([
    shown(null),
    shown({ leader: 'head-1', standbys: 1 }),
    shown({ leader: 'head-2', standbys: 0 }),
    shown({ leader: 'head-2', standbys: null }),
  ]).toEqual([
    undefined,
    'head-1 leads, 1 standby can take over',
    'head-2 leads, no standby can take over',
    'head-2 leads, the number of standbys is unknown',
  ])
  await api.app.close()
})

test('`headroom status` names node conditions and recent failures, and omits empty lines', async () => {
  const world = new FakeController()
  await world.addNode({ id: NODE_ID, gpus: 1, physicalMib: 40_000 })
  const api = await apiClient(world)
  const fields = async () => new Map(summaryFields((await api.send('GET', '/summary')).body as Summary))
  expect((await fields()).get('nodes')).toEqual(['1 of 1 up, 1 of 1 GPUs'])
  expect((await fields()).has('last hour')).toBe(false)
  await api.send('POST', `/nodes/${NODE_ID}/cordon`)
  world.addEvent('task_finished', { data: { state: 'lost' } })
  world.now += 1
  expect((await fields()).get('nodes')).toEqual(['1 of 1 up, 1 of 1 GPUs', '1 needs attention: 1 cordoned'])
  expect((await fields()).get('last hour')).toBe('0 tasks failed, 1 lost since 2026-01-02T02:04:05.679Z')
  await api.app.close()
})
