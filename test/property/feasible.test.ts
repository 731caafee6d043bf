import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { byCodeUnits } from '../../controller/structures/order.ts'
import type { IndexEntry } from '../../controller/structures/ordered-index.ts'
import { newIndexEntry, OrderedIndex } from '../../controller/structures/ordered-index.ts'
import { OrderedTable } from '../../controller/structures/ordered-table.ts'
import { admit } from '../../controller/model/vram.ts'
import type { LiveGpu, LiveNode, LiveTask } from '../../controller/state/facts.ts'
import { isInHost } from '../../controller/state/gpu-ledger.ts'
import {
  capacityForSwappableMib,
  hostRoomMib,
  isPlaceable,
  largestAfterSwapMib,
  largestNowMib,
  NOTHING,
  reachMib,
} from '../../controller/policy/placement/feasible.ts'
import { movingOutForMib } from '../../controller/policy/swap/bytes.ts'
import type { ClusterBuilder, FleetShape, Step } from '../support/cluster-builder.ts'
import { applyStep, buildFleet, fleetShapeArb, stepsArb } from '../support/cluster-builder.ts'
import { holds } from '../support/drawn-cases.ts'

const FILE = 'test/property/feasible.test.ts'
const MAX_STEPS = 60
const MAX_TASKS_PER_GPU = 64

/** Any cluster that a sequence of steps produces, checked after every step. */
function afterEveryStep(
  fleet: FleetShape,
  steps: readonly Step[],
  look: (b: ClusterBuilder, step: Step | null) => void,
): void {
  const b = buildFleet(fleet)
  look(b, null)
  for (const step of steps) {
    applyStep(b, step)
    look(b, step)
  }
}

describe('the largest admitted demand of a GPU', () => {
  it('for a start now is the limit of verdict FITS, apart from task slots and host memory', () => {
    const property = fc.property(fleetShapeArb, stepsArb(MAX_STEPS), (fleet, steps) => {
      afterEveryStep(fleet, steps, (b) => {
        for (const gpu of openGpus(b)) {
          for (const [kind, noswap] of [
            ['swappable', 0],
            ['noswap', 1],
          ] as const) {
            const largest = largestNowMib(gpu, kind, MAX_TASKS_PER_GPU)
            for (const d of demandsAround(largest, gpu)) {
              const hasHostMemory = d <= hostRoomMib(gpu, kind)
              expect(largest >= d, `${kind} ${d} on ${nameOf(gpu)}`).toBe(
                hasHostMemory && admit(gpu, d, noswap) === 'FITS',
              )
            }
          }
        }
      })
    })
    holds(property, 40, FILE)
  })

  it('after a swap is the limit where eligible victims cover the missing VRAM', () => {
    const property = fc.property(fleetShapeArb, stepsArb(MAX_STEPS), fc.boolean(), (fleet, steps, isP0) => {
      afterEveryStep(fleet, steps, (b) => {
        for (const gpu of openGpus(b)) {
          for (const [kind, noswap] of [
            ['swappable', 0],
            ['noswap', 1],
          ] as const) {
            const largest = largestAfterSwapMib(gpu, kind, isP0, MAX_TASKS_PER_GPU)
            for (const d of demandsAround(largest, gpu)) {
              const verdict = admit(gpu, d, noswap)
              const onlyBytesMiss =
                verdict === 'FITS' ||
                verdict === 'FITS_AFTER_SWAP' ||
                (verdict === 'NO_PHYSICAL_FREE' && isOnlyOccupied(gpu, d))
              const isCovered = d <= reachMib(gpu, kind, isP0) && d <= hostRoomMib(gpu, kind)
              const isAdmitted =
                noswap === 1 && gpu.overcommitPercent === 0 ? verdict === 'FITS' : onlyBytesMiss
              expect(largest >= d, `${kind} ${d} on ${nameOf(gpu)}: ${verdict}`).toBe(isAdmitted && isCovered)
            }
          }
        }
      })
    })
    holds(property, 40, FILE)
  })

  it('is never larger now than after a swap', () => {
    const property = fc.property(fleetShapeArb, stepsArb(MAX_STEPS), (fleet, steps) => {
      afterEveryStep(fleet, steps, (b) => {
        for (const gpu of b.gpus) {
          for (const kind of ['swappable', 'noswap'] as const) {
            const after = Math.max(NOTHING, largestAfterSwapMib(gpu, kind, false, MAX_TASKS_PER_GPU))
            expect(largestNowMib(gpu, kind, MAX_TASKS_PER_GPU)).toBeLessThanOrEqual(after)
          }
        }
      })
    })
    holds(property, 40, FILE)
  })
})

