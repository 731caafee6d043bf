import { describe, expect, it } from 'vitest'
import { clusterCounters, gpuCounters } from '../../controller/query/live-views.ts'
import type { LiveGpu, LiveTask } from '../../controller/state/facts.ts'
import { recordOfTask } from '../../controller/state/records.ts'
import {
  assign,
  changeWants,
  setResidency,
  started,
} from '../../controller/engine/apply/lifecycle/transitions.ts'
import type { Counters } from '../../controller/metrics/counters.ts'
import { differenceOf, sumOf, ZERO_COUNTERS } from '../../controller/metrics/counters.ts'
import type { GpuMeter, Sharer } from '../../controller/metrics/meter.ts'
import { addSharer, newGpuMeter, removeSharer, settle } from '../../controller/metrics/meter.ts'
import { starvationPercent, utilizationPercent } from '../../controller/metrics/starvation.ts'
import { ClusterBuilder } from '../support/cluster-builder.ts'
import { readVectors } from '../support/vectors.ts'

type Interval = readonly [number, number]

/** Times in seconds; a task that is missing in every `on` waits for a placement. */
interface VectorTask {
  readonly id: string
  readonly gpu_count?: number
  readonly on: readonly string[]
  readonly wants: readonly Interval[]
  readonly placed: readonly Interval[]
  readonly resident: readonly Interval[]
}

interface VectorCase {
  readonly name: string
  readonly window: number
  readonly gpus: readonly string[]
  readonly tasks: readonly VectorTask[]
  readonly expect: {
    readonly utilization: Readonly<Record<string, number>>
    readonly cluster: {
      readonly starvation: number
      readonly queue: number
      readonly swap: number
      readonly compute: number
    }
    readonly tasks?: Readonly<Record<string, number>>
    readonly gpus?: Readonly<Record<string, number>>
  }
}

describe('utilization and starvation as in the vectors', () => {
  const { cases } = readVectors<{ cases: readonly VectorCase[] }>('starvation.json')

  it('has at least one case', () => {
    expect(cases.length).toBeGreaterThan(0)
  })

  for (const vector of cases) {
    it(`${vector.name}: by the meter alone`, () => {
      const { gpus, tasks, queueUs } = metered(vector)
      const meters = [...gpus.values()].map(countersOf)
      expectFigures(
        vector,
        sumOf([...meters, { ...ZERO_COUNTERS, demand: queueUs, queue: queueUs }]),
        tasks,
        gpus,
      )
    })

    it(`${vector.name}: by the engine's transitions`, () => {
      const { b, gpus, tasks } = enacted(vector)
      const byName = new Map([...tasks].map(([id, task]) => [id, countersOfTask(task)]))
      expectFigures(
        vector,
        clusterCounters(b.cluster, b.now),
        byName,
        new Map([...gpus].map(([id, gpu]) => [id, gpu.meter])),
      )
      for (const gpu of gpus.values()) expectExact(gpuCounters(gpu, b.now))
      for (const counters of byName.values()) expectExact(counters)
    })
  }
})

describe('a meter', () => {
  it('A meter splits each instant exactly, the remainder in order of submission', () => {
    const meter = newGpuMeter(0)
    const sharers = [3, 1, 2].map(newSharer)
    for (const sharer of sharers) addSharer(meter, sharer)
    settle(meter, 1)
    expect(
      meter.sharers.map((sharer) => [sharer.submissionNumber, sharer.servedUs, sharer.computeUs]),
    ).toEqual([
      [1, 334, 666],
      [2, 333, 667],
      [3, 333, 667],
    ])
    expect(meter).toMatchObject({ servedUs: 1000, computeUs: 2000, swapUs: 0 })
  })

  it('A meter counts absent tasks and sharing tasks, and serves only the latter', () => {
    const meter = newGpuMeter(0)
    meter.awayCount = 2
    settle(meter, 5)
    addSharer(meter, newSharer(1))
    settle(meter, 7)
    expect(meter).toMatchObject({ servedUs: 2000, swapUs: 14_000, computeUs: 0 })
  })

  it('A meter changes nothing when no time has passed, and no task that leaves twice', () => {
    const meter = newGpuMeter(4)
    const [staying, leaving] = [newSharer(1), newSharer(2)]
    for (const sharer of [staying, leaving]) addSharer(meter, sharer)
    settle(meter, 4)
    removeSharer(meter, leaving)
    removeSharer(meter, leaving)
    settle(meter, 5)
    expect([staying.servedUs, leaving.servedUs]).toEqual([1000, 0])
  })
})

