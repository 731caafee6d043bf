/** Leadership in one process satisfies the contract of every leadership, in virtual time. */
import { createMemoryLeadership, createMemoryLease } from '../../controller/adapters/memory-leadership.ts'
import { VirtualClock } from '../../simulator/kernel/virtual-clock.ts'
import { leadershipContract } from '../support/leadership-contract.ts'

const LEASE_MS = 2_000

leadershipContract('leadership in memory', () => {
  const clock = new VirtualClock(0)
  const lease = createMemoryLease()
  return Promise.resolve({
    leaseMs: LEASE_MS,
    isExact: true,
    candidate: (name, leaseMs = LEASE_MS) => {
      const leadership = createMemoryLeadership(lease, { name, clock, leaseMs })
      return { leadership, freeze: () => leadership.freeze(), thaw: () => leadership.thaw() }
    },
    pass: async (ms) => {
      const end = clock.now() + ms
      clock.run(end, () => false)
      clock.advanceTo(end)
      // Continuations of what has happened.
      for (let i = 0; i < 4; i++) await Promise.resolve()
    },
    remove: () => Promise.resolve(),
  })
})
