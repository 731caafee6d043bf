import { expect, test } from 'vitest'
import { summaryFields } from '../../cli/operator/status.ts'
import type { Summary } from '../../cli/client/client.ts'
import { FakeController } from '../support/api-world.ts'
import { apiClient } from '../support/api-client.ts'

test('`headroom status` says of how many tasks the reasons are, where not all were looked at', async () => {
  const api = await apiClient(new FakeController())
  const summary = (await api.send('GET', '/summary')).body as Summary
  const pendingOf = (counted: number, of: number) => {
    const reasons = [{ reason: 'WAITING_VRAM' as const, tasks: counted }]
    return summaryFields({ ...summary, pending_by_reason: { counted, of, reasons } }).find(([name]) => name === 'pending')?.[1]
  }
  expect([pendingOf(7, 7), pendingOf(7, 900)]).toEqual([['7 WAITING_VRAM'], ['7 WAITING_VRAM', 'of the first 7 of 900']])
  await api.app.close()
})
