import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { TaskRequest } from '../../protocol/task.ts'
import { TASK_DEFAULTS } from '../../protocol/limits.ts'
import type { LiveTask } from '../../controller/state/facts.ts'
import { predictPlacement } from '../../controller/query/preview/prediction.ts'
import { previewGroup } from '../../controller/query/preview/group-preview.ts'
import { recordOfNode, recordOfTask } from '../../controller/state/records.ts'
import type { Priority } from '../../protocol/units.ts'
import {
  applyStep,
  buildFleet,
  type ClusterBuilder,
  fleetShapeArb,
  stepsArb,
} from '../support/cluster-builder.ts'
import { holds } from '../support/drawn-cases.ts'

const FILE = 'test/property/prediction.test.ts'

const requestArb: fc.Arbitrary<TaskRequest> = fc.record({
  id: fc.constant(null),
  name: fc.constant(null),
  vramMib: fc.integer({ min: 1, max: 110 }),
  gpuCount: fc.constantFrom(1, 1, 1, 2),
  gpuMode: fc.constantFrom('shared' as const, 'shared' as const, 'exclusive' as const),
  noswap: fc.constantFrom(0 as const, 0 as const, 1 as const),
  priority: fc.integer({ min: 0, max: 4 }) as fc.Arbitrary<Priority>,
  groups: fc.constantFrom([], [], [], ['g'], ['nowhere']),
  labels: fc.constant({}),
  owner: fc.constant(null),
  command: fc.constant(null),
  maxRuntimeSeconds: fc.constant(null),
  onNodeLoss: fc.constant(TASK_DEFAULTS.onNodeLoss),
})

/** All events, and the existing pools. */
function everything(b: ClusterBuilder): string {
  const { cluster } = b
  const nodes = [...cluster.nodes.values()].map(recordOfNode)
  const pools = [...cluster.pools.keys(), ...[...cluster.nodes.values()].map((node) => node.pools.length)]
  return JSON.stringify([
    nodes,
    b.tasks.map(recordOfTask),
    cluster.eventLog.nextEventSeq,
    cluster.nextTaskSeq,
    cluster.pendingCount,
    pools,
  ])
}

/** The placement after the cycle, in the form of a prediction. */
function outcomeOf(task: LiveTask, victims: readonly string[]) {
  const { placement, placementEntry } = task
  const gpus = placement?.gpus ?? (placementEntry?.hasReserved === true ? placementEntry.gpus : [])
  return {
    when: placement !== null ? 'now' : placementEntry?.hasReserved === true ? 'after_swap' : null,
    gpus: gpus.map((gpu) => `${gpu.node.id}/${gpu.index}`),
    victims,
  }
}

describe('a dry run of a submission', () => {
  it('predicts the next cycle for that task, and keeps no state', () => {
    const counts = { now: 0, after_swap: 0, null: 0, victims: 0 }
    const property = fc.property(
      fleetShapeArb,
      stepsArb(60),
      requestArb,
      fc.boolean(),
      (shape, steps, request, isRoomy) => {
        const b = buildFleet(shape)
        for (const step of steps) applyStep(b, step)
        if (isRoomy) makeRoom(b)
        // All tasks run, and the idle ones are eligible.
        for (const step of ['start-all', 'swapped-all', 'swapped-all'] as const) {
          applyStep(b, { do: step })
          b.cycle()
        }
        b.advance(310_000)
        b.cycle()
        const before = everything(b)
        const answer = predictPlacement(b.cluster, request, b.now)
        expect(everything(b)).toBe(before)
        if (!answer.ok) throw new Error('refused')
        const { when, gpus, victims, wait } = answer.value
        expect(wait === null).toBe(when !== null)
        const task = b.submit({ ...request, id: 'new' })
        const events = b.cycle()
        // Decisions of this cycle for other tasks depend on the state after the last cycle.
        if (
          events.some(
            ({ kind, taskId }) => taskId !== 'new' && (kind === 'task_placed' || kind === 'swap_decided'),
          )
        )
          return
        const decided = events
          .filter(({ kind }) => kind === 'swap_decided')
          .flatMap(({ data }) => data['victims'] as { id: string }[])
        const said = {
          when,
          gpus: gpus.map((gpu) => `${gpu.node.id}/${gpu.index}`),
          victims: victims.map((victim) => victim.task.spec.id),
        }
        expect(said).toEqual(
          outcomeOf(
            task,
            decided.map(({ id }) => id),
          ),
        )
        counts[when ?? 'null'] += 1
        counts.victims += victims.length
      },
    )
    holds(property, 1500, FILE)
    for (const [what, count] of Object.entries(counts)) expect(count, what).toBeGreaterThan(20)
  })
})

