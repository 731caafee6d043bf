/**
 * Invariants of every world: all rules hold, both sides of the protocol agree, every feasible task runs, and
 * nothing is left over.
 */
import { expect } from 'vitest'
import type { Event } from '../../controller/model/event.ts'
import type { ClusterReading, TaskReading } from '../../controller/query/cluster-reading.ts'
import { poolKeyOf } from '../../controller/policy/placement/shape.ts'
import { eligibleFrom } from '../../controller/policy/swap/eligible.ts'
import type { Instant } from '../../protocol/units.ts'
import { createChecker } from '../../simulator/check/checker.ts'
import type { Checker } from '../../simulator/check/checker.ts'
import { describeViolation } from '../../simulator/check/violation.ts'
import { ALWAYS_NAMES } from '../../simulator/scenario/assertions.ts'
import type { World, WorldOptions } from '../../simulator/world/world.ts'
import { play } from './world-builder.ts'
import type { WorldCase } from './world-builder.ts'

/** Plays the case to its end. Throws the first violation. */
export async function expectSound(
  worldCase: WorldCase,
  options: Pick<WorldOptions, 'areHeartbeatsEnacted'> = {},
): Promise<World> {
  let checker: Checker | null = null
  let watched: World | null = null
  const { world } = await play(worldCase, {
    ...options,
    onWorld: (one) => {
      watched = one
      checker = createChecker(one, { always: ALWAYS_NAMES, eventually: [], sometimes: [], final: [] })
    },
    onEvents: (events) => {
      if (watched !== null)
        for (const event of events) if (event.kind === 'task_placed') expectFitPlacement(event, watched)
    },
    onStep: (one) => {
      checker?.afterStep()
      if ((one.clock.nextAt() ?? Infinity) <= one.clock.now()) return
      expectAgreement(one)
      expectCounts(one)
      expectOrder(one.controller.cluster, one.clock.now())
    },
  })
  expect((checker as Checker | null)?.violations.map(describeViolation)).toEqual([])
  expectNothingLeft(world.controller.cluster)
  return world
}

/** Between two instants, controller and servers agree on every started task. */
function expectAgreement({ controller, fleet }: World): void {
  for (const { spec, placement } of controller.views.openTasks()) {
    if (placement === null || placement.startedAt === null) continue
    const attempt = fleet.servers.get(placement.node.id)?.attempts.get(spec.id)
    const theirs =
      attempt === undefined
        ? null
        : { residency: attempt.residency, demandMib: attempt.vramMib, wantsGpu: attempt.wantsGpu }
    expect(theirs, spec.id).toEqual({
      residency: placement.residency,
      demandMib: placement.demandMib,
      wantsGpu: placement.wantsGpu,
    })
  }
}

/** Incremental counts equal a recount. */
function expectCounts({ controller: { views } }: World): void {
  const found = { pending: 0, assigned: 0, running: 0, unreachable: 0 }
  const submitted: number[] = []
  for (const { state, spec } of views.openTasks()) {
    if (state === 'pending' || state === 'assigned' || state === 'running' || state === 'unreachable')
      found[state] += 1
    submitted.push(spec.seq)
  }
  expect(views.counts()).toMatchObject(found)
  expect([...views.openTasksBefore(Infinity)].map(({ spec }) => spec.seq)).toEqual(
    submitted.toSorted((a, b) => b - a),
  )
  expect([...views.placedTasks()]).toHaveLength(found.assigned + found.running + found.unreachable)
}

/** Every waiting task is in its index, and every eligible task is in the index of victims. */
function expectOrder(cluster: ClusterReading, now: Instant): void {
  const isAnybodyWaiting = cluster.pendingCount > 0 || cluster.queuedEntries > 0
  for (const { spec, queue, placementEntry, placement, isHeld } of cluster.tasks.values()) {
    if (placement === null && isHeld) {
      expect(queue === null && placementEntry === null, `${spec.id} is held and stands in no queue`).toBe(
        true,
      )
      continue
    }
    if (placement === null) {
      expect(
        queue !== null || placementEntry?.hasReserved === true,
        `${spec.id} waits in a queue, or owns bytes`,
      ).toBe(true)
      continue
    }
    const { residency, heldGrowth, entry, wantsGpu, isSwapInRequested, isEligible, startedAt, gpus } =
      placement
    if (residency === 'resident' && heldGrowth !== null)
      expect(entry?.kind, `${spec.id} asks to grow`).toBe('growth')
    if (residency === 'swapped_out' && (wantsGpu || isSwapInRequested || heldGrowth !== null))
      expect(entry?.kind, `${spec.id} asks to return`).toBe('swap_in')
    const at = eligibleFrom(placement, cluster.policy)
    if (isAnybodyWaiting && startedAt !== null)
      expect(isEligible, `${spec.id} is eligible`).toBe(at !== null && at <= now)
    if (spec.gpuMode !== 'exclusive') continue
    for (const gpu of gpus)
      expect(
        gpu.placements.length + gpu.pendingClaimants.length,
        `tasks on the GPU of ${spec.id}, an exclusive task`,
      ).toBe(1)
  }
}

/**
 * On a node that accepts tasks; under `fifo` not before an earlier task of the same pool that still waits.
 */
function expectFitPlacement({ taskId, nodeId }: Event, { controller: { cluster } }: World): void {
  expect(cluster.nodes.get(nodeId ?? '')?.isCordoned, `${taskId} is placed on a cordoned node`).toBe(false)
  const placed = cluster.tasks.get(taskId ?? '')
  if (cluster.policy.strategy !== 'fifo' || cluster.policy.queueAgingMs !== null || placed === undefined)
    return
  for (const waiting of cluster.tasks.values()) {
    if (waiting.queue !== null && isAhead(waiting, placed) && cluster.isFeasible(waiting)) {
      throw new Error(`${placed.spec.id} is placed before ${waiting.spec.id}`)
    }
  }
}

function isAhead({ spec }: TaskReading, { spec: other }: TaskReading): boolean {
  if (poolKeyOf(spec.groups) !== poolKeyOf(other.groups)) return false
  return spec.priority === other.priority ? spec.seq < other.seq : spec.priority < other.priority
}

function expectNothingLeft(cluster: ClusterReading): void {
  // The remaining tasks cannot run on this fleet in its current state.
  for (const left of cluster.tasks.values()) {
    expect(left.state, left.spec.id).toBe('pending')
    expect(cluster.isFeasible(left), left.spec.id).toBe(false)
  }
  expect(cluster.queuedEntries).toBe(0)
  for (const { queue, collector, hostUsedMib, hostPromisedMib, gpus } of cluster.nodes.values()) {
    expect({ queue, collector, hostUsedMib, hostPromisedMib }).toEqual({
      queue: [],
      collector: null,
      hostUsedMib: 0,
      hostPromisedMib: 0,
    })
    for (const { claimants, pendingClaimants, reservations, noswapMib, swappableMib, movingOutMib } of gpus) {
      const books = {
        owners: claimants.length,
        claims: pendingClaimants.length,
        holds: reservations.length,
        noswapMib,
        swappableMib,
        movingOutMib,
      }
      expect(books).toEqual({
        owners: 0,
        claims: 0,
        holds: 0,
        noswapMib: 0,
        swappableMib: 0,
        movingOutMib: 0,
      })
    }
  }
}
