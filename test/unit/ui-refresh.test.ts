import { QueryClient, QueryObserver } from '@tanstack/query-core'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { EventBody } from '../../controller/api/observe/event-schema.ts'
import { opaque, refreshFrom, subjectsOf } from '../../ui/state/response-cache.ts'

const STARTED = { kind: 'task_started' } as EventBody

/** A query whose answer takes this long, and its received events; events arrive ten times a second. */
function page(answerMs: number) {
  const queries = new QueryClient()
  let tell: (events: readonly EventBody[] | null) => void = () => {}
  refreshFrom({ onEvents: (listener) => (tell = listener) }, queries)
  let asked = 0
  const queryFn = ({ signal }: { signal: AbortSignal }) =>
    new Promise<number>((resolve, reject) => {
      const answer = (asked += 1)
      signal.onabort = reject
      setTimeout(() => resolve(answer), answerMs)
    })
  const observer = new QueryObserver(queries, { queryKey: ['tasks', 'list'], queryFn, retry: false })
  const end = observer.subscribe(() => {})
  return {
    data: () => observer.getCurrentResult().data,
    asked: () => asked,
    tell,
    end,
    every: () => setInterval(() => tell([STARTED]), 100),
  }
}

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

test('An answer that takes longer than the interval of events is shown and requested again', async () => {
  const { data, every, end } = page(1_200)
  every()
  await vi.advanceTimersByTimeAsync(10_000)
  expect(data()).toBeGreaterThanOrEqual(5)
  end()
})

test('A burst of events causes at most two requests per second, and one after the last event', async () => {
  const { data, asked, tell, every, end } = page(10)
  const storm = every()
  await vi.advanceTimersByTimeAsync(10_000)
  clearInterval(storm)
  await vi.advanceTimersByTimeAsync(1_000)
  expect(asked()).toBeLessThanOrEqual(22)
  const before = asked()
  tell([{ kind: 'group_changed' } as EventBody])
  await vi.advanceTimersByTimeAsync(1_000)
  expect(asked()).toBe(before)
  tell(null)
  await vi.advanceTimersByTimeAsync(1_000)
  expect([asked(), data()]).toEqual([before + 1, before + 1])
  end()
})

test('An opaque response reads like the original, and equal responses are identical', () => {
  const answer = { items: [{ id: 'a' }], total: 1 }
  const made = opaque(answer) as typeof answer
  expect({ ...made }).toEqual(answer)
  expect(made.items).toBe(answer.items)
  expect(JSON.stringify(made)).toBe(JSON.stringify(answer))
  expect(opaque(answer)).toBe(made)
  expect(opaque(made)).toBe(made)
  // Values that solid-js/store traverses.
  expect([null, Object.prototype]).not.toContain(Object.getPrototypeOf(made))
  for (const same of [null, undefined, 3, 'text', answer.items]) expect(opaque(same)).toBe(same)
})

test('Events of the recovery and of quarantined attempts refresh the recovery screen', () => {
  for (const kind of ['store_behind', 'recovery', 'attempt_quarantined', 'attempt_settled'] as const) {
    expect(subjectsOf({ kind })).toContain('recovery')
  }
  expect(subjectsOf({ kind: 'task_started' })).not.toContain('recovery')
})
