/** A model of tasks from the recent past, and the work that is drawn from it. */
import { describe, expect, it } from 'vitest'
import { DEFAULT_CONFIG } from '../../controller/model/config.ts'
import type { ClusterSnapshot, RecentPast } from '../../controller/ports/twin.ts'
import type { TaskRecord } from '../../controller/ports/store.ts'
import { seededStream } from '../../simulator/kernel/seeded-random.ts'
import type { Work } from '../../simulator/trace/trace-format.ts'
import { drawArrivals } from '../../simulator/twin/draw-arrivals.ts'
import { drawActivity, drawWorkLeft, guessWorkLeft } from '../../simulator/twin/draw-work.ts'
import { snapshotOfLive } from '../../simulator/twin/live-snapshot.ts'
import { Residence } from '../../simulator/twin/residence.ts'
import {
  aloneMsSoFar,
  isModel,
  wantsShareOf,
  workloadModelOf,
  type WorkloadModel,
} from '../../simulator/twin/workload-model.ts'
import { aFinalTask, aNode, aRunningTask, aTask } from '../support/store-builders.ts'

const AT = 1_770_000_000_000
const HOUR_MS = 3_600_000

describe('the residence of tasks', () => {
  it('is the product-limit estimate: running tasks count until now', () => {
    // Ends at 10, 20 and 40, one still running at 30: the shares that stay longer are 3/4, 1/2, 0.
    const residence = new Residence([
      { ms: 40, hasEnded: true },
      { ms: 10, hasEnded: true },
      { ms: 30, hasEnded: false },
      { ms: 20, hasEnded: true },
    ])
    const drawn = (u: number, age = 0): number => residence.drawLeft(age, () => u)
    expect([drawn(0.9), drawn(0.75), drawn(0.6), drawn(0.5), drawn(0.4), drawn(0)]).toEqual([
      10, 10, 20, 20, 40, 40,
    ])
    expect([drawn(0.9, 10), drawn(0.6, 10), drawn(0.3, 25)]).toEqual([10, 30, 15])
    expect(residence.medianLeft(0)).toBe(20)
    expect(residence).toMatchObject({ ends: 3, meanMs: 100 / 3 })
  })

  it('continues for some time if a task is older than all that ended', () => {
    const residence = new Residence([{ ms: 1000, hasEnded: true }])
    const random = seededStream(1, 'tail')
    const drawn = Array.from({ length: 2000 }, () => residence.drawLeft(5000, random))
    expect(Math.min(...drawn)).toBeGreaterThanOrEqual(1)
    expect(drawn.reduce((sum, each) => sum + each, 0) / drawn.length).toBeCloseTo(1000, -2)
  })
})

