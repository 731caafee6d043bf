/** A dry run agrees with the effect of the change itself, on random clusters. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { presentNode } from '../../controller/api/nodes/present.ts'
import type { ConfigFields } from '../../controller/model/config.ts'
import type { Impact } from '../../controller/query/preview/impact.ts'
import { overOf, planConfig, planNodeConfig } from '../../controller/query/preview/impact.ts'
import type { LiveTask } from '../../controller/state/facts.ts'
import type { ClusterBuilder, FleetShape, Step } from '../support/cluster-builder.ts'
import { applyStep, buildFleet, fleetShapeArb, stepsArb } from '../support/cluster-builder.ts'
import { holds } from '../support/drawn-cases.ts'

const FILE = 'test/property/config-impact.test.ts'
const MAX_STEPS = 60

const changeArb: fc.Arbitrary<Partial<ConfigFields>> = fc.oneof(
  fc.record({ default_vram_overcommit_percent: fc.constantFrom(0, 20, 50, 300) }),
  fc.record({ safety_reserve_mib: fc.constantFrom(0, 10, 40) }),
  fc.record({
    default_vram_overcommit_percent: fc.constantFrom(0, 100),
    safety_reserve_mib: fc.constantFrom(0, 60),
  }),
  fc.record({
    max_tasks_per_gpu: fc.constantFrom(1, 2, 64),
    idle_swap_out_seconds: fc.constantFrom(1, 300, 1000),
  }),
  fc.record({
    max_residency_seconds: fc.constantFrom(null, 60),
    placement_strategy: fc.constantFrom('spread', 'best_fit', 'fifo'),
  }),
)
const roomierArb: fc.Arbitrary<Partial<ConfigFields>> = fc.oneof(
  fc.record({ default_vram_overcommit_percent: fc.constantFrom(20, 50, 100, 300) }),
  fc.record({
    default_vram_overcommit_percent: fc.constantFrom(100, 300),
    idle_swap_out_seconds: fc.constantFrom(100, 400),
  }),
  changeArb,
)
/**
 * A task that waits for a GPU gets one or keeps waiting; a task that has one becomes idle and may be swapped
 * out.
 */
const ALL_IDLE: readonly Step[] = [
  { do: 'cycle' },
  { do: 'start-all' },
  ...Array.from({ length: 12 }, (_, pick) => ({ do: 'wants' as const, pick, wants: false, idleSeconds: 0 })),
  { do: 'advance', seconds: 310 },
]
/** More than fits, so that some tasks wait. */
const crowdArb = stepsArb(30).map((steps) => steps.filter((step) => step.do === 'submit'))
const nodeChangeArb = fc.record({
  pick: fc.nat(2),
  overcommitPercent: fc.constantFrom(null, 0, 50, 300),
  reserveMib: fc.constantFrom(null, 0, 40),
})

describe('the dry run of a change', () => {
  it('returns the figures that the cluster has after the change', () => {
    const property = fc.property(fleetShapeArb, stepsArb(MAX_STEPS), changeArb, (fleet, steps, change) => {
      const b = after(fleet, steps)
      const { impact } = planned(planConfig(b.cluster, change, b.now))
      b.configure(change)
      expectFigures(b, impact)
    })
    holds(property, 300, FILE)
  })

  it('of a node returns the node after the change', () => {
    const property = fc.property(
      fleetShapeArb,
      stepsArb(MAX_STEPS),
      nodeChangeArb,
      (fleet, steps, { pick, ...change }) => {
        const b = after(fleet, steps)
        const nodes = [...b.cluster.nodes.values()]
        const node = nodes[pick % nodes.length] as (typeof nodes)[number]
        const { value, impact } = planned(planNodeConfig(b.cluster, node.id, change, b.now))
        const before = presentNode(value, b.cluster.config.fields, { lastHeardAt: b.now, swaps: node.swaps })
        b.configureNode(node, change)
        expect(before).toEqual(
          presentNode(node, b.cluster.config.fields, { lastHeardAt: b.now, swaps: node.swaps }),
        )
        expectFigures(b, impact)
      },
    )
    holds(property, 150, FILE)
  })

  it('names exactly the pending tasks that the change admits, each alone', () => {
    const property = fc.property(
      fleetShapeArb,
      stepsArb(30),
      crowdArb,
      changeArb,
      (shape, early, crowd, change) => {
        // A task that has waited long reserves a GPU on which it does not fit yet.
        const fleet = { ...shape, config: { ...shape.config, reservation_after_seconds: 86_400 } }
        const steps = [...early, ...crowd]
        const b = after(fleet, steps)
        // Entries that wait for VRAM on a node are served first, and may use the capacity.
        fc.pre(
          [...b.cluster.nodes.values()].every((node) =>
            node.queue.every(({ kind, hasReserved }) => kind === 'placement' && !hasReserved),
          ),
        )
        const { pending } = planned(planConfig(b.cluster, change, b.now)).impact
        expect(pending.lookedAt).toBe(pending.of)
        const letIn = waiting(b).filter(
          ({ spec: { id } }) => isLetIn(alone(fleet, steps, id), id, {}) === false,
        )
        const expected = letIn
          .filter(({ spec: { id } }) => isLetIn(alone(fleet, steps, id), id, change))
          .map(({ spec: { id } }) => id)
        expect(pending.wouldFitIds).toEqual(expected)
        expect(pending.wouldFit).toBe(expected.length)
      },
    )
    holds(property, 150, FILE)
  })

  it('predicts the next cycle: starts, reserved VRAM, and swap-outs', () => {
    const property = fc.property(
      fleetShapeArb,
      stepsArb(20),
      crowdArb,
      crowdArb,
      roomierArb,
      (shape, early, crowd, others, change) => {
        const fleet = { ...shape, config: { ...shape.config, default_vram_overcommit_percent: 0 } }
        const b = after(fleet, [...early, ...crowd, ...ALL_IDLE, ...others])
        const { nextCycle } = planned(planConfig(b.cluster, change, b.now)).impact
        const before = b.tasks.map(({ placement, placementEntry }) => ({
          placement,
          residency: placement?.residency,
          owns: placementEntry?.hasReserved === true,
        }))
        b.configure(change)
        b.cycle()
        const then = { starts: 0, startsAfterSwaps: 0, swapOuts: 0, swapOutMib: 0, taskIds: [] as string[] }
        b.tasks.forEach(({ spec, placement, placementEntry }, place) => {
          const was = before[place]
          if (was?.placement !== null && was?.placement !== undefined) {
            if (was.residency === 'swapping_out' || placement?.residency !== 'swapping_out') return
            then.swapOuts += 1
            then.swapOutMib += placement.demandMib * placement.gpus.length
            return
          }
          if (placement !== null) then.starts += 1
          else if (placementEntry?.hasReserved === true && was?.owns !== true) then.startsAfterSwaps += 1
          else return
          then.taskIds.push(spec.id)
        })
        expect(nextCycle).toEqual(then)
        seen.starts += then.starts
        seen.afterSwaps += then.startsAfterSwaps
      },
    )
    const seen = { starts: 0, afterSwaps: 0 }
    holds(property, 600, FILE)
    expect(Math.min(seen.starts, seen.afterSwaps)).toBeGreaterThan(0)
  })

  it('changes nothing', () => {
    const property = fc.property(
      fleetShapeArb,
      stepsArb(MAX_STEPS),
      changeArb,
      nodeChangeArb,
      (fleet, steps, change, { pick, ...ofNode }) => {
        const [asked, left] = [after(fleet, steps), after(fleet, steps)]
        planConfig(asked.cluster, change, asked.now)
        planNodeConfig(asked.cluster, `n${pick}`, ofNode, asked.now)
        for (const b of [asked, left]) {
          b.configure(change)
          b.cycle()
        }
        expect(asked.events).toEqual(left.events)
      },
    )
    holds(property, 100, FILE)
  })
})

