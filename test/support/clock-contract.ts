/** The contract of every clock, in virtual time and in real time. */
import { describe, expect, it } from 'vitest'
import type { Clock, TimerRank } from '../../controller/ports/clock.ts'

export interface ClockUnderTest {
  readonly clock: Clock
  /** Advances time until the condition holds; rejects if it does not for a while. */
  until(fact: () => boolean): Promise<void>
  close(): void
}

export function clockContract(name: string, open: () => ClockUnderTest): void {
  describe(`${name} satisfies the contract of Clock`, () => {
    const using = async (test: (under: ClockUnderTest) => Promise<void>): Promise<void> => {
      const under = open()
      try {
        await test(under)
      } finally {
        under.close()
      }
    }

    it('runs each callback once, and never inside the call that registers it', () =>
      using(async ({ clock, until }) => {
        const ran: string[] = []
        clock.at(clock.now(), () => ran.push('now'))
        clock.at(clock.now() - 1_000, () => ran.push('past'))
        expect(ran).toEqual([])
        await until(() => ran.length === 2)
        clock.at(clock.now() + 3, () => ran.push('later'))
        await until(() => ran.includes('later'))
        expect(ran).toHaveLength(3)
        expect(new Set(ran)).toEqual(new Set(['later', 'now', 'past']))
      }))

    it('never runs a timer early, and runs timers in the order of their instants', () =>
      using(async ({ clock, until }) => {
        // Later than the registration takes on a busy machine: an instant that has passed means "now".
        const start = clock.now() + 100
        const ran: number[] = []
        for (const ms of [9, 2, 5, 2, 0]) {
          clock.at(start + ms, () => {
            expect(clock.now()).toBeGreaterThanOrEqual(start + ms)
            ran.push(ms)
          })
        }
        await until(() => ran.length === 5)
        expect(ran).toEqual([0, 2, 2, 5, 9])
      }))

    it('has whole milliseconds that never decrease', () =>
      using(async ({ clock, until }) => {
        const seen: number[] = []
        const look = (): void => {
          seen.push(clock.now())
          if (seen.length < 20) clock.at(clock.now() + (seen.length % 2), look)
        }
        look()
        await until(() => seen.length === 20)
        expect(seen.every(Number.isInteger)).toBe(true)
        expect(seen.toSorted((a, b) => a - b)).toEqual(seen)
        expect(seen.at(-1)).toBeGreaterThan(seen[0] as number)
      }))

    it('keeps the ranks within an instant: a lower rank that became due meanwhile runs first', () =>
      using(async ({ clock, until }) => {
        const ran: string[] = []
        const add = (label: string, rank: TimerRank, then: () => void = () => {}): void => {
          clock.at(
            clock.now(),
            () => {
              ran.push(label)
              then()
            },
            rank,
          )
        }
        // Inside a timer, real time does not advance between these calls, so all of them share one instant,
        // however slow the host is.
        clock.at(
          clock.now() + 4,
          () => {
            add('decision', 3)
            add('message', 1, () => {
              add('device, because of the message', 0)
              add('message, because of the message', 1)
            })
            add('arrival', 2)
            add('device', 0)
            add('second decision', 3)
          },
          0,
        )
        await until(() => ran.includes('second decision'))
        expect(ran).toEqual([
          'device',
          'message',
          'device, because of the message',
          'message, because of the message',
          'arrival',
          'decision',
          'second decision',
        ])
      }))

    it('forgets cancelled timers, however often and however late', () =>
      using(async ({ clock, until }) => {
        const ran: number[] = []
        const cancels = Array.from({ length: 3_000 }, (_, i) =>
          clock.at(clock.now() + 2 + (i % 3), () => ran.push(i)),
        )
        cancels.forEach((cancel, i) => {
          if (i % 500 !== 0) cancel()
        })
        await until(() => ran.length === 6)
        for (const cancel of cancels) cancel()
        clock.at(clock.now() + 8, () => ran.push(-1))
        await until(() => ran.includes(-1))
        expect(ran.toSorted((a, b) => a - b)).toEqual([-1, 0, 500, 1_000, 1_500, 2_000, 2_500])
      }))
  })
}
