/**
 * noswap tasks are placed by free physical VRAM alone (specification 2.3 and 8; semantics sections 1, 4 and
 * 5).
 */
import { describe, expect, it } from 'vitest'
import { vramOfGpu } from '../../controller/api/nodes/present-vram.ts'
import type { LiveTask } from '../../controller/state/facts.ts'
import { wouldFitIf } from '../../controller/query/preview/would-fit.ts'
import { ClusterBuilder, placementOf } from '../support/cluster-builder.ts'

const SECOND = 1000
const IDLE_MS = 300 * SECOND

/** One GPU of 110 MiB with a reserve of 10 MiB: C = 100. */
function oneGpu(percent: number): ClusterBuilder {
  const b = new ClusterBuilder({ default_vram_overcommit_percent: percent })
  b.addNode({ id: 'n1', gpus: [110] })
  return b
}

function gpuOf(b: ClusterBuilder) {
  const [gpu] = b.gpus
  if (gpu === undefined) throw new Error('there is no GPU')
  return gpu
}

function reasonsOf(b: ClusterBuilder, task: LiveTask): string[] {
  const explanation = b.explain(task)
  return explanation === null
    ? []
    : [explanation.primary, ...explanation.secondary].map(({ reason }) => reason)
}

describe('a noswap task', () => {
  it('is placed beyond the commit limit in free physical VRAM, and the excess is reported', () => {
    const b = oneGpu(20)
    b.submitSwappedOut({ vramMib: 60 })
    b.submit({ vramMib: 60 })
    b.settle()
    expect(gpuOf(b)).toMatchObject({ limitMib: 132, swappableMib: 120, freeMib: 40 })
    const pinned = b.submit({ vramMib: 40, noswap: 1 })
    b.settle()
    expect(placementOf(pinned).residency).toBe('resident')
    expect(vramOfGpu(gpuOf(b), 20)).toMatchObject({ committed_mib: 160, over_committed_mib: 28, free_mib: 0 })
  })

  it('blocks later swappable placements while the GPU is over-committed', () => {
    const b = oneGpu(20)
    b.submitSwappedOut({ vramMib: 60 })
    b.submit({ vramMib: 60 })
    b.submit({ vramMib: 30, noswap: 1 })
    b.settle()
    const later = b.submit({ vramMib: 5 })
    b.cycle()
    expect(reasonsOf(b, later)).toEqual(['WAITING_VRAM'])
  })

  it('never prevents the return of a placed swappable task, whatever the percentage', () => {
    const b = oneGpu(1000)
    b.submitSwappedOut({ vramMib: 70 })
    const task = b.submit({ vramMib: 31, noswap: 1 })
    b.cycle()
    expect(reasonsOf(b, task)).toEqual(['WOULD_STRAND'])
  })

  it('reserves VRAM of eligible victims with overcommit on, and starts when that VRAM is free', () => {
    const b = oneGpu(50)
    const victims = [b.submit({ vramMib: 45 }), b.submit({ vramMib: 45 })]
    b.settle()
    b.advance(IDLE_MS)
    const task = b.submit({ vramMib: 40, noswap: 1 })
    b.cycle()
    expect(task.placementEntry?.hasReserved).toBe(true)
    expect(victims.map((victim) => placementOf(victim).residency)).toEqual(['swapping_out', 'resident'])
    b.settle()
    expect(placementOf(task).residency).toBe('resident')
  })

  it('keeps noswap 0 where it may not become noswap: a swapped-out task could not return', () => {
    const b = oneGpu(1000)
    const away = b.submitSwappedOut({ vramMib: 70 })
    const task = b.submit({ vramMib: 31 })
    b.settle()
    expect(b.update(task, { noswap: 1 })).toBe(false)
    expect(placementOf(task).noswap).toBe(0)
    b.finished(away)
    expect(b.update(task, { noswap: 1 })).toBe(true)
  })

  it('waits at 0% until VRAM is free, without swap-outs, and the explanation says so', () => {
    const b = oneGpu(0)
    const idle = b.submit({ vramMib: 50 })
    b.settle()
    b.advance(2 * IDLE_MS)
    const task = b.submit({ vramMib: 50, noswap: 1 })
    b.settle()
    expect(placementOf(task).residency).toBe('resident')
    const waiting = b.submit({ vramMib: 10, noswap: 1, priority: 0 })
    b.cycle()
    b.advance(700 * SECOND)
    b.cycle()
    expect(placementOf(idle)).toMatchObject({ residency: 'resident', isEligible: true })
    expect([waiting.state, waiting.placementEntry, b.node('n1').queue]).toEqual(['pending', null, []])
    b.finished(task)
    b.cycle()
    expect(placementOf(waiting).gpus).toEqual([gpuOf(b)])
  })

  it('at 0% names physical VRAM as the only reason, and overcommit as a possible change', () => {
    const b = oneGpu(0)
    b.submit({ vramMib: 45 })
    b.submit({ vramMib: 45 })
    b.settle()
    b.advance(IDLE_MS)
    const task = b.submit({ vramMib: 40, noswap: 1 })
    b.cycle()
    expect(reasonsOf(b, task)).toEqual(['WAITING_PHYSICAL_VRAM'])
    expect(b.explain(task)).toMatchObject({
      retryAt: null,
      sentence:
        'Waiting for physical VRAM: the noswap task needs 40 MiB on one GPU; n1 has 10 MiB free. ' +
        'Overcommit is off on that node: no task is swapped out for this task.',
    })
    const changes = wouldFitIf(b.cluster, task, b.now).changes
    expect(changes.filter(({ change }) => change === 'overcommit')).toMatchObject([
      { scope: 'cluster', from: 0, to: 1 },
      { scope: 'node', from: 0, to: 1 },
    ])
  })

  it('stops waiting for victims when overcommit is switched off', () => {
    const b = oneGpu(50)
    b.submit({ vramMib: 45 })
    b.submit({ vramMib: 45 })
    b.settle()
    const task = b.submit({ vramMib: 40, noswap: 1 })
    b.cycle()
    b.advance(299 * SECOND)
    b.configureNode(b.node('n1'), { overcommitPercent: 0 })
    b.advance(700 * SECOND)
    b.cycle()
    expect(b.events.map(({ kind }) => kind)).not.toContain('swap_decided')
    expect(reasonsOf(b, task)).toEqual(['WAITING_PHYSICAL_VRAM'])
  })

  it('is not a collector after overcommit was switched off', () => {
    const b = oneGpu(50)
    const busy = [b.submit({ vramMib: 45 }), b.submit({ vramMib: 45 })]
    b.settle()
    for (const task of busy) b.wants(task, true)
    const head = b.submit({ vramMib: 40, noswap: 1 })
    b.cycle()
    b.advance(700 * SECOND)
    b.cycle()
    expect(b.node('n1').collector?.task).toBe(head)
    b.configureNode(b.node('n1'), { overcommitPercent: 0 })
    b.cycle()
    expect([b.node('n1').collector, head.placementEntry]).toEqual([null, null])
    for (const task of busy) b.wants(task, false)
    b.advance(2 * IDLE_MS)
    b.cycle()
    expect(b.events.map(({ kind }) => kind)).not.toContain('swap_decided')
  })
})

