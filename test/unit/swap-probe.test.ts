import { expect, it } from 'vitest'
import { recordOfNode, recordOfTask } from '../../controller/engine/records.ts'
import { restore } from '../../controller/engine/recovery.ts'
import type { LiveTask } from '../../controller/engine/live.ts'
import { ClusterBuilder, placementOf } from '../support/cluster-builder.ts'

const SECOND = 1000
const IDLE_S = 300
const PROBE_S = 600

/** One GPU of 100 MiB; `a` has been swapped out for `b`, which has ended: nothing stands in the way of a return. */
function oneIsAway(signalsWanted: boolean): { readonly cluster: ClusterBuilder; readonly a: LiveTask } {
  const cluster = new ClusterBuilder({
    safety_reserve_mib: 0,
    default_vram_overcommit_percent: 100,
    idle_swap_out_seconds: IDLE_S,
    swap_in_probe_seconds: PROBE_S,
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
  expect(placementOf(a)).toMatchObject({ residency: 'swapped_out', isCalledBack: false, isProbed: true })
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

it('where tasks can signal, nobody is probed', () => {
  const { cluster, a } = oneIsAway(true)
  cluster.advance(10 * PROBE_S * SECOND)
  expect(placementOf(a).residency).toBe('swapped_out')
})

/** The cluster after a restart of the controller. */
function restarted(before: ClusterBuilder): ClusterBuilder {
  const after = new ClusterBuilder()
  after.now = before.now
  const marks = { epoch: 1, nextTaskSeq: 10, nextEventSeq: 100, nextDecision: 10 }
  const finishedCounts = { completed: 0, failed: 0, cancelled: 0, lost: 0 }
  const config = { revision: 1, at: 0, author: null, fields: before.cluster.config.fields }
  const nodes = [...before.cluster.nodes.values()].map(recordOfNode)
  const stored = {
    openTasks: before.tasks.map(recordOfTask),
    nodes,
    groups: [],
    config,
    tokens: [],
    lastAuditSeq: 0,
    submissionKeys: [],
    marks,
    finishedCounts,
  }
  restore(after.cluster, structuredClone(stored), after.now)
  for (const node of after.cluster.nodes.values()) after.heartbeat(node)
  return after
}

it('a restart of the controller begins the probe period anew', () => {
  const { cluster, a } = oneIsAway(false)
  cluster.advance((PROBE_S / 2) * SECOND)
  const after = restarted(cluster)
  after.advance((PROBE_S - 1) * SECOND)
  const again = after.cluster.tasks.get(a.spec.id) as LiveTask
  expect(placementOf(again).residency).toBe('swapped_out')
  after.advance(SECOND)
  expect(placementOf(again).residency).toBe('swapping_in')
})

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
