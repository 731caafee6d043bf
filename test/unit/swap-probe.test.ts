import { describe, expect, it } from 'vitest'
import { SWAP_BACK_OFF_MS } from '../../controller/engine/inputs/nodes/node-events.ts'
import { setWakeable } from '../../controller/engine/apply/lifecycle/transitions.ts'
import type { ConfigFields } from '../../controller/model/config.ts'
import type { LiveTask } from '../../controller/state/facts.ts'
import { ClusterBuilder, placementOf } from '../support/cluster-builder.ts'
import { restarted } from '../support/restarted-cluster.ts'

const SECOND = 1000
const IDLE_S = 300
const PROBE_S = 600

/** One GPU of 100 MiB; `a` was swapped out for `b`, which has ended: nothing blocks a return. */
function oneIsAway(signalsWanted: boolean): { readonly cluster: ClusterBuilder; readonly a: LiveTask } {
  const cluster = new ClusterBuilder({
    safety_reserve_mib: 0,
    default_vram_overcommit_percent: 100,
    idle_swap_out_seconds: IDLE_S,
    swap_in_probe_seconds: PROBE_S,
    // The GPU is free: with eager returns, the task would return before its first probe.
    eager_swap_in_seconds: null,
  })
  cluster.addNode({ id: 'n', gpus: [100], signalsWanted })
  const a = cluster.submit({ vramMib: 60 })
  cluster.settle()
  cluster.advance(IDLE_S * SECOND)
  const b = cluster.submit({ vramMib: 60 })
  cluster.cycle()
  cluster.swapped(a)
  cluster.settle()
  cluster.finished(b)
  cluster.cycle()
  expect(placementOf(a).residency).toBe('swapped_out')
  return { cluster, a }
}

it('A swapped-out task that cannot signal returns after the probe period', () => {
  const { cluster, a } = oneIsAway(false)
  cluster.advance((PROBE_S - 1) * SECOND)
  expect(placementOf(a).residency).toBe('swapped_out')
  cluster.advance(SECOND)
  expect(placementOf(a).residency).toBe('swapping_in')
  cluster.swapped(a)
  expect(placementOf(a)).toMatchObject({ residency: 'resident', isProbed: false, entry: null })
})

describe('a swapped-out task whose server reports requests for it', () => {
  function wakeable(config: Partial<ConfigFields> = {}): { cluster: ClusterBuilder; a: LiveTask } {
    const cluster = new ClusterBuilder({
      safety_reserve_mib: 0,
      default_vram_overcommit_percent: 100,
      idle_swap_out_seconds: IDLE_S,
      swap_in_probe_seconds: PROBE_S,
      ...config,
    })
    cluster.addNode({ id: 'n', gpus: [100], signalsWanted: false })
    const a = cluster.submit({ vramMib: 60 })
    cluster.settle()
    cluster.advance(IDLE_S * SECOND)
    const b = cluster.submit({ vramMib: 60 })
    cluster.cycle()
    cluster.swapped(a, false, true)
    cluster.settle()
    cluster.finished(b)
    cluster.cycle()
    return { cluster, a }
  }

  it('is neither probed nor returned to free VRAM; a request brings it back', () => {
    const { cluster, a } = wakeable({ eager_swap_in_seconds: 10 })
    cluster.advance(10 * PROBE_S * SECOND)
    cluster.cycle()
    expect(placementOf(a)).toMatchObject({ residency: 'swapped_out', isWakeable: true, isProbed: false })
    cluster.wants(a, true)
    cluster.cycle()
    expect(placementOf(a).residency).toBe('swapping_in')
    cluster.swapped(a)
    expect(placementOf(a)).toMatchObject({ residency: 'resident', isWakeable: false })
  })

  it('is still not probed after a restart of the controller', () => {
    const { cluster, a } = wakeable({ eager_swap_in_seconds: null })
    const after = restarted(cluster)
    after.advance(2 * PROBE_S * SECOND)
    after.cycle()
    expect(placementOf(after.cluster.tasks.get(a.spec.id) as LiveTask).residency).toBe('swapped_out')
  })

  it('is probed again once its server no longer reports requests', () => {
    const { cluster, a } = wakeable({ eager_swap_in_seconds: null })
    setWakeable(cluster.cluster, placementOf(a), false, cluster.now)
    cluster.advance(PROBE_S * SECOND)
    expect(placementOf(a).residency).toBe('swapping_in')
  })
})

