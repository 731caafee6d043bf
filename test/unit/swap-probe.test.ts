import { describe, expect, it } from 'vitest'
import { SWAP_BACK_OFF_MS } from '../../controller/engine/node/node-events.ts'
import type { LiveTask } from '../../controller/engine/live.ts'
import { ClusterBuilder, placementOf } from '../support/cluster-builder.ts'
import { restarted } from '../support/restarted-cluster.ts'

const SECOND = 1000
const IDLE_S = 300
const PROBE_S = 600

/**
 * One GPU of 100 MiB; `a` has been swapped out for `b`, which has ended: nothing stands in the way of a
 * return.
 */
function oneIsAway(signalsWanted: boolean): { readonly cluster: ClusterBuilder; readonly a: LiveTask } {
  const cluster = new ClusterBuilder({
    safety_reserve_mib: 0,
    default_vram_overcommit_percent: 100,
    idle_swap_out_seconds: IDLE_S,
    swap_in_probe_seconds: PROBE_S,
    // The GPU is free: a task would be back before its first probe.
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

it('where nothing can signal, a swapped-out task is brought back after the probe period', () => {
  const { cluster, a } = oneIsAway(false)
  cluster.advance((PROBE_S - 1) * SECOND)
  expect(placementOf(a).residency).toBe('swapped_out')
  cluster.advance(SECOND)
  expect(placementOf(a).residency).toBe('swapping_in')
  cluster.swapped(a)
  expect(placementOf(a)).toMatchObject({ residency: 'resident', isProbed: false, entry: null })
})

it('a probed task that finds no work is a victim again after one idle period, and not before', () => {
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

it('a report that a probed task wants nothing does not call its return off', () => {
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

it('a probe that finds the return asked for already goes on when that is called off', () => {
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

it('a server that has started again while the task is away has it probed all the same, once', () => {
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

it('No task is probed where tasks can signal', () => {
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

it('a probe that fell into the time without a controller is made up for at once', () => {
  const { cluster, a } = oneIsAway(false)
  const now = cluster.now + 2 * PROBE_S * SECOND
  const after = restarted(cluster, { now })
  after.advance(0)
  expect(placementOf(after.cluster.tasks.get(a.spec.id) as LiveTask).residency).toBe('swapping_in')
})

it('records that do not say since when a task is away have its period begin with the restart', () => {
  const { cluster, a } = oneIsAway(false)
  cluster.advance((PROBE_S / 2) * SECOND)
  const after = restarted(cluster, { forgets: ['outSince', 'isProbed'] })
  const again = after.cluster.tasks.get(a.spec.id) as LiveTask
  after.advance((PROBE_S - 1) * SECOND)
  expect(placementOf(again).residency).toBe('swapped_out')
  after.advance(SECOND)
  expect(placementOf(again).residency).toBe('swapping_in')
})

it('a restart of the controller does not forget that a probe asks, nor since when', () => {
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

describe('a probe that does not bring the task back', () => {
  it('is tried again when the failed swap is a moment ago, not after another period', () => {
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

  it('is tried again also when the copy fails, and after a restart of the controller', () => {
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

  it('asks no more when the task has ended', () => {
    const { cluster, a } = oneIsAway(false)
    cluster.advance(PROBE_S * SECOND)
    cluster.refuse(a, 'swap_in')
    cluster.finished(a)
    cluster.advance(2 * PROBE_S * SECOND)
    expect(cluster.cluster.queuedEntries).toBe(0)
    expect(cluster.cluster.probes.size).toBe(0)
  })

  it('The probe period counts from the swap-out when another task had asked and failed', () => {
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

describe('another swap_in_probe_seconds', () => {
  it.each([
    { is: 'shorter', periodS: PROBE_S / 2, atS: PROBE_S / 2 },
    { is: 'shorter than the time away', periodS: 1, atS: PROBE_S / 4 },
    { is: 'longer', periodS: 2 * PROBE_S, atS: 2 * PROBE_S },
  ])('holds for probes that are planned: $is, counted from the swap-out', ({ periodS, atS }) => {
    const { cluster, a } = oneIsAway(false)
    const outAt = cluster.now
    cluster.advance((PROBE_S / 4) * SECOND)
    cluster.configure({ swap_in_probe_seconds: periodS })
    cluster.advance(Math.max(0, outAt + atS * SECOND - 1 - cluster.now))
    if (cluster.now < outAt + atS * SECOND) expect(placementOf(a).residency).toBe('swapped_out')
    cluster.advance(outAt + atS * SECOND - cluster.now)
    expect(placementOf(a).residency).toBe('swapping_in')
  })

  it('holds from the restart of a controller on, too', () => {
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

  it('takes no return back that a probe has asked for', () => {
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
  'a server that says after another start whether its tasks can signal (%s) is believed',
  (signalsWanted) => {
    const { cluster, a } = oneIsAway(!signalsWanted)
    cluster.advance((PROBE_S / 2) * SECOND)
    cluster.hello(cluster.node('n'), { signals_wanted: signalsWanted })
    cluster.advance((PROBE_S / 2) * SECOND)
    expect(placementOf(a).residency).toBe(signalsWanted ? 'swapped_out' : 'swapping_in')
  },
)

it('a restart of the controller forgets no allocation that a server holds', () => {
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
