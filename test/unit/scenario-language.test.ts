/**
 * Less common features of the scenario language: arrivals by hour and in batches, custom activity
 * distributions, operators that check answers.
 */
import { describe, expect, it } from 'vitest'
import { missingIn } from '../../simulator/run/answer-check.ts'
import { drainArrivals } from '../../simulator/scenario/arrivals.ts'
import { workloadOf } from '../../simulator/scenario/generate.ts'
import { loadScenario } from '../../simulator/scenario/load.ts'
import { namesIn, withIds } from '../../simulator/scenario/placeholders.ts'
import { ScenarioError } from '../../simulator/document/problem.ts'
import type { Scenario, SimTask } from '../../simulator/scenario/scenario.ts'
import { createSeededRandom } from '../../simulator/kernel/seeded-random.ts'

const HEAD =
  'scenario: x\nversion: 1\nfleet: [{ count: 2, name: "n{i}", gpus: 2, gpu: { vram_mib: 40960 } }]\n'
const HOUR_MS = 3_600_000

function load(rest: string, head = HEAD): Scenario {
  return loadScenario({ text: `${head}${rest}\n`, baseDir: '/nowhere' }).scenario
}

function problemOf(rest: string, head = HEAD): string {
  try {
    load(rest, head)
  } catch (error) {
    if (error instanceof ScenarioError) return error.message.replace('(text):', '')
    throw error
  }
  throw new Error('the scenario was taken')
}

async function tasksOf(item: string, clock = ''): Promise<SimTask[]> {
  const tasks: SimTask[] = []
  for await (const task of drainArrivals(
    workloadOf(load(`${clock}workload: [{ ${item} }]`), createSeededRandom(1)),
  ))
    tasks.push(task)
  return tasks
}

const atHours = (tasks: readonly SimTask[]): number[] => tasks.map(({ at }) => at / HOUR_MS)

