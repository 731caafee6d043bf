import fc from 'fast-check'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type ArrivalSource, drainArrivals, makeSource } from '../../simulator/scenario/arrivals.ts'
import { workloadOf } from '../../simulator/scenario/generate.ts'
import { loadScenario } from '../../simulator/scenario/load.ts'
import { mergeArrivals } from '../../simulator/scenario/merge-arrivals.ts'
import type { SimTask } from '../../simulator/scenario/scenario.ts'
import { createSeededRandom } from '../../simulator/kernel/seeded-random.ts'
import { TraceError } from '../../simulator/trace/trace-error.ts'
import type { Work } from '../../simulator/trace/trace-format.ts'
import { aloneMsOf } from '../../simulator/trace/work.ts'

const HEAD = 'scenario: x\nversion: 1\nfleet: [{ name: a, gpu: { vram_mib: 40960 } }]\n'
const POISSON = 'generate: poisson, rate_per_hour: 120, until: 10h'

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'scenario-'))
})
afterAll(() => rmSync(folder, { recursive: true }))

function sourceOf(items: readonly string[], seed = 1): ArrivalSource {
  const text = `${HEAD}workload:\n${items.map((item) => `  - { ${item} }\n`).join('')}`
  return workloadOf(loadScenario({ text, baseDir: folder }).scenario, createSeededRandom(seed))
}

async function drain(source: ArrivalSource): Promise<SimTask[]> {
  const tasks: SimTask[] = []
  for await (const task of drainArrivals(source)) tasks.push(task)
  return tasks
}

async function tasksOf(items: readonly string[], seed = 1): Promise<SimTask[]> {
  return drain(sourceOf(items, seed))
}

function made(tasks: readonly SimTask[], name: string): SimTask[] {
  return tasks.filter((task) => task.request.id.startsWith(`${name}-`))
}

function share(tasks: readonly SimTask[], test: (task: SimTask) => boolean): number {
  return tasks.filter(test).length / tasks.length
}

function writeTrace(name: string, tasks: readonly object[]): void {
  const header = { trace: name, version: 1, t_unit: 'ms' }
  writeFileSync(join(folder, name), [header, ...tasks].map((line) => `${JSON.stringify(line)}\n`).join(''))
}

function traceTask(id: string, at: number, fields: object = {}): object {
  return { id, at, gpus: 1, vram_mib: 100, work: { kind: 'duration', ms: 5 }, ...fields }
}

