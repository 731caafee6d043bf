import { expect, test } from 'vitest'
import { leaseTimes, LONE_LEASE_MS } from '../../controller/engine/lease-times.ts'
import { createLeaseWatch } from '../../controller/model/lease-watch.ts'

test('silence of a leader is counted from its last sign of life', () => {
  const watch = createLeaseWatch(2_000)
  expect(watch.observe('1', 0)).toBe(0)
  expect(watch.observe('1', 200)).toBe(200)
  expect(watch.observe('1', 400)).toBe(400)
  expect(watch.observe('2', 600)).toBe(0)
  expect(watch.observe('2', 700)).toBe(100)
})

test('a long time without observations is hardly any silence: the database may have been frozen', () => {
  const watch = createLeaseWatch(2_000)
  watch.observe('1', 0)
  expect(watch.observe('1', 60_000)).toBe(250)
  expect(watch.observe('1', 60_100)).toBe(350)
})

test('the times of a controller without a standby are 2, 4 and 60 seconds', () => {
  expect(leaseTimes(LONE_LEASE_MS)).toEqual({ renewMs: 2_000, leadsForMs: 4_000, commitWithinMs: 60_000 })
})

test('a leader among several answers without a commit for one lease, at most for 4 seconds', () => {
  expect(leaseTimes(2_000)).toMatchObject({ renewMs: 1_000, leadsForMs: 2_000 })
  expect(leaseTimes(60_000).leadsForMs).toBe(4_000)
})