describe('generated tasks', () => {
  it('arrive at equal intervals', async () => {
    const tasks = await tasksOf('generate: regular, rate_per_hour: 2, from: 1h, until: 3h, vram_mib: 1')
    expect(atHours(tasks)).toEqual([1.5, 2, 2.5])
  })

  it('arrive in batches', async () => {
    const tasks = await tasksOf('generate: regular, rate_per_hour: 1, until: 150m, vram_mib: 1, batch: 3')
    expect(atHours(tasks)).toEqual([1, 1, 1, 2, 2, 2])
    expect(tasks.map(({ request }) => request.id)).toEqual(['g0-0', 'g0-1', 'g0-2', 'g0-3', 'g0-4', 'g0-5'])
    expect(
      await tasksOf('generate: regular, rate_per_hour: 1, count: 4, vram_mib: 1, batch: 3'),
    ).toHaveLength(4)
  })

  it("follow the hour of the day of the scenario's clock", async () => {
    const factors = Array.from({ length: 24 }, (_, hour) => (hour === 9 ? 3 : hour === 10 ? 1 : 0))
    const hourly = factors.join(', ')
    const item = `generate: regular, rate_per_hour: 2, until: 24h, vram_mib: 1, hourly: [${hourly}]`
    const fromMidnight = await tasksOf(item)
    expect(fromMidnight.map(({ at }) => Math.round(at / 60_000))).toEqual([
      550, 560, 570, 580, 590, 600, 630, 660,
    ])
    const fromNine = await tasksOf(item, 'clock: { start: 2026-01-01T09:00:00Z }\n')
    expect(fromNine.map(({ at }) => Math.round(at / 60_000)).slice(0, 3)).toEqual([10, 20, 30])
    const poisson = await tasksOf(
      `${item.replace('regular', 'poisson').replace('rate_per_hour: 2', 'rate_per_hour: 500')}`,
    )
    const inHour = (hour: number): number =>
      poisson.filter(({ at }) => Math.floor(at / HOUR_MS) === hour).length
    expect(inHour(9) + inHour(10)).toBe(poisson.length)
    expect(inHour(9) / inHour(10)).toBeCloseTo(3, 0)
  })

  it('have the properties that their item states for all of them', async () => {
    const [task] = await tasksOf(
      'generate: regular, rate_per_hour: 1, count: 1, vram_mib: 1, labels: { team: a }, ' +
        'max_runtime_seconds: 60, on_node_loss: requeue, cancel_after: 10m',
    )
    expect(task).toMatchObject({
      request: { labels: { team: 'a' }, maxRuntimeSeconds: 60, onNodeLoss: 'requeue' },
      cancelAt: HOUR_MS + 600_000,
    })
  })

  it('have one of the given durations, in proportion to their weights', async () => {
    const tasks = await tasksOf(
      'generate: regular, rate_per_hour: 100, until: 10h, vram_mib: 1, duration: { choice: { 1m: 1, ' +
        '60m: 3 } }',
    )
    const long = tasks.filter(({ work }) => work.kind === 'duration' && work.ms === HOUR_MS)
    expect(tasks.every(({ work }) => work.kind === 'duration' && [60_000, HOUR_MS].includes(work.ms))).toBe(
      true,
    )
    expect(long.length / tasks.length).toBeCloseTo(0.75, 1)
  })

  it('alternate between busy and idle according to their own distributions', async () => {
    const [busyFirst] = await tasksOf(
      'generate: regular, rate_per_hour: 1, count: 1, vram_mib: 1, duration: 1h, activity: { busy: ' +
        '10m, idle: 5m }',
    )
    expect(busyFirst?.work).toEqual({
      kind: 'phases',
      phases: Array.from({ length: 4 }, () => [600_000, 300_000]),
    })
    const [idleFirst] = await tasksOf(
      'task: { id: a, vram_mib: 1, run: 20m, activity: { busy: 10m, idle: { choice: { 5m: 1 } }, ' +
        'first: idle } }',
    )
    expect(idleFirst?.work).toEqual({
      kind: 'phases',
      phases: [
        [1, 300_000],
        [600_000, 299_999],
      ],
    })
  })

  it.each([
    [
      'workload: [{ generate: poisson, rate_per_hour: 1, until: 1h, vram_mib: 1, hourly: [1, 2] }]',
      '4:83: workload[0].hourly: has 2 items; allowed are 24 to 24',
    ],
    [
      'workload: [{ generate: poisson, rate_per_hour: 1, until: 1h, vram_mib: 1, hourly: ' +
        `[${'0, '.repeat(24)}] }]`,
      'workload[0].hourly: must be above 0 in one hour at least',
    ],
    [
      'workload: [{ generate: poisson, rate_per_hour: 90000, until: 30d, vram_mib: 1, batch: 100 }]',
      'allowed are 10000000 in all',
    ],
    [
      'workload: [{ generate: poisson, rate_per_hour: 1, until: 1h, vram_mib: 1, activity: { busy: 1m } }]',
      'workload[0].activity.idle: is missing',
    ],
    [
      'workload: [{ generate: poisson, rate_per_hour: 1, until: 1h, vram_mib: 1, daily: [] }]',
      'did you mean hourly?',
    ],
    [
      'config: { heartbeat_seconds: 60, run_lease_seconds: 179 }',
      '4:53: config.run_lease_seconds: must be at least 180',
    ],
  ])('are refused with a wrong field: %s', (rest, problem) => expect(problemOf(rest)).toContain(problem))
})

describe('the nodes of a fleet', () => {
  const withNode = (fields: string): string =>
    `scenario: x\nversion: 1\nfleet: [{ name: a, gpus: 2, gpu: { vram_mib: 40960 }, ${fields} }]\n`

  it('may share a host link and may have foreign memory', () => {
    const foreign = 'foreign: [{ at: 2h, mib: 0 }, { at: 1h, mib: 8Gi, gpus: [1] }]'
    expect(load('', withNode(`host_link_mib_per_s: 20480, ${foreign}`)).nodes[0]).toMatchObject({
      hostLinkMibPerS: 20_480,
      foreign: [
        { atMs: HOUR_MS, mib: 8192, gpus: [1] },
        { atMs: 2 * HOUR_MS, mib: 0, gpus: null },
      ],
    })
    expect(problemOf('', withNode('foreign: [{ at: 1h, mib: 1, gpus: [2] }]'))).toContain(
      'fleet[0].foreign: names a GPU above 1, the last of the node',
    )
  })

  it('may be unable to signal that a swapped-out task wants the GPU', () => {
    expect(load('', withNode('signals_wanted: false')).nodes[0]?.signalsWanted).toBe(false)
    expect(load('', withNode('signals_wanted: true')).nodes[0]?.signalsWanted).toBeUndefined()
    expect(problemOf('', withNode('signal_wanted: false'))).toContain('did you mean signals_wanted?')
    expect(problemOf('', withNode('signals_wanted: 0'))).toContain(
      'fleet[0].signals_wanted: must be true or false',
    )
  })

  it('may limit the GPUs of one owner', () => {
    expect(load('limits: { placed_gpus_per_owner: 3 }').ownerLimits).toEqual({
      maxPending: null,
      maxPlacedGpus: 3,
      p0: null,
    })
    expect(load('').ownerLimits).toBeUndefined()
  })
})

