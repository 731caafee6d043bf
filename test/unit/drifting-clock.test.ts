import { expect, it } from 'vitest'
import { DriftingClock } from '../../simulator/kernel/drifting-clock.ts'
import { VirtualClock } from '../../simulator/kernel/virtual-clock.ts'

it('A clock keeps the offset of an earlier drift, and its timers keep their clock time', () => {
  const trueClock = new VirtualClock(1_000_000)
  const clock = new DriftingClock(trueClock)
  const ran: [string, number, number][] = []
  const runTo = (at: number): void => {
    trueClock.run(at, () => false)
    trueClock.advanceTo(at)
  }
  const note = (name: string) => () =>
    void ran.push([name, trueClock.now() - 1_000_000, clock.now() - 1_000_000])
  clock.at(1_010_000, note('fast'))
  clock.at(1_100_000, note('slow'))
  const cancel = clock.at(1_050_000, note('never'))
  clock.setDrift(100_000)
  runTo(1_020_000)
  expect(ran).toEqual([['fast', 9_091, 10_000]])
  expect(clock.aheadMs).toBe(2_000)
  clock.setDrift(-100_000)
  cancel()
  runTo(1_120_000)
  // The clock shows 22 s after 20 s; then 78 s more at nine tenths of the speed.
  expect(ran.at(-1)).toEqual(['slow', 106_667, 100_000])
  clock.setDrift(0)
  expect(clock.aheadMs).toBe(-8_000)
})