describe('a dry run of a group', () => {
  it('names leaving and returning nodes, tasks that finish there, and newly feasible tasks', () => {
    let feasible = 0
    let infeasible = 0
    let finishing = 0
    const property = fc.property(
      fleetShapeArb,
      stepsArb(40),
      fc.nat(7),
      fc.boolean(),
      (shape, steps, members, isDeleted) => {
        const b = buildFleet(shape)
        for (const step of steps) applyStep(b, step)
        b.cycle()
        const nodes = [...b.cluster.nodes.values()]
        const nodeIds = isDeleted
          ? null
          : nodes.filter((_, index) => ((members >> index) & 1) === 1).map((node) => node.id)
        const membersBefore = new Set(b.cluster.groups.get('g')?.nodeIds)
        const before = everything(b)
        const preview = previewGroup(b.cluster, 'g', nodeIds)
        expect(everything(b)).toBe(before)
        const inPool = () => new Set(nodes.filter((node) => node.groups.length === 0).map((node) => node.id))
        const canBe = () =>
          new Set(
            b.tasks
              .filter((task) => task.queue !== null && b.cluster.isFeasible(task))
              .map((task) => task.spec.id),
          )
        const [poolBefore, canBefore] = [inPool(), canBe()]
        b.group('g', nodeIds ?? [])
        const [poolAfter, canAfter] = [inPool(), canBe()]
        expect(new Set(preview.leavesCommonPool.nodeIds)).toEqual(without(poolBefore, poolAfter))
        expect(new Set(preview.returnsToCommonPool.nodeIds)).toEqual(without(poolAfter, poolBefore))
        expect(new Set(preview.becomeFeasible.taskIds)).toEqual(without(canAfter, canBefore))
        expect(new Set(preview.becomeInfeasible.taskIds)).toEqual(without(canBefore, canAfter))
        expect(preview.becomeFeasible.tasks).toBe(preview.becomeFeasible.taskIds.length)
        expect(preview.becomeInfeasible.tasks).toBe(preview.becomeInfeasible.taskIds.length)
        feasible += preview.becomeFeasible.tasks
        infeasible += preview.becomeInfeasible.tasks
        const isChanged = (id: string) => membersBefore.has(id) !== (nodeIds ?? []).includes(id)
        const stray = b.tasks.filter(
          ({ spec, placement }) =>
            placement !== null &&
            isChanged(placement.node.id) &&
            !isAtHome(spec.groups, placement.node.groups),
        )
        expect(new Set(preview.finishing.taskIds)).toEqual(new Set(stray.map(({ spec }) => spec.id)))
        finishing += preview.finishing.tasks
      },
    )
    holds(property, 600, FILE)
    expect([feasible > 20, infeasible > 20, finishing > 20]).toEqual([true, true, true])
  })
})

/** Only VRAM is missing: every node accepts tasks, the commit limit is high, and its GPUs are full. */
function makeRoom(b: ClusterBuilder): void {
  b.configure({ default_vram_overcommit_percent: 1000, max_tasks_per_gpu: 64 })
  for (const node of b.cluster.nodes.values()) {
    b.cordon(node, false)
    b.configureNode(node, { overcommitPercent: null })
    b.heartbeat(node, { 0: 0, 1: 0, 2: 0 })
    for (const task of b.tasks)
      if (task.placement?.node === node && task.placement.startedAt !== null) b.wants(task, false, 1000)
  }
  for (const task of b.tasks) if (task.placement === null) b.cancel(task)
  b.cycle()
  for (const gpu of b.gpus) {
    if (gpu.freeMib > 0) b.submit({ vramMib: gpu.freeMib, groups: gpu.node.groups })
    b.cycle()
  }
}

function isAtHome(groups: readonly string[], ofNode: readonly string[]): boolean {
  return groups.length === 0 ? ofNode.length === 0 : groups.some((group) => ofNode.includes(group))
}

function without(all: ReadonlySet<string>, some: ReadonlySet<string>): ReadonlySet<string> {
  return new Set([...all].filter((id) => !some.has(id)))
}