describe('percentages', () => {
  it('Percentages are 0 when nothing was demanded', () => {
    expect(starvationPercent(ZERO_COUNTERS)).toEqual({ total: 0, queue: 0, swap: 0, compute: 0 })
  })

  it('Percentages cover the whole window and scope, and are unknown for an empty one', () => {
    const window = differenceOf({ ...ZERO_COUNTERS, busy: 3_000_000 }, { ...ZERO_COUNTERS, busy: 1_000_000 })
    expect(utilizationPercent(window, 4000, 2)).toBe(25)
    expect(utilizationPercent(window, 0, 2)).toBeNull()
    expect(utilizationPercent(window, 4000, 0)).toBeNull()
  })
})

/** Steps through the instants of changes and updates the meters, as the engine does. */
function metered({ window, gpus: names, tasks }: VectorCase): {
  gpus: Map<string, GpuMeter>
  tasks: Map<string, Counters>
  queueUs: number
} {
  const gpus = new Map(names.map((name) => [name, newGpuMeter(0)]))
  const sharers = new Map(tasks.map((task, index) => [task.id, newSharer(index + 1)]))
  const away = new Map(tasks.map((task) => [task.id, 0]))
  let queueUs = 0
  const instants = instantsOf(tasks, window)
  for (const [at, from] of instants.slice(0, -1).entries()) {
    const us = ((instants[at + 1] as number) - from) * 1_000_000
    for (const meter of gpus.values()) settle(meter, from * 1000)
    for (const task of tasks) {
      const isWanting = isWithin(task.wants, from)
      const isResident = isWithin(task.resident, from)
      if (isWanting && !isWithin(task.placed, from)) queueUs += us * (task.gpu_count ?? task.on.length)
      if (isAwayAt(task, from)) away.set(task.id, (away.get(task.id) ?? 0) + us * task.on.length)
      for (const meter of task.on.map((name) => gpus.get(name) as GpuMeter)) {
        removeSharer(meter, sharers.get(task.id) as Sharer)
        if (isWanting && isResident) addSharer(meter, sharers.get(task.id) as Sharer)
      }
    }
    for (const [name, meter] of gpus)
      meter.awayCount = tasks.filter((task) => task.on.includes(name) && isAwayAt(task, from)).length
  }
  for (const meter of gpus.values()) settle(meter, window * 1000)
  const counters = new Map(
    [...sharers].map(([id, { servedUs, computeUs }]) => {
      const swap = away.get(id) ?? 0
      return [
        id,
        { ...ZERO_COUNTERS, demand: servedUs + computeUs + swap, served: servedUs, compute: computeUs, swap },
      ]
    }),
  )
  return { gpus, tasks: counters, queueUs }
}

function isAwayAt(task: VectorTask, at: number): boolean {
  return isWithin(task.wants, at) && isWithin(task.placed, at) && !isWithin(task.resident, at)
}

function newSharer(submissionNumber: number): Sharer {
  return { submissionNumber, servedUs: 0, computeUs: 0 }
}

/**
 * Plays the same case as transitions of real tasks on a real cluster; no cycle runs, the case gives all
 * decisions.
 */
