/** Leadership by a Lease satisfies the contract of every leadership, in virtual time. */
import { expect, it, vi } from 'vitest'
import { LeaseLeadership } from '../../../operator/adapters/lease-leadership.ts'
import { KubeError, LEASES } from '../../../operator/ports/kube-api.ts'
import { Pause } from '../../../simulator/kernel/pause.ts'
import { ProcessClock } from '../../../simulator/kernel/process-clock.ts'
import { VirtualClock } from '../../../simulator/kernel/virtual-clock.ts'
import { memoryApi } from '../../support/kubernetes/memory-world.ts'
import { leadershipContract } from '../../support/leadership-contract.ts'
import { WAIT } from '../../support/wait.ts'

const LEASE_MS = 15_000
const STEPS = 20
const lease = { namespace: 'default', name: 'headroom-operator' }

function aWorld() {
  const clock = new VirtualClock(1_000_000)
  const api = memoryApi()
  return {
    clock,
    api,
    candidate: (name: string, leaseMs = LEASE_MS) => {
      const pause = new Pause()
      const own = new ProcessClock(clock, pause)
      const leadership = new LeaseLeadership({ api, clock: own, name, lease, leaseMs })
      return { leadership, freeze: () => pause.begin(), thaw: () => pause.end() }
    },
    pass: async (ms: number) => {
      for (let step = 0; step < STEPS; step++) {
        const until = clock.now() + ms / STEPS
        // Virtual time stops at timers only.
        clock.at(until, () => {})
        clock.run(until, () => false)
        // Requests are answered within a turn.
        await new Promise((resolve) => setImmediate(resolve))
      }
    },
  }
}

leadershipContract('Leadership by a Lease', async () => ({
  ...aWorld(),
  leaseMs: LEASE_MS,
  isExact: true,
  remove: async () => {},
}))

it('A leader that cannot renew stops before another one may begin', async () => {
  const { api, clock, candidate, pass } = aWorld()
  const { leadership } = candidate('a')
  await leadership.campaign()
  for (let i = 0; i < 100; i++) api.failNext(new KubeError(503, 'ServiceUnavailable', 'away'))
  const since = clock.now()
  await pass(LEASE_MS * 0.6)
  expect(leadership.epoch).toBe(1)
  await pass(LEASE_MS * 0.1)
  expect(leadership.epoch).toBe(0)
  await pass(LEASE_MS * 0.3)
  expect(await leadership.lost).toEqual({
    reason: 'disconnected',
    detail: 'the Lease was not renewed in time',
  })
  expect(clock.now() - since).toBeLessThanOrEqual(LEASE_MS)
})

it('A leader continues after an edit of the Lease, and ends its term when the Lease is deleted', async () => {
  const { api, candidate, pass } = aWorld()
  const { leadership } = candidate('a')
  await leadership.campaign()
  await api.patch(LEASES, lease, { type: 'merge', body: { metadata: { labels: { note: 'x' } } } })
  await pass(LEASE_MS * 2)
  expect(leadership.epoch).toBe(1)
  await api.delete(LEASES, lease)
  await pass(LEASE_MS)
  expect(await leadership.lost).toMatchObject({ reason: 'replaced' })
})

it('A leader that ends while its Lease is changed releases it all the same', async () => {
  const { api, candidate, pass } = aWorld()
  const [first, second] = [candidate('a').leadership, candidate('b').leadership]
  await first.campaign()
  const next = second.campaign()
  await pass(LEASE_MS / 10)
  await api.patch(LEASES, lease, { type: 'merge', body: { metadata: { labels: { note: 'x' } } } })
  await first.close()
  await pass(LEASE_MS / 10)
  expect(await next).toMatchObject({ epoch: 2, reason: 'disconnected', before: 'a' })
})

it('A candidate that ends while it takes the Lease leaves it to others', async () => {
  const { api, clock } = aWorld()
  let closed = Promise.resolve()
  let hasClosed = false
  const leadership = new LeaseLeadership({ api, clock, name: 'a', lease, leaseMs: LEASE_MS })
  const create = api.create.bind(api)
  api.create = (...args) => {
    closed = leadership.close()
    hasClosed = true
    return create(...args)
  }
  void leadership.campaign()
  await vi.waitFor(() => expect(hasClosed).toBe(true), WAIT)
  await closed
  const { spec, metadata } = await api.get(LEASES, lease)
  expect(spec).not.toHaveProperty('holderIdentity')
  expect(metadata.annotations).toMatchObject({ 'headroom.dev/released': 'closed' })
})
