/** A controller starts on a host whose clock was set back by a day since the previous run. */
import { expect, it } from 'vitest'
import type { LiveTask } from '../../controller/state/facts.ts'
import { queueClass } from '../../controller/policy/placement/queue.ts'
import { ClusterBuilder, placementOf } from '../support/cluster-builder.ts'
import { restarted } from '../support/restarted-cluster.ts'

const SECOND = 1000
const DAY = 86_400 * SECOND
const IDLE_S = 300
const CONFIG = { safety_reserve_mib: 0, default_vram_overcommit_percent: 100, idle_swap_out_seconds: IDLE_S }

/** Creates a cluster with one GPU of 100 MiB whose clock is one day ahead of the later clock. */
function aDayAhead(config: ConstructorParameters<typeof ClusterBuilder>[0] = CONFIG): ClusterBuilder {
  const cluster = new ClusterBuilder(config)
  cluster.addNode({ id: 'n', gpus: [100] })
  cluster.now += DAY
  return cluster
}

function setBack(cluster: ClusterBuilder): ClusterBuilder {
  return restarted(cluster, { now: cluster.now - DAY })
}

function sameIn(cluster: ClusterBuilder, { spec }: LiveTask): LiveTask {
  return cluster.cluster.tasks.get(spec.id) as LiveTask
}

it('An idle task is a victim after one idle period, not when the clock has caught up', () => {
  const before = aDayAhead()
  const idle = before.submit({ vramMib: 60 })
  before.settle()
  const waits = before.submit({ vramMib: 60 })
  before.cycle()
  const after = setBack(before)
  after.cycle()
  after.advance(IDLE_S * SECOND - 1)
  after.cycle()
  expect(placementOf(sameIn(after, idle)).residency).toBe('resident')
  after.advance(1)
  after.cycle()
  expect(placementOf(sameIn(after, idle)).residency).toBe('swapping_out')
  after.settle()
  expect(placementOf(sameIn(after, waits)).residency).toBe('resident')
})

it('A waiting task has waited zero time instead of negative time, so queue aging demotes no task', () => {
  const before = aDayAhead({ ...CONFIG, queue_aging_seconds: 60 })
  before.submit({ vramMib: 100 })
  before.settle()
  const waits = before.submit({ vramMib: 100, priority: 2 })
  before.cycle()
  const after = setBack(before)
  const again = sameIn(after, waits)
  expect(again).toMatchObject({ pendingSince: after.now, spec: { submittedAt: after.now } })
  expect(queueClass(again, after.cluster.policy, after.now)).toBe(2)
})

it('A runtime limit counts from the restart at the latest', () => {
  const before = aDayAhead()
  const limited = before.submit({ vramMib: 10, maxRuntimeSeconds: 600 })
  before.settle()
  const after = setBack(before)
  after.advance(600 * SECOND)
  expect(placementOf(sameIn(after, limited)).stopping).toMatchObject({ then: 'failed' })
})

it('A drain moves tasks after its configured time', () => {
  const before = aDayAhead()
  const moved = before.submit({ vramMib: 10, onNodeLoss: 'requeue' })
  before.settle()
  before.drain(before.node('n'), 60 * SECOND)
  const after = setBack(before)
  expect(after.node('n').drain).toMatchObject({ since: after.now, movesAt: after.now + 60 * SECOND })
  after.advance(60 * SECOND)
  expect(placementOf(sameIn(after, moved)).stopping).toMatchObject({ then: 'pending' })
})

it('Request times and back-offs of a swapped-out task are limited to the present', () => {
  const before = aDayAhead()
  const away = before.submit({ vramMib: 60 })
  before.settle()
  before.byHand(away, 'swap-out')
  before.cycle()
  before.swapped(away)
  before.wants(away, true)
  before.cycle()
  before.refuse(away, 'swap_in')
  before.wantsToGrow(away, 70)
  const after = setBack(before)
  const { now } = after
  expect(placementOf(sameIn(after, away))).toMatchObject({
    startedAt: now,
    swappedOutSince: now,
    backOffUntil: now + 30 * SECOND,
    heldGrowth: { askedAt: now },
    entry: { askedAt: now },
  })
})

it('Times in the past are unchanged', () => {
  const before = aDayAhead()
  const task = before.submit({ vramMib: 60 })
  before.settle()
  const { startedAt, idleSince } = placementOf(task)
  before.advance(DAY)
  const after = restarted(before)
  expect(placementOf(sameIn(after, task))).toMatchObject({ startedAt, idleSince })
})