function enacted({ window, gpus: names, tasks: wanted }: VectorCase) {
  const b = new ClusterBuilder()
  const start = b.now
  const node = b.addNode({ id: 'n', gpus: names.map(() => 1000) })
  const gpus = new Map(names.map((name, index) => [name, node.gpus[index] as LiveGpu]))
  const tasks = new Map(
    wanted.map((task) => [
      task.id,
      b.submit({ id: task.id, vramMib: 10, gpuCount: task.gpu_count ?? task.on.length }),
    ]),
  )
  for (const at of instantsOf(wanted, window)) {
    b.now = start + at * 1000
    for (const each of wanted) enact(b, each, tasks.get(each.id) as LiveTask, gpus, at)
  }
  return { b, gpus, tasks }
}

function enact(
  b: ClusterBuilder,
  vector: VectorTask,
  task: LiveTask,
  gpus: Map<string, LiveGpu>,
  at: number,
): void {
  const { cluster, now } = b
  if (task.placement === null && isWithin(vector.placed, at)) {
    const on = vector.on.map((name) => gpus.get(name) as LiveGpu)
    assign(cluster, task, on, 'now', now)
    if (task.placement !== null) started(cluster, task.placement, false, now)
  }
  const { placement } = task
  if (placement === null) return
  changeWants(cluster, placement, isWithin(vector.wants, at), 0, now)
  const isResident = isWithin(vector.resident, at)
  for (const step of isResident
    ? (['swapping_in', 'resident'] as const)
    : (['swapping_out', 'swapped_out'] as const)) {
    if ((placement.residency === 'resident') !== isResident) setResidency(cluster, placement, step, null, now)
  }
  if (!isResident && placement.residency === 'swapping_out')
    setResidency(cluster, placement, 'swapped_out', null, now)
}

function countersOfTask(task: LiveTask): Counters {
  const [demand, served, queue, swap, compute] = recordOfTask(task).counters
  return { demand, served, queue, swap, compute, busy: served }
}

function expectFigures(
  { expect: expected, window }: VectorCase,
  cluster: Counters,
  tasks: ReadonlyMap<string, Counters>,
  meters: ReadonlyMap<string, GpuMeter>,
): void {
  expectExact(cluster)
  const { total, queue, swap, compute } = starvationPercent(cluster)
  const { cluster: wanted } = expected
  expect([total, queue, swap, compute].map(rounded)).toEqual([
    wanted.starvation,
    wanted.queue,
    wanted.swap,
    wanted.compute,
  ])
  for (const [id, percent] of Object.entries(expected.utilization)) {
    expect(
      rounded(utilizationPercent(countersOf(meters.get(id) as GpuMeter), window * 1000, 1) ?? NaN),
      id,
    ).toBe(percent)
  }
  for (const [id, percent] of Object.entries(expected.tasks ?? {}))
    expect(rounded(starvationPercent(tasks.get(id) as Counters).total), id).toBe(percent)
  for (const [id, percent] of Object.entries(expected.gpus ?? {})) {
    expect(rounded(starvationPercent(countersOf(meters.get(id) as GpuMeter)).total), id).toBe(percent)
  }
}

/** No remainder is lost. */
function expectExact({ demand, served, queue, swap, compute }: Counters): void {
  expect(demand).toBe(served + queue + swap + compute)
  for (const figure of [served, queue, swap, compute])
    expect(Number.isSafeInteger(figure) && figure >= 0).toBe(true)
}

function countersOf({ servedUs: served, swapUs: swap, computeUs: compute }: GpuMeter): Counters {
  return { demand: served + swap + compute, served, queue: 0, swap, compute, busy: served }
}

/** Every instant at which something begins or ends, including the ends of the window. */
function instantsOf(tasks: readonly VectorTask[], window: number): readonly number[] {
  const edges = tasks.flatMap(({ wants, placed, resident }) => [...wants, ...placed, ...resident].flat())
  return [...new Set([0, ...edges, window])].sort((a, b) => a - b)
}

function isWithin(intervals: readonly Interval[], at: number): boolean {
  return intervals.some(([from, to]) => from <= at && at < to)
}

function rounded(percent: number): number {
  return Math.round(percent * 100) / 100
}
