/** Virtual and real time satisfy one contract. */
import { afterEach, describe, expect, it, vi } from 'vitest'
import { createSystemClock } from '../../controller/adapters/system-clock.ts'
import { createSystemRandom } from '../../controller/adapters/system-random.ts'
import { VirtualClock } from '../../simulator/kernel/virtual-clock.ts'
import { clockContract } from '../support/clock-contract.ts'

clockContract('the virtual clock', () => {
  const clock = new VirtualClock(1_000_000)
  return {
    clock,
    until: (fact) => {
      clock.run(clock.now() + 60_000, fact)
      return fact() ? Promise.resolve() : Promise.reject(new Error('it has not become true'))
    },
    close: () => {},
  }
})

clockContract('the system clock', () => {
  const clock = createSystemClock()
  return {
    clock,
    until: (fact) => expect.poll(fact, { timeout: 60_000, interval: 1 }).toBe(true),
    close: () => clock.stop(),
  }
})

describe('the system clock', () => {
  afterEach(() => vi.restoreAllMocks())

  it('starts at the wall clock and does not follow later changes of the wall clock', () => {
    const before = Date.now()
    const clock = createSystemClock()
    expect(clock.now()).toBeGreaterThanOrEqual(before - 1)
    expect(clock.now()).toBeLessThanOrEqual(Date.now() + 1)
    vi.spyOn(Date, 'now').mockReturnValue(0)
    const first = clock.now()
    expect(first).toBeGreaterThanOrEqual(before - 1)
    vi.spyOn(Date, 'now').mockReturnValue(8e15)
    expect(clock.now() - first).toBeLessThan(60_000)
    clock.stop()
  })

  it('keeps no cancelled timer, however late it would be due', () => {
    const clock = createSystemClock()
    for (let i = 0; i < 100_000; i++) clock.at(clock.now() + 1e12, () => {})()
    clock.at(clock.now() + 1e12, () => {})
    expect(clock.pending).toBe(1)
    expect(clock.held).toBeLessThan(5_000)
    clock.stop()
  })

  it('runs nothing after it was stopped', async () => {
    const clock = createSystemClock()
    let ran = 0
    clock.at(clock.now(), () => (ran += 1))
    clock.at(clock.now() + 1, () => (ran += 1))
    clock.stop()
    clock.at(clock.now(), () => (ran += 1))
    const other = createSystemClock()
    await new Promise<void>((resolve) => other.at(other.now() + 5, resolve))
    other.stop()
    expect(ran).toBe(0)
  })
})

describe('the system randomness', () => {
  it('returns different numbers from 0 to below 1, under any name', () => {
    const random = createSystemRandom()
    const numbers = ['a', 'b'].flatMap((name) => Array.from({ length: 1_000 }, random.stream(name)))
    expect(numbers.every((number) => number >= 0 && number < 1)).toBe(true)
    expect(new Set(numbers).size).toBeGreaterThan(1_990)
    expect(numbers.some((number) => number < 0.1) && numbers.some((number) => number > 0.9)).toBe(true)
  })
})
