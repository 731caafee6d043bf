import { expect, test } from 'vitest'
import { firstRequests } from '../../ui/first-requests.ts'

test('the list of tasks is asked for as its address says it; what no page knows is left out', () => {
  expect(firstRequests('/tasks', '')).toEqual([
    '/api/v1/summary',
    '/api/v1/tasks?state=running&sort=newest&limit=100',
  ])
  expect(
    firstRequests('/tasks', '?tab=pending&sort=name&q=a%26b&reason=WAITING_VRAM&x=1&priority=9')[1],
  ).toBe('/api/v1/tasks?q=a%26b&reason=WAITING_VRAM&state=pending&sort=name&limit=100')
})

test('other pages need the summary first, those of a session nothing of the live controller', () => {
  for (const path of ['/', '/nodes', '/tasks/t1', '/simulator'])
    expect(firstRequests(path, '?tab=all')).toEqual(['/api/v1/summary'])
  expect(firstRequests('/simulator/s1/tasks', '')).toEqual([])
})