describe('the ledger of a GPU and a node', () => {
  it('equals the sums over placements and entries, after every step', () => {
    const property = fc.property(fleetShapeArb, stepsArb(MAX_STEPS), (fleet, steps) => {
      afterEveryStep(fleet, steps, (b) => {
        for (const gpu of b.gpus) expect(figuresOf(gpu), nameOf(gpu)).toEqual(recomputed(gpu))
        for (const node of b.cluster.nodes.values()) {
          expect({ hostUsedMib: node.hostUsedMib, hostPromisedMib: node.hostPromisedMib }, node.id).toEqual(
            recomputedHost(node),
          )
        }
      })
    })
    holds(property, 100, FILE)
  })

  it('never exceeds commit limit, resident capacity or task slots because of an admission', () => {
    const property = fc.property(fleetShapeArb, stepsArb(MAX_STEPS), (fleet, steps) => {
      const b = buildFleet(fleet)
      for (const step of steps) {
        applyStep(b, step)
        const before = new Map(b.gpus.map((gpu) => [gpu, tasksOn(gpu)]))
        const events = b.cycle()
        const hasGrown = events.some((event) => event.kind === 'growth_granted')
        for (const gpu of b.gpus) {
          const admitted = [...tasksOn(gpu)].filter((task) => !before.get(gpu)?.has(task))
          if (admitted.length === 0) continue
          const isNew = admitted.some((task) => task.placement !== null)
          const seats = gpu.placements.length + gpu.pendingClaimants.length
          expect(seats, nameOf(gpu)).toBeLessThanOrEqual(b.cluster.policy.maxTasksPerGpu)
          expect(gpu.exclusiveTask === null || seats === 1, nameOf(gpu)).toBe(true)
          const hasNoswap = admitted.some((task) => task.spec.noswap === 1 && task.spec.gpuMode === 'shared')
          if (hasNoswap && !hasGrown)
            expect(gpu.largestSwappableMib, nameOf(gpu)).toBeLessThanOrEqual(capacityForSwappableMib(gpu))
          if (!hasNoswap && !hasGrown)
            expect(gpu.noswapMib + gpu.swappableMib, nameOf(gpu)).toBeLessThanOrEqual(gpu.limitMib)
          if (isNew)
            expect(gpu.noswapResidentMib + gpu.swappableResidentMib, nameOf(gpu)).toBeLessThanOrEqual(
              gpu.capacityMib,
            )
        }
      }
    })
    holds(property, 100, FILE)
  })

  it('never exceeds host memory because of an admission', () => {
    const property = fc.property(fleetShapeArb, stepsArb(MAX_STEPS), (fleet, steps) => {
      const b = buildFleet(fleet)
      for (const step of steps) {
        applyStep(b, step)
        const before = new Map([...b.cluster.nodes.values()].map((node) => [node, node.hostPromisedMib]))
        const events = b.cycle()
        if (events.some((event) => event.kind === 'growth_granted')) continue
        for (const [node, promisedMib] of before) {
          expect(node.hostPromisedMib, node.id).toBeLessThanOrEqual(Math.max(promisedMib, node.hostSwapMib))
        }
      }
    })
    holds(property, 400, FILE)
  })
})

describe('a scheduling cycle', () => {
  it('decides everything possible: a second cycle in the same instant decides nothing', () => {
    const property = fc.property(fleetShapeArb, stepsArb(MAX_STEPS), (fleet, steps) => {
      const b = buildFleet(fleet)
      for (const step of steps) {
        applyStep(b, step)
        b.cycle()
        expect(b.cycle()).toEqual([])
      }
    })
    holds(property, 250, FILE)
  })
})