describe('an operator', () => {
  it('may send headers, name its task, and check the content of an answer', () => {
    const { operator } = load(`operator:
  - { at: 2h, get: "/api/v1/tasks/{task:mine}", expect: 200, answer: { state: running } }
  - { at: 1h, post: /api/v1/tasks, body: { vram_mib: 5 }, as: mine, idempotency_key: k-1 }
  - { at: 3h, put: /api/v1/config, body: { safety_reserve_mib: 0 }, if_match: '"1"' }
`)
    expect(operator.map(({ as, answer, headers }) => [as, answer, headers])).toEqual([
      ['mine', undefined, { 'idempotency-key': 'k-1' }],
      [undefined, { state: 'running' }, undefined],
      [undefined, undefined, { 'if-match': '"1"' }],
    ])
  })

  it.each([
    [
      '{ at: 0, get: "/api/v1/nodes/{node:n7}" }',
      'operator[0].get: the fleet has no node n7; did you mean n0?',
    ],
    [
      '{ at: 0, put: /api/v1/groups/g, body: { node_ids: ["{node:m1}"] } }',
      'operator[0].body: the fleet has no node m1; did you mean n1?',
    ],
    ['{ at: 0, get: "/api/v1/tasks/{task:x}" }', 'operator[0].get: no earlier action names a task x with as'],
    [
      '{ at: 1h, get: "/api/v1/tasks/{task:x}" }, { at: 2h, post: /api/v1/tasks, body: {}, as: x }',
      'operator[0].get: no earlier action names a task x with as',
    ],
    [
      '{ at: 0, post: /api/v1/tasks, body: {}, as: x }, { at: 0, post: /api/v1/tasks, body: {}, as: x }',
      "operator[1].as: x is the name of an earlier action's task, too",
    ],
    ['{ at: 0, get: /api/v1/nodes, if_match: x }', 'operator[0].if_match: is not a known key'],
  ])('is refused with a wrong name or key: %s', (action, problem) =>
    expect(problemOf(`operator: [${action}]`)).toContain(problem),
  )
})

describe('a placeholder', () => {
  it('stands for an id in any text, and not in keys', () => {
    const value = { 'k{node:a}': ['x', { deep: '{node:a}-{task:b}' }], n: 5, none: null }
    expect(namesIn(value)).toEqual([
      { kind: 'node', name: 'a' },
      { kind: 'task', name: 'b' },
    ])
    expect(withIds(value, ({ kind, name }) => `${kind}/${name}`)).toEqual({
      'k{node:a}': ['x', { deep: 'node/a-task/b' }],
      n: 5,
      none: null,
    })
  })
})

describe('the required content of an answer', () => {
  it.each([
    [{ a: 1, b: [{ c: 2, d: 3 }] }, { b: [{ c: 2 }] }, null],
    [{ a: 1 }, { a: 2 }, 'a is 1, expected is 2'],
    [{ a: 1 }, { b: null }, 'b is not there, expected is null'],
    [{ a: [1, 2] }, { a: [1] }, 'a has 2 items, expected are 1'],
    [{ a: [1, { x: 2 }] }, { a: [1, { x: 3 }] }, 'a[1].x is 2, expected is 3'],
    [{ a: 'x' }, { a: [1] }, 'a is "x", expected is a list'],
    [{ a: [] }, { a: {} }, 'a is [], expected is a map'],
    [null, { a: 1 }, 'the answer is null, expected is a map'],
    [{ a: 'x'.repeat(300) }, { a: 'y' }, `a is "${'x'.repeat(99)}…, expected is "y"`],
  ])('%j does not match %j: %s', (answer, expected, problem) =>
    expect(missingIn(answer, expected)).toBe(problem),
  )
})