describe('a workload model', () => {
  it('needs at least ten ended tasks, and says so', () => {
    expect(workloadModelOf(imageOf([]), pastOf(endedTasks(9)))).toEqual({
      reason: 'NO_HISTORY',
      detail:
        'only 9 tasks have run and ended in the last 2 hours; the twin needs 10 to know how long tasks stay',
    })
  })

  it.each([
    [0, 3 * 60_000, 'no task has run and ended in the last 3 minutes; '],
    [1, 60_000, 'only 1 task has run and ended in the last minute; '],
    [2, 1, 'only 2 tasks have run and ended in the last minute; '],
  ])('names %i ended tasks of %i ms in a sentence', (tasks, ms, words) => {
    const past = pastOf(endedTasks(tasks))
    expect(workloadModelOf(imageOf([]), { ...past, from: past.to - ms })).toMatchObject({
      detail: expect.stringContaining(words) as string,
    })
  })

  it('counts arrivals, residence without waits, and the share that wanted the GPU', () => {
    const model = modelOf()
    expect(model.perHour).toBe(11)
    expect(model.assumes[0]).toBe(
      'residences follow the 20 tasks that ended in the last 2 hours, given how long each has been there',
    )
    const [first] = endedTasks(1)
    // 30 minutes of residence: 10 of them swapped out while it wanted the GPU, 5 served.
    const waits = [0, 300_000_000, 0, 600_000_000, 0] as const
    const record = aFinalTask({
      ...first,
      gpuCount: 1,
      firstStartedAt: AT - 1_800_000,
      finishedAt: AT,
      counters: waits,
    })
    expect(aloneMsSoFar(record, AT)).toBe(1_200_000)
    expect(wantsShareOf(record, AT)).toBe(0.25)
    expect(wantsShareOf(aTask({}), AT)).toBeNull()
    expect(wantsShareOf(aRunningTask({ firstStartedAt: AT - 1000, finishedAt: null }), AT)).toBeNull()
  })

  it('draws work of the right length that continues the current state of the task', () => {
    const model = modelOf()
    const random = seededStream(1, 'work')
    for (let i = 0; i < 200; i++) {
      const work = drawActivity(
        model,
        5_000_000 + i,
        0.5,
        i % 2 === 0 ? null : { wantsGpu: false, forMs: 20_000 },
        random,
      )
      expect(lengthOf(work)).toBe(5_000_000 + i)
      if (work.kind === 'phases' && i % 2 === 1) expect(work.phases[0]?.[0]).toBe(0)
    }
    expect(drawActivity(model, 1000, 1, null, random)).toEqual({ kind: 'duration', ms: 1000 })
    expect(drawActivity(model, 1000, 0, { wantsGpu: false, forMs: 5 }, random)).toEqual({
      kind: 'phases',
      phases: [[0, 1000]],
    })
    const few = drawActivity(model, 100_000_000, 0.5, null, random, 3)
    expect(few.kind === 'phases' && few.phases.length).toBe(4)
    expect(lengthOf(few)).toBe(100_000_000)
    const unseen: WorkloadModel = { ...model, wanting: { ms: [], meanMs: 1 } }
    expect(drawActivity(unseen, 1000, 0.5, { wantsGpu: true, forMs: 5 }, random)).toEqual({
      kind: 'duration',
      ms: 1000,
    })
    expect(drawActivity(unseen, 1000, 0.5, { wantsGpu: false, forMs: 5 }, random)).toEqual({
      kind: 'phases',
      phases: [[0, 1000]],
    })
  })

  it('keeps the busy share of a task over many phases', () => {
    const random = seededStream(2, 'share')
    let [busy, all] = [0, 0]
    for (let i = 0; i < 300; i++) {
      const work = drawActivity(modelOf(), 10_000_000, 0.3, null, random)
      if (work.kind !== 'phases') throw new Error('phases')
      for (const [wants, idle] of work.phases) [busy, all] = [busy + wants, all + wants + idle]
    }
    expect(busy / all).toBeGreaterThan(0.27)
    expect(busy / all).toBeLessThan(0.33)
  })

  it('draws reproducibly, and a guess does not depend on the seed', () => {
    const model = modelOf()
    const task = aRunningTask({ id: 'x', gpuCount: 1, firstStartedAt: AT - HOUR_MS / 2, finishedAt: null })
    const draw = (seed: number): Work => drawWorkLeft(model, task, AT, seededStream(seed, 'x'))
    expect(draw(1)).toEqual(draw(1))
    expect(new Set([1, 2, 3, 4, 5, 6].map((seed) => lengthOf(draw(seed)))).size).toBeGreaterThan(1)
    expect(lengthOf(guessWorkLeft(model, task, AT, seededStream(1, 'x'), 8))).toBe(
      lengthOf(guessWorkLeft(model, task, AT, seededStream(9, 'x'), 8)),
    )
    const arrivals = drawArrivals(model, 20 * HOUR_MS, seededStream(4, 'arrivals'))
    expect(arrivals.length).toBeGreaterThan(150)
    expect(arrivals.length).toBeLessThan(300)
    expect(arrivals).toEqual(drawArrivals(model, 20 * HOUR_MS, seededStream(4, 'arrivals')))
    expect(arrivals.every(({ at }, i) => i === 0 || at > (arrivals[i - 1]?.at ?? 0))).toBe(true)
    expect(arrivals[0]?.request).toMatchObject({ id: 'twin-0', labels: {}, command: null })
  })

  it('without history yields a snapshot with a stated assumption', () => {
    const waits = aTask({ id: 'w', gpuCount: 1, submittedAt: AT, pendingSince: AT })
    const { description, snapshot } = snapshotOfLive(imageOf([waits]), pastOf([]))
    expect(description).toContain('it stays as long again as it has been there, an hour at least')
    expect([...snapshot.tasks][0]?.work).toEqual({ kind: 'duration', ms: HOUR_MS })
    expect(snapshotOfLive(imageOf([waits]), pastOf(endedTasks(20))).description).toContain(
      'residences follow the 20 tasks',
    )
  })
})

function modelOf(): WorkloadModel {
  const model = workloadModelOf(imageOf([running('a'), running('b')]), pastOf(endedTasks(20)))
  if (!isModel(model)) throw new Error(model.detail)
  return model
}

function running(id: string): TaskRecord {
  return aRunningTask({
    id,
    seq: 500,
    gpuCount: 1,
    submittedAt: AT - HOUR_MS,
    firstStartedAt: AT - HOUR_MS,
    finishedAt: null,
  })
}

function endedTasks(count: number): TaskRecord[] {
  return Array.from({ length: count }, (_, i) =>
    aFinalTask({
      id: `e${i}`,
      seq: i + 1,
      gpuCount: 1,
      submittedAt: AT - 2 * HOUR_MS + i,
      firstStartedAt: AT - 2 * HOUR_MS + i,
      finishedAt: AT - 2 * HOUR_MS + i + (i + 1) * 300_000,
      counters: [0, (i + 1) * 150_000_000, 0, 0, 0],
    }),
  )
}

function pastOf(ended: readonly TaskRecord[]): RecentPast {
  const runs = { wantingMs: [40_000, 20_000, 60_000, 30_000], idleMs: [100_000, 30_000, 300_000, 60_000] }
  return { from: AT - 2 * HOUR_MS, to: AT, ended, runs, speeds: [] }
}

function imageOf(tasks: readonly TaskRecord[]): ClusterSnapshot {
  return { at: AT, config: DEFAULT_CONFIG, nodes: [{ ...aNode(), status: 'up' }], groups: [], tasks }
}

function lengthOf(work: Work): number {
  if (work.kind === 'duration') return work.ms
  return work.kind === 'phases' ? work.phases.reduce((sum, [wants, idle]) => sum + wants + idle, 0) : NaN
}