describe('an ordered index', () => {
  it('answers like a sorted list', () => {
    interface Item {
      readonly id: string
    }
    const action = fc.record({
      item: fc.nat(400),
      key1: fc.integer({ min: -3, max: 3 }),
      key2: fc.integer({ min: 0, max: 2 }),
      value: fc.integer({ min: -5, max: 5 }),
      isRemoval: fc.constantFrom(false, false, false, true),
    })
    const property = fc.property(
      fc.array(action, { maxLength: 1200, size: 'max' }),
      fc.integer({ min: -5, max: 6 }),
      (actions, asked) => {
        const index = new OrderedIndex<Item>((a, b) => byCodeUnits(a.id, b.id))
        const entries = new Map<number, IndexEntry<Item>>()
        const present = new Set<IndexEntry<Item>>()
        for (const [at, { item, key1, key2, value, isRemoval }] of actions.entries()) {
          const entry = entries.get(item) ?? newIndexEntry({ id: `i${item}` })
          entries.set(item, entry)
          if (isRemoval) {
            index.remove(entry)
            present.delete(entry)
          } else {
            index.set(entry, key1, key2, value)
            present.add(entry)
          }
          expect(index.size).toBe(present.size)
          expect(index.maxValue()).toBe(Math.max(-Infinity, ...[...present].map((each) => each.value)))
          if (at % 50 !== 0 && at !== actions.length - 1) continue
          const list = [...present].sort(
            (a, b) => a.key1 - b.key1 || a.key2 - b.key2 || byCodeUnits(a.item.id, b.item.id),
          )
          expect([...index.entries()]).toEqual(list)
          const fitting = list.filter((each) => each.value >= asked)
          expect(index.firstAtLeast(asked)).toBe(fitting[0] ?? null)
          expect(index.firstFrom(0, asked)).toBe(fitting.find((each) => each.key1 >= 0) ?? null)
          for (const each of list) {
            const isBefore = (other: IndexEntry<Item>) =>
              other.key1 < each.key1 || (other.key1 === each.key1 && other.key2 < each.key2)
            expect(index.countBelow(each.key1, each.key2, asked)).toBe(fitting.filter(isBefore).length)
          }
          for (const [i, each] of fitting.entries())
            expect(index.nextAtLeast(each, asked)).toBe(fitting[i + 1] ?? null)
        }
      },
    )
    holds(property, 15, FILE)
  })
})

describe('the member table of a pool, with one order for several values', () => {
  it('answers like a sorted list for every ranking, after any inserts, moves and removals', () => {
    const action = fc.record({
      item: fc.integer({ min: 0, max: 400 }),
      key1: fc.integer({ min: -3, max: 3 }),
      key2: fc.integer({ min: 0, max: 2 }),
      values: fc.tuple(fc.integer({ min: -5, max: 5 }), fc.integer({ min: 0, max: 1 })),
      isRemoval: fc.constantFrom(false, false, false, true),
    })
    type Row = {
      readonly item: number
      readonly key1: number
      readonly key2: number
      readonly values: readonly [number, number]
    }
    const property = fc.property(
      fc.array(action, { maxLength: 1200, size: 'max' }),
      fc.integer({ min: -5, max: 6 }),
      (actions, asked) => {
        const table = new OrderedTable(2, (a, b) => b - a)
        const rows = new Map<number, Row>()
        for (const [at, { isRemoval, ...row }] of actions.entries()) {
          if (isRemoval) {
            table.remove(row.item)
            rows.delete(row.item)
          } else {
            table.set(row.item, row.key1, row.key2, Float64Array.from(row.values))
            rows.set(row.item, row)
          }
          const isLookedAtClosely = at % 50 === 0 || at === actions.length - 1
          const list = isLookedAtClosely
            ? [...rows.values()].sort((a, b) => a.key1 - b.key1 || a.key2 - b.key2 || b.item - a.item)
            : []
          for (const lane of [0, 1] as const) {
            if (at % 7 === 0)
              expect(table.maxValue(lane)).toBe(
                Math.max(-Infinity, ...[...rows.values()].map(({ values }) => values[lane])),
              )
            if (!isLookedAtClosely) continue
            const fitting = list.filter(({ values }) => values[lane] >= asked).map(({ item }) => item)
            expect(table.firstAtLeast(lane, asked)).toBe(fitting[0] ?? -1)
            for (const [i, item] of fitting.entries())
              expect(table.nextAtLeast(lane, item, asked)).toBe(fitting[i + 1] ?? -1)
          }
        }
      },
    )
    holds(property, 15, FILE)
  })
})

/**
 * GPUs where only figures decide: open to new tasks, without an exclusive task, and with a free task slot.
 */
