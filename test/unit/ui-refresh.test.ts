import { QueryClient, QueryObserver } from '@tanstack/query-core'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { EventBody } from '../../controller/api/schema/event.ts'
import { opaque, refreshFrom, subjectsOf } from '../../ui/state/response-cache.ts'

const STARTED = { kind: 'task_started' } as EventBody

/** A query whose answer takes so long, and what it was told; events come ten times a second. */
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

test('an answer that takes longer than events come is shown all the same, and asked for again', async () => {
  const { data, every, end } = page(1_200)
  every()
  await vi.advanceTimersByTimeAsync(10_000)
  expect(data()).toBeGreaterThanOrEqual(5)
  end()
})

test('a storm of events asks at most twice a second; after the last event it was asked once more', async () => {
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

test('an opaque answer reads the same and is the same for the same answer; lists and values stay as they are', () => {
  const answer = { items: [{ id: 'a' }], total: 1 }
  const made = opaque(answer) as typeof answer
  expect({ ...made }).toEqual(answer)
  expect(made.items).toBe(answer.items)
  expect(JSON.stringify(made)).toBe(JSON.stringify(answer))
  expect(opaque(answer)).toBe(made)
  expect(opaque(made)).toBe(made)
  // What solid-js/store walks into.
  expect([null, Object.prototype]).not.toContain(Object.getPrototypeOf(made))
  for (const same of [null, undefined, 3, 'text', answer.items]) expect(opaque(same)).toBe(same)
})

test('What happens to the recovery of a store, and to quarantined attempts, makes the recovery screen old', () => {
  for (const kind of ['store_behind', 'recovery', 'attempt_quarantined', 'attempt_settled'] as const) {
    expect(subjectsOf({ kind })).toContain('recovery')
  }
  expect(subjectsOf({ kind: 'task_started' })).not.toContain('recovery')
})
