import { expect, test } from 'vitest'
import { startsWords } from '../../cli/config/config.ts'

const cycle = (starts: number, later: number, swapOuts = 0) => ({
  starts,
  task_ids: [],
  starts_after_swaps: later,
  swap_outs: swapOuts,
  swap_out_mib: swapOuts * 1024,
})

test.each([
  [cycle(0, 0), 0, 'no pending task waits for a GPU'],
  [cycle(0, 0), 1, 'the pending task would still wait'],
  [cycle(0, 0), 18, 'none of the 18 pending tasks would start'],
  [cycle(1, 0), 1, '1 pending task would start now'],
  [cycle(3, 0), 3, '3 pending tasks would start now'],
  [cycle(1, 0), 2, '1 of 2 pending tasks would start now'],
  [cycle(0, 10, 13), 18, '10 of 18 pending tasks would start after swaps; 13 tasks would be swapped out'],
  [
    cycle(2, 3, 1),
    18,
    '5 of 18 pending tasks would start: 2 now, 3 after swaps; 1 task would be swapped out',
  ],
])('The starts %o of %i pending tasks are one sentence with numbers', (starts, pending, words) => {
  expect(startsWords(starts, pending).startsWith(words)).toBe(true)
})
