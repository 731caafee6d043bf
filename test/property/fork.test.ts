/**
 * Incrementally updated indexes decide like rebuilt ones: on a copy of a settled cluster the next cycle
 * decides nothing.
 */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { byCodeUnits } from '../../controller/structures/order.ts'
import { runCycle } from '../../controller/engine/cycle.ts'
import { forkCluster } from '../../controller/state/snapshot/snapshot.ts'
import type { ClusterBuilder } from '../support/cluster-builder.ts'
import { applyStep, buildFleet, fleetShapeArb, stepsArb } from '../support/cluster-builder.ts'
import { holds } from '../support/drawn-cases.ts'

const FILE = 'test/property/fork.test.ts'
const MAX_STEPS = 80

describe('a copy of the cluster', () => {
  it('decides nothing that the cluster has not decided', () => {
    const property = fc.property(fleetShapeArb, stepsArb(MAX_STEPS), (fleet, steps) => {
      const b = buildFleet(fleet)
      for (const step of steps) {
        applyStep(b, step)
        if (step.do !== 'cycle') continue
        // Two cycles: a head that follows a placed head reserves its GPUs from the next cycle.
        b.cycle()
        expectSettled(b)
      }
      b.cycle()
      b.cycle()
      expectSettled(b)
    })
    holds(property, 300, FILE)
  })
})

function expectSettled({ cluster, now }: ClusterBuilder): void {
  const fork = forkCluster(cluster, now)
  // Everything is decided again.
  fork.applyConfig(fork.config, now)
  const before = stateOf(fork)
  runCycle(fork, now)
  expect(stateOf(fork)).toEqual(before)
}

function stateOf({ tasks, nodes }: ClusterBuilder['cluster']): unknown {
  return {
    tasks: Array.from(tasks.values(), ({ spec, placement, placementEntry }) => [
      spec.id,
      placement === null
        ? null
        : [
            placement.node.id,
            placement.gpus.map(({ index }) => index),
            placement.residency,
            placement.demandMib,
          ],
      placementEntry === null ? null : [placementEntry.node.id, placementEntry.hasReserved],
    ]),
    queues: Array.from(nodes.values(), ({ id, queue, collector }) => [
      id,
      queue
        .map(({ kind, task, hasReserved }) => `${kind} ${task.spec.id} ${String(hasReserved)}`)
        .sort(byCodeUnits),
      collector?.task.spec.id ?? null,
    ]),
  }
}