describe('generated tasks', () => {
  const RICH =
    `${POISSON}, gpus: { 1: 0.8, 2: 0.2 }, vram_mib: { lognormal: { median: 23000, sigma: 0.3 } }, ` +
    'duration: { lognormal: { median: 30m, sigma: 1 } }, activity: serving, priority: { 0: 1, 2: 3 }, ' +
    'noswap: 0.25'

  it('are equal for equal seeds, and different for different seeds', async () => {
    const tasks = await tasksOf([RICH])
    expect(await tasksOf([RICH])).toEqual(tasks)
    expect(await tasksOf([RICH], 2)).not.toEqual(tasks)
    expect(tasks[0]).toMatchObject({
      request: { id: 'g0-0', groups: [], owner: null },
      work: { kind: 'phases' },
      allocSteps: [],
      cancelAt: null,
    })
  })

  it('keep these numbers in every version', async () => {
    const first = (await tasksOf([RICH])).slice(0, 2)
    expect(
      first.map(({ at, request: { id, vramMib, gpuCount, priority, noswap } }) => [
        at,
        id,
        vramMib,
        gpuCount,
        priority,
        noswap,
      ]),
    ).toEqual([
      [31_874, 'g0-0', 26_519, 2, 2, 0],
      [39_343, 'g0-1', 15_334, 1, 2, 1],
    ])
  })

  it('arrive at the given rate, within the time range, in order, with consecutive ids', async () => {
    const tasks = await tasksOf([`generate: poisson, rate_per_hour: 1000, from: 1h, until: 11h, vram_mib: 1`])
    expect(tasks.length).toBeGreaterThan(9700)
    expect(tasks.length).toBeLessThan(10_300)
    expect(tasks.map((task) => task.request.id)).toEqual(tasks.map((_, i) => `g0-${i}`))
    expect(tasks.every((task, i) => i === 0 || task.at >= tasks[i - 1]!.at)).toBe(true)
    expect(tasks[0]!.at).toBeGreaterThanOrEqual(3_600_000)
    expect(tasks.at(-1)!.at).toBeLessThan(39_600_000)
  })

  it('end after their count', async () => {
    expect(await tasksOf(['generate: poisson, rate_per_hour: 1, count: 7, vram_mib: 1'])).toHaveLength(7)
  })

  it('have the requested properties', async () => {
    const tasks = await tasksOf([`${RICH.replace('120', '1000')}, groups: [g], owner: me`])
    expect(share(tasks, (task) => task.request.gpuCount === 2)).toBeCloseTo(0.2, 1)
    expect(share(tasks, (task) => task.request.priority === 0)).toBeCloseTo(0.25, 1)
    expect(share(tasks, (task) => task.request.noswap === 1)).toBeCloseTo(0.25, 1)
    expect(share(tasks, (task) => task.request.vramMib! < 23_000)).toBeCloseTo(0.5, 1)
    expect(
      tasks.every(({ request }) => Number.isInteger(request.vramMib) && request.vramMib! <= 38_912),
    ).toBe(true)
    expect(tasks.every(({ request }) => request.groups[0] === 'g' && request.owner === 'me')).toBe(true)
  })

  it.each([
    ['vram_mib: { uniform: { min: 5, max: 7 } }', [5, 6, 7]],
    ['vram_mib: { choice: { 20000: 1, 10000: 2 } }', [10_000, 20_000]],
    ['vram_mib: 8Gi', [8192]],
    ['gpu_mode: exclusive', [null]],
    ['vram_mib: { lognormal: { median: 5, sigma: 5, min: 4, max: 6 } }', [4, 5, 6]],
  ])('with { %s } have the VRAM %j', async (vram, values) => {
    const tasks = await tasksOf([`${POISSON}, ${vram}`])
    expect([...new Set(tasks.map((task) => task.request.vramMib))].toSorted((a, b) => a! - b!)).toEqual(
      values,
    )
  })

  it.each([
    ['10m', 600_000, 600_000],
    ['{ uniform: { min: 1s, max: 2s } }', 1000, 2000],
    ['{ exponential: { mean: 10m } }', 1, 20_000_000],
  ])('with duration %s last within its bounds', async (duration, leastMs, mostMs) => {
    const tasks = await tasksOf([`${POISSON}, vram_mib: 1, duration: ${duration}`])
    const times = tasks.map(({ work }) => (work.kind === 'duration' ? work.ms : Number.NaN))
    expect(times.every((ms) => Number.isInteger(ms) && ms >= leastMs && ms <= mostMs)).toBe(true)
  })

  it('are never or always noswap with probability 0 or 1', async () => {
    expect(share(await tasksOf([`${POISSON}, vram_mib: 1`]), (task) => task.request.noswap === 1)).toBe(0)
    expect(
      share(await tasksOf([`${POISSON}, vram_mib: 1, noswap: 1`]), (task) => task.request.noswap === 1),
    ).toBe(1)
  })

  it('are generated one by one', () => {
    const source = sourceOf(['generate: poisson, rate_per_hour: 1000000, count: 10000000, vram_mib: 1'])
    expect(source.needsFill).toBe(false)
    for (let i = 0; i < 1000; i++) expect(source.next()!.request.id).toBe(`g0-${i}`)
  })
})

describe('random streams', () => {
  const A =
    `${POISSON}, name: a, vram_mib: { uniform: { min: 1, max: 1000 } }, duration: { exponential: { ` +
    'mean: 1h } }, priority: { 0: 1, 2: 1 }'
  const B = `${POISSON}, name: b, vram_mib: { uniform: { min: 1, max: 1000 } }`

  it('of one item do not depend on other items', async () => {
    const alone = await tasksOf([A])
    expect(made(await tasksOf([A, B]), 'a')).toEqual(alone)
    expect(
      made(await tasksOf([B, 'task: { id: t, vram_mib: 1, run: 9h, activity: serving }', A]), 'a'),
    ).toEqual(alone)
    expect(made(await tasksOf([A, `${B}, noswap: 0.5`.replace('120', '7')]), 'a')).toEqual(alone)
  })

  it('of one property do not depend on other properties', async () => {
    const before = await tasksOf([A])
    const after = await tasksOf([
      `${A}, noswap: 0.5, gpus: { 1: 1, 2: 1 }, activity: serving`.replace(
        '{ 0: 1, 2: 1 }',
        '{ 1: 1, 3: 1 }',
      ),
    ])
    expect(after.map(({ at, request }) => [at, request.vramMib])).toEqual(
      before.map(({ at, request }) => [at, request.vramMib]),
    )
    const residences = after.map(({ work }) =>
      work.kind === 'phases' ? work.phases.reduce((ms, phase) => ms + phase[0] + phase[1], 0) : Number.NaN,
    )
    expect(residences).toEqual(before.map(({ work }) => (work.kind === 'duration' ? work.ms : Number.NaN)))
  })

  it('of a task item depend on its id', async () => {
    const task = (id: string): string => `task: { id: ${id}, vram_mib: 1, run: 100h, activity: serving }`
    const [a, b] = await tasksOf([task('a'), task('b')])
    const [b2, a2] = await tasksOf([task('b'), task('a')])
    expect(a2).toEqual(a)
    expect(b2).toEqual(b)
    expect(a!.work).not.toEqual(b!.work)
  })
})

