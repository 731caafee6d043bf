/** One action for many tasks, and the columns that are hidden. */
import { expect, test } from 'vitest'
import type { TaskBody } from '../../controller/api/tasks/schema.ts'
import { hiddenText, readHidden, withHidden } from '../../ui/design/hidden-columns.ts'
import { inOrder, partsOf, runEach } from '../../ui/pages/tasks/bulk.ts'

const tasks = Array.from({ length: 20 }, (_, at) => ({ id: `t${at}`, name: `task-${at}` }) as TaskBody)

test('Tasks that cannot take part are skipped with their reason', () => {
  const { ready, skipped } = partsOf(tasks, ({ id }) => (id === 't3' ? 'The task is already failed.' : null))
  expect(ready).toHaveLength(19)
  expect(skipped).toEqual([
    { id: 't3', name: 'task-3', isDone: false, words: 'Skipped: The task is already failed.' },
  ])
})

test('Each task gets one request, a few at a time, and its own result; failures come first', async () => {
  let [now, most] = [0, 0]
  const asked: string[] = []
  const results = await runEach(
    tasks,
    async ({ id }) => {
      most = Math.max(most, (now += 1))
      asked.push(id)
      await Promise.resolve()
      now -= 1
      if (id === 't7') throw new Error('not found')
    },
    'Cancelled',
  )
  expect(most).toBe(6)
  expect(new Set(asked)).toEqual(new Set(tasks.map(({ id }) => id)))
  expect(asked).toHaveLength(tasks.length)
  expect(inOrder(results)[0]).toEqual({ id: 't7', name: 'task-7', isDone: false, words: 'Failed: not found' })
  expect(results.filter(({ isDone }) => isDone)).toHaveLength(19)
})

test('Hidden columns keep their names in a link', () => {
  const hidden = withHidden(withHidden([], 'Node:GPU', true), 'VRAM used', true)
  expect(readHidden(hiddenText(hidden))).toEqual(['Node:GPU', 'VRAM used'])
  expect(withHidden(hidden, 'Node:GPU', false)).toEqual(['VRAM used'])
  expect(readHidden('')).toEqual([])
})