describe('a reservation next to noswap tasks', () => {
  it('keeps its commit room from noswap tasks that are later in the queue order', () => {
    const b = oneGpu(20)
    const [away] = [26, 26, 26, 26].map((vramMib) => b.submitSwappedOut({ vramMib }))
    const head = b.submit({ vramMib: 30 })
    b.cycle()
    b.advance(301 * SECOND)
    b.cycle()
    expect(gpuOf(b).reservations.map(({ task }) => task)).toEqual([head])
    const later = b.submit({ vramMib: 20, noswap: 1 })
    b.cycle()
    expect(reasonsOf(b, later)).toEqual(['RESERVED_FOR_ANOTHER'])
    b.finished(away as LiveTask)
    b.settle()
    expect([head, later].map((task) => placementOf(task).residency)).toEqual(['resident', 'resident'])
  })

  it('of a noswap task is on the GPU with the smallest shortfall, not the most commit room', () => {
    const b = new ClusterBuilder({ default_vram_overcommit_percent: 100 })
    b.addNode({ id: 'n1', gpus: [110] })
    b.submit({ vramMib: 80 })
    b.settle()
    b.addNode({ id: 'n2', gpus: [110] })
    for (let place = 0; place < 4; place++) b.submitSwappedOut({ vramMib: 54 })
    expect(b.gpus.map(({ swappableMib }) => swappableMib)).toEqual([80, 216])
    const head = b.submit({ vramMib: 50, noswap: 1 })
    b.cycle()
    expect(reasonsOf(b, head)).toEqual(['WOULD_STRAND'])
    b.advance(301 * SECOND)
    b.cycle()
    const heldOn = b.gpus
      .filter(({ reservations }) => reservations.some(({ task }) => task === head))
      .map(({ node }) => node.id)
    expect(heldOn).toEqual(['n2'])
  })
})
