/** Leadership by a Lease of the real API server, in real time. */
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, describe } from 'vitest'
import { createSystemClock } from '../../controller/adapters/system-clock.ts'
import { LeaseLeadership } from '../../operator/adapters/lease-leadership.ts'
import { Pause } from '../../simulator/kernel/pause.ts'
import { ProcessClock } from '../../simulator/kernel/process-clock.ts'
import { ControlPlane, whyNoControlPlane } from '../support/kubernetes/control-plane.ts'
import { leadershipContract } from '../support/leadership-contract.ts'

const LEASE_MS = 3_000

describe.skipIf(whyNoControlPlane() !== null)('With etcd and kube-apiserver', () => {
  let plane: ControlPlane
  let serial = 0
  beforeAll(async () => {
    plane = await ControlPlane.start()
  })
  afterAll(() => plane?.stop())

  leadershipContract('Leadership by a Lease', async () => {
    serial += 1
    const lease = { namespace: 'default', name: `lease-${serial}` }
    return {
      leaseMs: LEASE_MS,
      isExact: false,
      candidate: (name, leaseMs = LEASE_MS) => {
        const pause = new Pause()
        const clock = new ProcessClock(createSystemClock(), pause)
        const leadership = new LeaseLeadership({ api: plane.client(), clock, name, lease, leaseMs })
        return { leadership, freeze: () => pause.begin(), thaw: () => pause.end() }
      },
      pass: (ms) => delay(ms),
      remove: async () => {},
    }
  })
})
