import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { EMPTY_STATE } from '../../controller/adapters/memory-store.ts'
import { mayUseP0, NO_OWNER_LIMITS } from '../../controller/model/owner-limits.ts'
import type { OwnerUsage } from '../../controller/state/owner-usage.ts'
import { predictPlacement } from '../../controller/query/preview/prediction.ts'
import { recordOfNode, recordOfTask } from '../../controller/state/records.ts'
import { restore } from '../../controller/engine/recovery.ts'
import { TASK_DEFAULTS } from '../../protocol/limits.ts'
import { submitTask } from '../../controller/engine/inputs/commands/task-commands.ts'
import { applyStep, buildFleet, ClusterBuilder, fleetShapeArb, stepsArb } from '../support/cluster-builder.ts'
import { holds } from '../support/drawn-cases.ts'

const FILE = 'test/unit/owner-limits.test.ts'

function limited(
  maxPlacedGpus: number | null,
  maxPending: number | null = null,
  config = {},
): ClusterBuilder {
  const b = new ClusterBuilder(config)
  b.cluster.limitOwners({ ...NO_OWNER_LIMITS, maxPlacedGpus, maxPending })
  for (const id of ['n', 'm']) b.addNode({ id, gpus: [100, 100] })
  return b
}

const REQUEST = {
  ...TASK_DEFAULTS,
  id: null,
  name: null,
  vramMib: 10,
  groups: [],
  labels: {},
  command: null,
  maxRuntimeSeconds: null,
} as const

describe('the pending tasks of one owner', () => {
  it('are refused beyond the limit, and accepted again when one of them has ended', () => {
    const b = limited(null, 2)
    const [first] = [b.submit({ owner: 'ann' }), b.submit({ owner: 'ann' })]
    const third = () => submitTask(b.cluster, { ...REQUEST, owner: 'ann' }, () => 0.5, b.now)
    expect(third()).toEqual({ ok: false, refusal: { code: 'too_many_pending', limit: 2, owner: 'ann' } })
    b.submit({ owner: 'bob' })
    b.submit({ owner: null })
    b.cancel(first)
    expect(third().ok).toBe(true)
  })
})