function openGpus(b: ClusterBuilder): LiveGpu[] {
  return b.gpus.filter(
    (gpu) =>
      isPlaceable(gpu.node) &&
      gpu.exclusiveTask === null &&
      gpu.placements.length + gpu.pendingClaimants.length < MAX_TASKS_PER_GPU,
  )
}

/** Values where an answer may change, their neighbours, and distant values. */
function demandsAround(largestMib: number, gpu: LiveGpu): number[] {
  const edges = [largestMib, gpu.freeMib, capacityForSwappableMib(gpu), gpu.physicalMib - gpu.reserveMib, 1]
  return edges.flatMap((edge) => [edge - 1, edge, edge + 1]).filter((d) => d > 0)
}

/**
 * noswap: only VRAM of eligible tasks is missing (admit returns NO_PHYSICAL_FREE for both kinds of missing
 * VRAM).
 */
function isOnlyOccupied(gpu: LiveGpu, demandMib: number): boolean {
  return demandMib <= capacityForSwappableMib(gpu)
}

function nameOf(gpu: LiveGpu): string {
  return `GPU ${gpu.index} of ${gpu.node.id}`
}

/** Placed there, or pending and counted there. */
function tasksOn(gpu: LiveGpu): Set<LiveTask> {
  return new Set([...gpu.placements, ...gpu.pendingClaimants].map((each) => each.task))
}

function figuresOf(gpu: LiveGpu): ReturnType<typeof recomputed> {
  const {
    noswapMib,
    swappableMib,
    largestSwappableMib,
    noswapResidentMib,
    swappableResidentMib,
    movingOutMib,
    eligibleMib,
    eligibleP0Mib,
    freeMib,
  } = gpu
  return {
    noswapMib,
    swappableMib,
    largestSwappableMib,
    noswapResidentMib,
    swappableResidentMib,
    movingOutMib,
    eligibleMib,
    eligibleP0Mib,
    freeMib,
    eligible: new Set(gpu.eligible),
  }
}

function recomputed(gpu: LiveGpu) {
  const sum = <T>(items: readonly T[], mibOf: (item: T) => number) =>
    items.reduce((total, item) => total + mibOf(item), 0)
  const noswap = gpu.placements.filter((placement) => placement.noswap === 1)
  const swappable = gpu.placements.filter((placement) => placement.noswap === 0)
  const inVram = (placements: typeof noswap) =>
    sum(placements, (p) => (p.residency === 'swapped_out' ? 0 : p.demandMib))
  const claimed = (value: 0 | 1) =>
    gpu.pendingClaimants.filter((claim) => claim.task.spec.noswap === value).map((claim) => claim.needMib)
  const eligible = (isP0: boolean) =>
    sum(swappable, (p) => (p.isEligible && (p.task.spec.priority === 0) === isP0 ? p.demandMib : 0))
  const noswapResidentMib = inVram(noswap)
  const swappableResidentMib = inVram(swappable)
  const kept = sum(gpu.claimants, (owner) => Math.max(0, owner.needMib - movingOutForMib(gpu, owner)))
  return {
    noswapMib: sum(noswap, (p) => p.demandMib) + sum(claimed(1), (need) => need),
    swappableMib: sum(swappable, (p) => p.demandMib) + sum(claimed(0), (need) => need),
    largestSwappableMib: Math.max(0, ...swappable.map((p) => p.demandMib), ...claimed(0)),
    noswapResidentMib,
    swappableResidentMib,
    movingOutMib: sum(gpu.placements, (p) => (p.residency === 'swapping_out' ? p.demandMib : 0)),
    eligibleMib: eligible(false),
    eligibleP0Mib: eligible(true),
    freeMib: gpu.capacityMib - noswapResidentMib - swappableResidentMib - kept,
    eligible: new Set(gpu.placements.filter(({ isEligible }) => isEligible)),
  }
}

function recomputedHost(node: LiveNode) {
  const hostPromisedMib = node.gpus.reduce(
    (sum, gpu) => sum + (gpu.noswapMib + gpu.swappableMib > gpu.capacityMib ? gpu.swappableMib : 0),
    0,
  )
  const hostUsedMib = node.gpus.reduce(
    (sum, gpu) =>
      sum + gpu.placements.reduce((total, p) => total + (isInHost(p.residency) ? p.demandMib : 0), 0),
    0,
  )
  return { hostUsedMib, hostPromisedMib }
}