it('A probed task without work is a victim again after one idle period, not earlier', () => {
  const { cluster, a } = oneIsAway(false)
  cluster.advance(PROBE_S * SECOND)
  cluster.swapped(a)
  const next = cluster.submit({ vramMib: 60 })
  cluster.cycle()
  cluster.advance((IDLE_S - 1) * SECOND)
  cluster.cycle()
  expect(placementOf(a).residency).toBe('resident')
  cluster.advance(SECOND)
  cluster.cycle()
  expect(placementOf(a).residency).toBe('swapping_out')
  cluster.settle()
  expect(placementOf(next).residency).toBe('resident')
  cluster.finished(next)
  cluster.advance(PROBE_S * SECOND)
  expect(placementOf(a).residency).toBe('swapping_in')
})

it('A report that a probed task does not want the GPU does not cancel its return', () => {
  const { cluster, a } = oneIsAway(false)
  const holder = cluster.submit({ vramMib: 60 })
  cluster.settle()
  cluster.wants(holder, true)
  cluster.advance(PROBE_S * SECOND)
  expect(placementOf(a)).toMatchObject({ residency: 'swapped_out', isProbed: true })
  cluster.wants(a, false)
  cluster.finished(holder)
  cluster.cycle()
  expect(placementOf(a).residency).toBe('swapping_in')
})

it('A probe that finds a swap-in already requested continues when that request is withdrawn', () => {
  const { cluster, a } = oneIsAway(false)
  const holder = cluster.submit({ vramMib: 60 })
  cluster.settle()
  cluster.wants(holder, true)
  cluster.byHand(a, 'swap-in')
  cluster.advance(PROBE_S * SECOND)
  cluster.byHand(a, 'swap-out')
  expect(placementOf(a)).toMatchObject({ residency: 'swapped_out', isSwapInRequested: false, isProbed: true })
  cluster.finished(holder)
  cluster.cycle()
  expect(placementOf(a).residency).toBe('swapping_in')
})

it('A restart of its server does not change the probe of a swapped-out task', () => {
  const { cluster, a } = oneIsAway(false)
  cluster.advance((PROBE_S - 1) * SECOND)
  cluster.restarted(cluster.node('n'))
  cluster.advance(SECOND)
  expect(placementOf(a).residency).toBe('swapping_in')
  cluster.swapped(a)
  const next = cluster.submit({ vramMib: 60 })
  cluster.advance(IDLE_S * SECOND)
  cluster.cycle()
  cluster.swapped(a)
  cluster.settle()
  cluster.finished(next)
  cluster.advance((PROBE_S - 1) * SECOND)
  expect(placementOf(a).residency).toBe('swapped_out')
  cluster.advance(SECOND)
  expect(placementOf(a).residency).toBe('swapping_in')
})

it('No task is probed if tasks can signal', () => {
  const { cluster, a } = oneIsAway(true)
  cluster.advance(10 * PROBE_S * SECOND)
  expect(placementOf(a).residency).toBe('swapped_out')
})

/** A period counts from the swap-out, also after a change of controller. */
it('A restart of the controller does not restart the probe period', () => {
  const { cluster, a } = oneIsAway(false)
  cluster.advance((PROBE_S / 2) * SECOND)
  const after = restarted(cluster)
  const again = after.cluster.tasks.get(a.spec.id) as LiveTask
  after.advance((PROBE_S / 2 - 1) * SECOND)
  expect(placementOf(again).residency).toBe('swapped_out')
  after.advance(SECOND)
  expect(placementOf(again).residency).toBe('swapping_in')
})