describe('arrivals', () => {
  it('are merged by time, then by the order of the list', async () => {
    writeTrace('merge.jsonl', [traceTask('x', 600_000), traceTask('y', 600_000), traceTask('z', 700_000)])
    const tasks = await tasksOf([
      'task: { id: late, at: 20m, vram_mib: 1 }',
      'task: { id: first, at: 10m, vram_mib: 1 }',
      'trace: merge.jsonl',
      'task: { id: last, at: 10m, vram_mib: 1 }',
      'task: { id: zero, vram_mib: 1, cancel_at: 5s }',
    ])
    expect(tasks.map((task) => task.request.id)).toEqual(['zero', 'first', 'x', 'y', 'last', 'z', 'late'])
    expect(tasks[0]).toEqual({
      at: 0,
      request: {
        id: 'zero',
        name: null,
        vramMib: 1,
        gpuCount: 1,
        gpuMode: 'shared',
        noswap: 0,
        priority: 2,
        groups: [],
        labels: {},
        owner: null,
        command: null,
        maxRuntimeSeconds: null,
        onNodeLoss: 'wait',
      },
      work: { kind: 'duration', ms: 3_600_000 },
      allocSteps: [],
      cancelAt: 5000,
    })
  })

  it('are empty for an empty workload', async () => expect(await drain(mergeArrivals([]))).toEqual([]))

  it('are merged like a stable sort', () => {
    const task = (at: number, id: string): SimTask => ({ at, request: { id } }) as SimTask
    fc.assert(
      fc.property(fc.array(fc.array(fc.nat(20)), { maxLength: 12 }), (lists) => {
        const sorted = lists.map((times, s) =>
          times.toSorted((a, b) => a - b).map((at, i) => task(at, `${s}-${i}`)),
        )
        const merged = mergeArrivals(
          sorted.map((tasks) =>
            makeSource(
              (
                (i) => () =>
                  tasks[i++] ?? null
              )(0),
            ),
          ),
        )
        const taken: SimTask[] = []
        for (let next = merged.next(); next !== null; next = merged.next()) taken.push(next)
        expect(taken).toEqual(sorted.flat().toSorted((a, b) => a.at - b.at))
        expect(merged.next()).toBeNull()
      }),
    )
  })
})