describe('the GPUs of one owner', () => {
  it('are used up to the limit; the next task waits with OWNER_LIMIT, and others overtake it', () => {
    const b = limited(3)
    const [one, two] = [b.submit({ owner: 'ann', gpuCount: 2 }), b.submit({ owner: 'ann', gpuCount: 2 })]
    const [three, other] = [b.submit({ owner: 'ann' }), b.submit({ owner: 'bob', gpuCount: 2 })]
    b.settle()
    expect([one, two, three, other].map((task) => task.state)).toEqual([
      'running',
      'pending',
      'running',
      'running',
    ])
    expect(b.explain(two)).toMatchObject({
      primary: { reason: 'OWNER_LIMIT' },
      sentence: 'Waiting for another task of ann to end: the owner uses 3 of 3 GPUs, and this task needs 2.',
    })
    b.finished(three)
    b.cycle()
    expect(two.state).toBe('pending')
    b.finished(one)
    b.cycle()
    expect(two.state).toBe('assigned')
  })

  it('delay no other owner under fifo: a task that waits for its own limit is not a head', () => {
    const b = limited(1, null, { placement_strategy: 'fifo', reservation_after_seconds: 1 })
    b.submit({ owner: 'ann' })
    b.cycle()
    const waits = b.submit({ owner: 'ann', vramMib: 90 })
    const later = b.submit({ owner: 'bob', vramMib: 90 })
    b.advance(10_000)
    b.cycle()
    expect([waits.state, later.state]).toEqual(['pending', 'assigned'])
    expect(b.gpus.flatMap((gpu) => gpu.reservations)).toEqual([])
  })

  it('are not the primary reason if an earlier reason excludes every node', () => {
    const b = limited(1)
    b.submit({ owner: 'ann' })
    b.cycle()
    const never = b.submit({ owner: 'ann', vramMib: 5000 })
    expect(b.explain(never)?.primary.reason).toBe('NEVER_FITS')
    expect(b.explain(never)?.secondary.map(({ reason }) => reason)).toContain('OWNER_LIMIT')
  })

  it('are considered by a dry run', () => {
    const b = limited(1)
    b.submit({ owner: 'ann' })
    b.cycle()
    const predicted = (owner: string) => {
      const answer = predictPlacement(b.cluster, { ...REQUEST, owner }, b.now)
      return answer.ok ? [answer.value.when, answer.value.wait?.primary.reason ?? null] : answer.refusal
    }
    expect([predicted('ann'), predicted('bob')]).toEqual([
      [null, 'OWNER_LIMIT'],
      ['now', null],
    ])
  })

  it('are counted again after a restart', () => {
    const b = limited(2, 5)
    for (let i = 0; i < 4; i += 1) b.submit({ owner: 'ann' })
    b.settle()
    const next = new ClusterBuilder()
    next.cluster.limitOwners({ ...NO_OWNER_LIMITS, maxPlacedGpus: 2, maxPending: 5 })
    const nodes = [...b.cluster.nodes.values()].map(recordOfNode)
    restore(next.cluster, { ...EMPTY_STATE, openTasks: b.tasks.map(recordOfTask), nodes }, b.now)
    const { owners } = next.cluster
    expect([owners?.placedGpusOf('ann'), owners?.pendingOf('ann')]).toEqual([2, 2])
  })

  it('never exceed their limit, and every task that fits within it is placed', () => {
    const owners = ['ann', 'bob', null] as const
    const property = fc.property(
      fleetShapeArb,
      stepsArb(80),
      fc.integer({ min: 1, max: 4 }),
      (shape, steps, limit) => {
        const b = buildFleet(shape)
        b.cluster.limitOwners({ ...NO_OWNER_LIMITS, maxPlacedGpus: limit, maxPending: 1000 })
        for (const step of steps) {
          if (step.do === 'submit') {
            const { mib: vramMib, gpus: gpuCount, priority } = step
            b.submit({
              vramMib,
              gpuCount,
              priority,
              noswap: step.kind === 1 ? 1 : 0,
              owner: owners[step.mib % 3] ?? null,
            })
          } else applyStep(b, step)
          expectCounted(b, limit)
        }
        b.cycle()
        for (const task of b.tasks) {
          const explained = b.explain(task)
          if (task.placement !== null || explained === null) continue
          const isFull =
            task.spec.owner !== null && (b.cluster.owners?.roomOf(task.spec.owner) ?? 0) < task.spec.gpuCount
          const reasons = [explained.primary, ...explained.secondary].map(({ reason }) => reason)
          if (task.placementEntry?.hasReserved !== true)
            expect(reasons.includes('OWNER_LIMIT'), task.spec.id).toBe(isFull)
          const isNextToGo =
            explained.primary.reason === 'QUEUED_BEHIND' &&
            explained.queuePosition === 1 &&
            task.placementEntry === null
          expect(isNextToGo, `${task.spec.id} would fit, and no task is ahead of it`).toBe(false)
        }
      },
    )
    holds(property, 400, FILE)
  })
})

function expectCounted(b: ClusterBuilder, limit: number): void {
  const book = b.cluster.owners as OwnerUsage
  for (const owner of ['ann', 'bob']) {
    const own = b.tasks.filter((task) => task.spec.owner === owner)
    const gpus = own
      .filter((task) => task.placement !== null || task.placementEntry?.hasReserved === true)
      .reduce((sum, task) => sum + task.spec.gpuCount, 0)
    expect([book.placedGpusOf(owner), book.pendingOf(owner)]).toEqual([
      gpus,
      own.filter((task) => task.state === 'pending').length,
    ])
    expect(gpus).toBeLessThanOrEqual(limit)
  }
}

describe('the permission for P0', () => {
  it('applies to all owners, or to named owners and roles', () => {
    expect(mayUseP0(NO_OWNER_LIMITS, 'ann', 'submitter')).toBe(true)
    const limits = { ...NO_OWNER_LIMITS, p0: ['ann', 'role:operator'] }
    expect(mayUseP0(limits, 'ann', 'submitter')).toBe(true)
    expect(mayUseP0(limits, 'bob', 'submitter')).toBe(false)
    expect(mayUseP0(limits, 'bob', 'operator')).toBe(true)
    expect(mayUseP0(limits, null, 'admin')).toBe(true)
  })
})