it('A probe that was due while the controller was stopped happens at once', () => {
  const { cluster, a } = oneIsAway(false)
  const now = cluster.now + 2 * PROBE_S * SECOND
  const after = restarted(cluster, { now })
  after.advance(0)
  expect(placementOf(after.cluster.tasks.get(a.spec.id) as LiveTask).residency).toBe('swapping_in')
})

it('The period begins with the restart if the record has no swap-out time', () => {
  const { cluster, a } = oneIsAway(false)
  cluster.advance((PROBE_S / 2) * SECOND)
  const after = restarted(cluster, { forgets: ['outSince', 'isProbed'] })
  const again = after.cluster.tasks.get(a.spec.id) as LiveTask
  after.advance((PROBE_S - 1) * SECOND)
  expect(placementOf(again).residency).toBe('swapped_out')
  after.advance(SECOND)
  expect(placementOf(again).residency).toBe('swapping_in')
})

it('A restart of the controller keeps the probe and its request time', () => {
  const { cluster, a } = oneIsAway(false)
  const holder = cluster.submit({ vramMib: 60 })
  cluster.settle()
  cluster.wants(holder, true)
  cluster.advance(PROBE_S * SECOND)
  const askedAt = cluster.now
  cluster.configure({ swap_in_probe_seconds: 10 * PROBE_S })
  cluster.advance(SECOND)
  const after = restarted(cluster)
  const again = after.cluster.tasks.get(a.spec.id) as LiveTask
  expect(placementOf(again)).toMatchObject({ residency: 'swapped_out', isProbed: true, entry: { askedAt } })
})

describe('a probe without a return', () => {
  it('is repeated after the back-off of the failed swap, not after another period', () => {
    const { cluster, a } = oneIsAway(false)
    cluster.advance(PROBE_S * SECOND)
    for (let attempts = 0; attempts < 3; attempts++) {
      expect(placementOf(a).residency).toBe('swapping_in')
      cluster.refuse(a, 'swap_in')
      expect(placementOf(a)).toMatchObject({ residency: 'swapped_out', isProbed: true })
      cluster.cycle()
      cluster.advance(SWAP_BACK_OFF_MS - 1)
      expect(placementOf(a).residency).toBe('swapped_out')
      cluster.advance(1)
    }
    expect(placementOf(a).residency).toBe('swapping_in')
    cluster.swapped(a)
    expect(placementOf(a)).toMatchObject({
      residency: 'resident',
      isProbed: false,
      entry: null,
      swappedOutSince: null,
    })
    cluster.advance(PROBE_S * SECOND)
    expect(placementOf(a).residency).toBe('resident')
  })

  it('is also repeated after a failed copy and a restart of the controller', () => {
    const { cluster, a } = oneIsAway(false)
    cluster.advance(PROBE_S * SECOND)
    cluster.swapped(a, true)
    expect(placementOf(a)).toMatchObject({ residency: 'swapped_out', isProbed: true })
    cluster.cycle()
    const after = restarted(cluster)
    after.cycle()
    after.advance(SWAP_BACK_OFF_MS)
    expect(placementOf(after.cluster.tasks.get(a.spec.id) as LiveTask).residency).toBe('swapping_in')
  })

  it('ends with the task', () => {
    const { cluster, a } = oneIsAway(false)
    cluster.advance(PROBE_S * SECOND)
    cluster.refuse(a, 'swap_in')
    cluster.finished(a)
    cluster.advance(2 * PROBE_S * SECOND)
    expect(cluster.cluster.queuedEntries).toBe(0)
    expect(cluster.cluster.probes.size).toBe(0)
  })

  it('still counts its period from the swap-out after another request failed', () => {
    const { cluster, a } = oneIsAway(false)
    cluster.advance((PROBE_S / 2) * SECOND)
    cluster.wants(a, true)
    cluster.cycle()
    cluster.refuse(a, 'swap_in')
    cluster.wants(a, false)
    cluster.advance((PROBE_S / 2 - 1) * SECOND)
    expect(placementOf(a).residency).toBe('swapped_out')
    cluster.advance(SECOND)
    expect(placementOf(a).residency).toBe('swapping_in')
  })
})

