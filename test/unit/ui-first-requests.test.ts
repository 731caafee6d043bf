import { expect, test } from 'vitest'
import { firstRequests } from '../../ui/first-requests.ts'

test('The list of tasks is requested with the filters of its address, without unknown parameters', () => {
  expect(firstRequests('/tasks', '')).toEqual([
    '/api/v1/summary',
    '/api/v1/tasks?state=running&sort=newest&limit=100',
  ])
  expect(
    firstRequests('/tasks', '?tab=pending&sort=name&q=a%26b&reason=WAITING_VRAM&x=1&priority=9')[1],
  ).toBe('/api/v1/tasks?q=a%26b&reason=WAITING_VRAM&state=pending&sort=name&limit=100')
})

test('Other pages request the summary first, and pages of a session request no live data', () => {
  for (const path of ['/', '/nodes', '/tasks/t1', '/simulator'])
    expect(firstRequests(path, '?tab=all')).toEqual(['/api/v1/summary'])
  expect(firstRequests('/simulator/s1/tasks', '')).toEqual([])
})