describe('a trace', () => {
  it('has all fields of its tasks', async () => {
    const work = { kind: 'bursts', at: [[5, 1]], stayMs: 9 }
    const fields = {
      gpus: 2,
      vram_mib: 7,
      priority: 0,
      noswap: 1,
      groups: ['g'],
      owner: 'me',
      work,
      alloc: [[1, 9]],
      cancel_at: 77,
    }
    writeTrace('all.jsonl', [
      traceTask('a b', 5, fields),
      traceTask('e', 6, { vram_mib: 0, gpu_mode: 'exclusive' }),
    ])
    const [first, second] = await tasksOf(['trace: all.jsonl'])
    expect(first).toEqual({
      at: 5,
      request: {
        id: 'a b',
        name: null,
        vramMib: 7,
        gpuCount: 2,
        gpuMode: 'shared',
        noswap: 1,
        priority: 0,
        groups: ['g'],
        labels: {},
        owner: 'me',
        command: null,
        maxRuntimeSeconds: null,
        onNodeLoss: 'wait',
      },
      work,
      allocSteps: [[1, 9]],
      cancelAt: 77,
    })
    expect(second).toMatchObject({ request: { vramMib: null, gpuMode: 'exclusive' } })
  })

  const many = Array.from({ length: 2000 }, (_, i) => traceTask(`t${i}`, i * 1000, { gpus: 1 + (i % 4) }))

  it('is cut, filtered and scaled in time', async () => {
    writeTrace('many.jsonl', many)
    const tasks = await tasksOf(['trace: many.jsonl, from: 100s, to: 1000s, max_gpus: 2, time_scale: 0.01'])
    expect(tasks).toHaveLength(450)
    expect(tasks[0]).toMatchObject({ at: 0, request: { id: 't100' } })
    expect(tasks.at(-1)).toMatchObject({ at: 8970, request: { id: 't997' } })
  })

  it('is sampled by seed and item, and a smaller sample is part of a larger one', async () => {
    writeTrace('many.jsonl', many)
    const idsOf = async (sample: number, seed: number): Promise<string[]> =>
      (await tasksOf([`trace: many.jsonl, name: m, sample: ${sample}`], seed)).map((task) => task.request.id)
    const fifth = await idsOf(0.2, 1)
    expect(fifth.length).toBeGreaterThan(300)
    expect(fifth.length).toBeLessThan(500)
    expect(await idsOf(0.2, 1)).toEqual(fifth)
    expect(await idsOf(0.2, 2)).not.toEqual(fifth)
    expect(await idsOf(0.5, 1)).toEqual(expect.arrayContaining(fifth))
  })

  it('gets different activity times for each seed on request, for the same tasks', async () => {
    const work = { kind: 'duration', ms: 36_000_000 }
    writeTrace(
      'works.jsonl',
      Array.from({ length: 40 }, (_, i) => traceTask(`w${i}`, i * 1000, { gpus: 1 + (i % 4), work })),
    )
    const [asItIs, one, again, other] = await Promise.all([
      tasksOf(['trace: works.jsonl, max_gpus: 1']),
      tasksOf(['trace: works.jsonl, max_gpus: 1, activity: training'], 1),
      tasksOf(['trace: works.jsonl, activity: training'], 1),
      tasksOf(['trace: works.jsonl, max_gpus: 1, activity: training'], 2),
    ])
    const worksOf = (tasks: readonly SimTask[]): ReadonlyMap<string, Work> =>
      new Map(tasks.map((task) => [task.request.id, task.work]))
    const [before, first, all, second] = [asItIs, one, again, other].map(worksOf) as [
      ReadonlyMap<string, Work>,
      ReadonlyMap<string, Work>,
      ReadonlyMap<string, Work>,
      ReadonlyMap<string, Work>,
    ]
    expect([...first.keys()]).toEqual([...before.keys()])
    for (const [id, work] of first) {
      expect(aloneMsOf(work)).toBe(aloneMsOf(before.get(id) as Work))
      expect(all.get(id)).toEqual(work)
    }
    expect(second).not.toEqual(first)
  })

  it('prefixes its ids with its name only next to another trace', async () => {
    writeTrace('one.jsonl', [traceTask('a', 0)])
    expect((await tasksOf(['trace: one.jsonl'])).map((task) => task.request.id)).toEqual(['a'])
    const two = await tasksOf(['trace: one.jsonl, name: left', 'trace: one.jsonl'])
    expect(two.map((task) => task.request.id)).toEqual(['left-a', 't1-a'])
  })

  it('is read between tasks, not once per task', async () => {
    const long = 'x'.repeat(200)
    writeTrace(
      'long.jsonl',
      Array.from({ length: 100_000 }, (_, i) => traceTask(`t${i}`, i, { owner: long })),
    )
    const source = sourceOf(['trace: long.jsonl', 'task: { id: late, at: 1d, vram_mib: 1 }'])
    expect(() => source.next()).toThrow('have to be filled')
    let [fills, tasks] = [0, 0]
    for (;;) {
      if (source.needsFill) {
        fills++
        await source.fill()
      }
      if (source.next() === null) break
      tasks++
    }
    expect(tasks).toBe(100_001)
    expect(fills).toBeGreaterThan(1)
    expect(fills).toBeLessThan(5)
    expect(source.needsFill).toBe(false)
  })

  it('can be closed early', async () => {
    writeTrace('many.jsonl', many)
    const unread = sourceOf(['trace: many.jsonl'])
    await unread.close()
    expect(unread.next()).toBeNull()
    const begun = sourceOf(['trace: many.jsonl', 'trace: many.jsonl'])
    await begun.fill()
    await begun.close()
    await begun.fill()
  })

  it('is refused for an id that another item has', async () => {
    writeTrace('clash.jsonl', [traceTask('a', 0), traceTask('g1-3', 1)])
    await expect(tasksOf(['trace: clash.jsonl', 'task: { id: a, vram_mib: 1 }'])).rejects.toThrow(
      /clash\.jsonl: id: a is the ID of a task of the workload/,
    )
    await expect(tasksOf(['trace: clash.jsonl', `${POISSON}, vram_mib: 1`])).rejects.toThrow(
      /g1-3 is an ID that the generated tasks of g1 have/,
    )
    await expect(
      tasksOf(['trace: clash.jsonl', `${POISSON}, name: other, vram_mib: 1`]),
    ).resolves.toBeDefined()
  })

  it('is refused for an invalid line', async () => {
    writeTrace('broken.jsonl', [traceTask('a', 0), { id: 'b' }])
    await expect(tasksOf(['trace: broken.jsonl'])).rejects.toThrow(TraceError)
    await expect(tasksOf(['trace: broken.jsonl'])).rejects.toThrow(/broken\.jsonl:3/)
  })
})