describe('a change of swap_in_probe_seconds', () => {
  it.each([
    { is: 'shorter', periodS: PROBE_S / 2, atS: PROBE_S / 2 },
    { is: 'shorter than the time away', periodS: 1, atS: PROBE_S / 4 },
    { is: 'longer', periodS: 2 * PROBE_S, atS: 2 * PROBE_S },
  ])('applies to planned probes: $is, counted from the swap-out', ({ periodS, atS }) => {
    const { cluster, a } = oneIsAway(false)
    const outAt = cluster.now
    cluster.advance((PROBE_S / 4) * SECOND)
    cluster.configure({ swap_in_probe_seconds: periodS })
    cluster.advance(Math.max(0, outAt + atS * SECOND - 1 - cluster.now))
    if (cluster.now < outAt + atS * SECOND) expect(placementOf(a).residency).toBe('swapped_out')
    cluster.advance(outAt + atS * SECOND - cluster.now)
    expect(placementOf(a).residency).toBe('swapping_in')
  })

  it('also applies from the restart of a controller', () => {
    const { cluster, a } = oneIsAway(false)
    cluster.advance((PROBE_S / 4) * SECOND)
    const after = restarted(cluster)
    after.configure({ swap_in_probe_seconds: PROBE_S / 2 })
    const again = after.cluster.tasks.get(a.spec.id) as LiveTask
    after.advance((PROBE_S / 4) * SECOND - 1)
    expect(placementOf(again).residency).toBe('swapped_out')
    after.advance(1)
    expect(placementOf(again).residency).toBe('swapping_in')
  })

  it('does not cancel a return that a probe has requested', () => {
    const { cluster, a } = oneIsAway(false)
    const holder = cluster.submit({ vramMib: 60 })
    cluster.settle()
    cluster.wants(holder, true)
    cluster.advance(PROBE_S * SECOND)
    cluster.configure({ swap_in_probe_seconds: 10 * PROBE_S })
    cluster.finished(holder)
    cluster.cycle()
    expect(placementOf(a).residency).toBe('swapping_in')
  })
})

it.each([true, false])(
  'A server that changes whether its tasks can signal (%s) is believed',
  (signalsWanted) => {
    const { cluster, a } = oneIsAway(!signalsWanted)
    cluster.advance((PROBE_S / 2) * SECOND)
    cluster.hello(cluster.node('n'), { signals_wanted: signalsWanted })
    cluster.advance((PROBE_S / 2) * SECOND)
    expect(placementOf(a).residency).toBe(signalsWanted ? 'swapped_out' : 'swapping_in')
  },
)

it('A restart of the controller keeps the pending allocations of servers', () => {
  const cluster = new ClusterBuilder({ safety_reserve_mib: 0, default_vram_overcommit_percent: 0 })
  cluster.addNode({ id: 'n', gpus: [100] })
  const grower = cluster.submit({ vramMib: 40 })
  const holder = cluster.submit({ vramMib: 60 })
  cluster.settle()
  cluster.wants(holder, true)
  cluster.wantsToGrow(grower, 70)
  cluster.cycle()
  const after = restarted(cluster)
  const [again, other] = [grower, holder].map(({ spec }) => after.cluster.tasks.get(spec.id) as LiveTask)
  after.cycle()
  expect(placementOf(again as LiveTask)).toMatchObject({ demandMib: 40, heldGrowth: { mib: 70 } })
  after.finished(other as LiveTask)
  after.cycle()
  expect(placementOf(again as LiveTask)).toMatchObject({ demandMib: 70, heldGrowth: null })
})
