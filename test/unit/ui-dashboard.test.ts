/** The line of the dashboard that reports whether all is right. */
import { beforeAll, expect, test } from 'vitest'
import type { SummaryBody } from '../../controller/api/observe/summary-schema.ts'
import { freshnessOf } from '../../ui/api/freshness.ts'
import { statusOf, type Seen } from '../../ui/pages/dashboard/status-of.ts'
import { apiClient } from '../support/api-client.ts'
import { FakeController } from '../support/api-world.ts'

const FRESH: Seen = { freshness: 'fresh', starts: null }
const ALARM = { code: 'BROKER_AWAY', since: null, nodes: [], detail: 'No broker. Start it.' } as const

/** One node that is up, without tasks. */
let calm: SummaryBody

beforeAll(async () => {
  const api = await apiClient(new FakeController())
  const { nodes, tasks, ...rest } = (await api.send('GET', '/summary')).body as SummaryBody
  await api.app.close()
  calm = {
    ...rest,
    alarms: [],
    nodes: { ...nodes, total: 1, up: 1, attention: 0 },
    tasks: {
      ...tasks,
      by_list: { running: 0, pending: 0, completed: 0 },
      ended_last_hour: { since: rest.at, failed: 0, lost: 0 },
    },
  }
})

const waiting = (percent: number, reasons: SummaryBody['pending_by_reason']['reasons']): SummaryBody => ({
  ...calm,
  overcommit: { ...calm.overcommit, default_percent: percent },
  tasks: { ...calm.tasks, by_list: { running: 0, pending: 3, completed: 0 } },
  pending_by_reason: { counted: 3, of: 3, is_estimate: false, reasons },
})

test('All is right only if nothing is wrong and the summary is current', () => {
  expect(statusOf(calm, FRESH)).toMatchObject({ tone: 'good' })
  expect(statusOf(calm, { ...FRESH, freshness: 'connecting' })).toBeNull()
  expect(statusOf(calm, { ...FRESH, freshness: 'silent' })).toMatchObject({ tone: 'bad' })
  expect(statusOf({ ...calm, tasks: { ...calm.tasks, ended_last_hour: null } }, FRESH)).toMatchObject({
    tone: 'warn',
    words: 'All nodes are up, and no task is waiting. Failures in the last hour are unknown.',
  })
})

test('Data is silent after ten seconds without a message, and fresh only on a live connection', () => {
  expect(freshnessOf('live', 1_000, 10_999)).toBe('fresh')
  expect(freshnessOf('live', 1_000, 11_000)).toBe('silent')
  expect(freshnessOf('reconnecting', 1_000, 1_000)).toBe('silent')
  expect(freshnessOf('connecting', 1_000, 1_000)).toBe('connecting')
  expect(freshnessOf('live', null, 1_000)).toBe('connecting')
})

test('An alarm comes before nodes, failures and waiting tasks, and excludes an all-clear', () => {
  expect(statusOf({ ...calm, alarms: [ALARM] }, FRESH)).toMatchObject({
    tone: 'bad',
    words: '1 alarm is active: see the top of this page.',
  })
  const withTrouble = { ...calm, nodes: { ...calm.nodes, attention: 2 } }
  expect(statusOf(withTrouble, FRESH)?.words).toBe('2 nodes need attention.')
  expect(statusOf({ ...withTrouble, alarms: [ALARM, ALARM] }, FRESH)?.words).toMatch(/^2 alarms are active/)
})

test('Old data is called old before anything else is said', () => {
  expect(statusOf({ ...calm, alarms: [ALARM] }, { ...FRESH, freshness: 'silent' })?.words).toMatch(
    /^The controller does not respond/,
  )
})

test('Tasks that can never start are counted apart from those that wait', () => {
  const reasons = [
    { reason: 'NEVER_FITS', tasks: 1 },
    { reason: 'EXCEEDS_NODE_GPU_COUNT', tasks: 1 },
    { reason: 'WAITING_VRAM', tasks: 1 },
  ] as const
  expect(statusOf(waiting(0, reasons), { ...FRESH, starts: 1 })?.words).toBe(
    '3 tasks are waiting, and overcommit is off. At 50% overcommit, about 1 would start now. 2 of them can ' +
      'never start.',
  )
  expect(statusOf(waiting(50, [{ reason: 'WAITING_VRAM', tasks: 3 }]), FRESH)?.words).toBe(
    '3 tasks are waiting. Most common reason: all schedulable VRAM is allocated.',
  )
})