function after(fleet: FleetShape, steps: readonly Step[]): ClusterBuilder {
  const b = buildFleet(fleet)
  for (const step of steps) applyStep(b, step)
  // Two cycles: a head that follows a placed head reserves its GPUs from the next cycle.
  b.cycle()
  b.cycle()
  return b
}

/** The same cluster without other tasks that wait for placement. */
function alone(fleet: FleetShape, steps: readonly Step[], id: string): ClusterBuilder {
  const b = after(fleet, steps)
  for (const task of waiting(b)) if (task.spec.id !== id) b.cancel(task)
  return b
}

function isLetIn(b: ClusterBuilder, id: string, change: Partial<ConfigFields>): boolean {
  const task = b.cluster.tasks.get(id) as LiveTask
  if (Object.keys(change).length > 0) b.configure(change)
  b.cycle()
  return task.placement !== null || task.placementEntry?.hasReserved === true
}

function waiting(b: ClusterBuilder): readonly LiveTask[] {
  return b.tasks.filter(({ queue }) => queue !== null)
}

function expectFigures(
  b: ClusterBuilder,
  { total, nodes, gpusOver, residencyImpossible, pending }: Impact,
): void {
  const { cluster } = b
  const presented = [...cluster.nodes.values()].map((node) =>
    presentNode(node, cluster.config.fields, { lastHeardAt: b.now, swaps: node.swaps }),
  )
  const sum = (
    name: 'effective_schedulable_mib' | 'commit_limit_mib' | 'over_committed_mib' | 'reserve_deficit_mib',
  ) => presented.reduce((mib, { vram }) => mib + vram[name], 0)
  expect(total.after).toEqual({
    effectiveSchedulableMib: sum('effective_schedulable_mib'),
    commitLimitMib: sum('commit_limit_mib'),
    overCommittedMib: sum('over_committed_mib'),
    reserveDeficitMib: sum('reserve_deficit_mib'),
  })
  for (const { nodeId, after: then } of nodes.named) {
    const node = presented.find(({ node_id: id }) => id === nodeId)
    expect(node?.overcommit.effective_percent).toBe(then.overcommitPercent)
    expect(node?.reserve.effective_mib).toBe(then.reserveMib)
    expect(node?.vram.commit_limit_mib).toBe(then.commitLimitMib)
  }
  const over = overOf(cluster)
  expect(gpusOver.count).toBe(over.gpuCount)
  expect(gpusOver.named.reduce((mib, gpu) => mib + gpu.overCommittedMib, 0)).toBe(over.overCommittedMib)
  const stuck = b.tasks.filter(
    ({ placement }) =>
      placement?.noswap === 0 &&
      placement.gpus.some((gpu) => placement.demandMib > gpu.capacityMib - gpu.noswapMib),
  )
  expect(new Set(residencyImpossible.named.map(({ taskId }) => taskId))).toEqual(
    new Set(stuck.map(({ spec }) => spec.id)),
  )
  expect(residencyImpossible.count).toBe(stuck.length)
  for (const id of pending.infeasibleIds)
    expect(cluster.isFeasible(cluster.tasks.get(id) as LiveTask)).toBe(false)
}

function planned<T>(answer: { readonly ok: true; readonly value: T } | { readonly ok: false }): T {
  if (!answer.ok) throw new Error('the change was refused')
  return answer.value
}
