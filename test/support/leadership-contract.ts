/** The contract of every leadership (controller/ports/leadership.ts). */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Leadership, Term, TermEnd } from '../../controller/ports/leadership.ts'

export interface Candidate {
  readonly leadership: Leadership
  /** It gives no sign of life until it is thawed. */
  freeze(): void
  thaw(): void
}

export interface LeadershipUnderTest {
  readonly leaseMs: number
  /** Time passes as told, so that durations can be compared. */
  readonly isExact: boolean
  /** @param leaseMs another lease than `leaseMs` */
  candidate(name: string, leaseMs?: number): Candidate
  /** Lets time pass. */
  pass(ms: number): Promise<void>
  remove(): Promise<void>
}

/** Longer than any pause of a loaded machine. */
const PATIENT_LEASES = 20

export function leadershipContract(title: string, open: () => Promise<LeadershipUnderTest>): void {
  describe(`${title} satisfies the contract of Leadership`, () => {
    let under: LeadershipUnderTest
    let opened: Leadership[]
    beforeEach(async () => {
      under = await open()
      opened = []
    })
    afterEach(async () => {
      for (const each of opened) await each.close()
      await under.remove()
    })

    /** A candidate that campaigns; `term` is set once it leads. */
    function campaigning(name: string, leaseMs = under.leaseMs) {
      const candidate = under.candidate(name, leaseMs)
      const { leadership } = candidate
      opened.push(leadership)
      const state: { term: Term | null; end: TermEnd | null } = { term: null, end: null }
      const campaign = () => {
        leadership.campaign().then(
          (term) => {
            state.term = term
            void leadership.lost.then((end) => (state.end = end))
          },
          () => undefined,
        )
      }
      campaign()
      return { ...candidate, state, campaign }
    }

    /** Lets time pass until it is so, in steps of a tenth of a lease. @returns the passed leases */
    async function until(fact: () => boolean, atMost = under.isExact ? 10 : 100): Promise<number> {
      for (let tenths = 0; tenths <= atMost * 10; tenths++) {
        if (fact()) return tenths / 10
        await under.pass(under.leaseMs / 10)
      }
      throw new Error(`it was not so within ${atMost} leases`)
    }

    it('lets the first candidate lead, with no leader before it', async () => {
      const { state, leadership } = campaigning('a')
      await until(() => state.term !== null)
      expect(state.term).toEqual({ epoch: 1, reason: 'first', before: null })
      expect(leadership.epoch).toBe(1)
    })

    it('lets no second candidate lead while the leader is idle and beats', async () => {
      const a = campaigning('a')
      await until(() => a.state.term !== null)
      const b = campaigning('b')
      for (let tenths = 0; tenths < 40; tenths++) await under.pass(under.leaseMs / 10)
      expect(b.state.term).toBeNull()
      expect(b.leadership.epoch).toBe(0)
      expect(a.state.end).toBeNull()
    })

    it('replaces a silent leader after one lease, and tells it once it continues', async () => {
      const a = campaigning('a')
      await until(() => a.state.term !== null)
      const b = campaigning('b')
      await under.pass(under.leaseMs)
      a.freeze()
      const leases = await until(() => b.state.term !== null)
      expect(b.state.term).toEqual({ epoch: 2, reason: 'silent', before: 'a' })
      // A beat may have been a quarter of a lease old.
      expect(leases).toBeGreaterThanOrEqual(0.5)
      a.thaw()
      await until(() => a.state.end !== null)
      expect(a.state.end?.reason).not.toBe('resigned')
      expect(a.leadership.epoch).toBe(0)
      expect(b.leadership.epoch).toBe(2)
    })

    it('replaces a leader whose session has ended without waiting for its lease', async () => {
      const a = campaigning('a')
      await until(() => a.state.term !== null)
      const b = campaigning('b')
      await under.pass(under.leaseMs)
      await a.leadership.close()
      const leases = await until(() => b.state.term !== null)
      if (under.isExact) expect(leases).toBeLessThan(1)
      expect(b.state.term).toEqual({ epoch: 2, reason: 'disconnected', before: 'a' })
    })

    it('hands over at once when the leader resigns, and lets it campaign again', async () => {
      const a = campaigning('a')
      await until(() => a.state.term !== null)
      const b = campaigning('b')
      await under.pass(under.leaseMs)
      expect(a.state.end).toBeNull()
      await a.leadership.resign()
      const leases = await until(() => b.state.term !== null)
      if (under.isExact) expect(leases).toBeLessThan(1)
      expect(b.state.term).toEqual({ epoch: 2, reason: 'resigned', before: 'a' })
      expect(a.state.end).toMatchObject({ reason: 'resigned' })
      a.state.term = null
      a.campaign()
      await under.pass(under.leaseMs)
      expect(a.state.term).toBeNull()
      await b.leadership.resign()
      await until(() => a.state.term !== null)
      expect(a.state.term).toEqual({ epoch: 3, reason: 'resigned', before: 'b' })
    })

    it('hands over to the named candidate only', async () => {
      // After one lease any candidate may lead: a loaded machine must not reach it.
      const leaseMs = under.leaseMs * PATIENT_LEASES
      const a = campaigning('a', leaseMs)
      await until(() => a.state.term !== null)
      const [b, c] = [campaigning('b', leaseMs), campaigning('c', leaseMs)]
      await under.pass(under.leaseMs)
      expect(a.state.end).toBeNull()
      await a.leadership.resign('c')
      await until(() => b.state.term !== null || c.state.term !== null)
      expect([b.state.term, c.state.term?.epoch]).toEqual([null, 2])
      await c.leadership.resign('b')
      await until(() => b.state.term !== null)
      // No term of another candidate was in between.
      expect(b.state.term).toEqual({ epoch: 3, reason: 'resigned', before: 'c' })
    })

    it('lets any candidate lead when the named one has not taken over within a lease', async () => {
      const a = campaigning('a')
      await until(() => a.state.term !== null)
      const b = campaigning('b')
      await under.pass(under.leaseMs)
      expect(a.state.end).toBeNull()
      await a.leadership.resign('absent')
      const leases = await until(() => b.state.term !== null)
      expect(leases).toBeGreaterThanOrEqual(0.5)
      expect(b.state.term?.epoch).toBe(2)
    })

    it('raises the epoch with every term, of the same and of another controller', async () => {
      const names = ['a', 'b', 'a', 'a', 'b']
      const epochs: number[] = []
      for (const name of names) {
        const each = campaigning(name)
        await until(() => each.state.term !== null)
        epochs.push(each.leadership.epoch)
        await each.leadership.close()
      }
      expect(epochs).toEqual([1, 2, 3, 4, 5])
    })
  })
}
