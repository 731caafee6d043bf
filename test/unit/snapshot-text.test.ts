/** A snapshot of a live cluster: copied and omitted fields, and its result when loaded. */
import { describe, expect, it } from 'vitest'
import { DEFAULT_CONFIG } from '../../controller/model/config.ts'
import type { ClusterSnapshot, SnapshotNode } from '../../controller/ports/twin.ts'
import type { PlacementRecord, TaskRecord } from '../../controller/ports/store.ts'
import { loadScenario } from '../../simulator/scenario/load.ts'
import { ScenarioError } from '../../simulator/document/problem.ts'
import { nodeNames } from '../../simulator/snapshot/node-names.ts'
import { lazySnapshotOf, snapshotOf, type Snapshot } from '../../simulator/snapshot/snapshot.ts'
import { snapshotText } from '../../simulator/snapshot/snapshot-text.ts'
import { aNode, aRunningTask, aTask } from '../support/store-builders.ts'

const AT = 1_770_000_000_000
const WORK = { work: { kind: 'duration', ms: 60_000 }, doneUs: 250 } as const

describe('a snapshot', () => {
  it('loads as the scenario from which it was written', () => {
    const snapshot = snapshotOf(imageOf(), { workLeftOf: () => WORK })
    const { scenario } = loaded(snapshot)
    expect(scenario.clock.startMs).toBe(AT)
    expect(scenario.config).toEqual({ ...DEFAULT_CONFIG, default_vram_overcommit_percent: 40 })
    expect(scenario.nodes).toEqual(snapshot.nodes)
    expect(scenario.nodes[0]?.signalsWanted).toBe(false)
    expect(scenario.workload).toEqual(snapshot.tasks)
    expect(snapshot.tasks.map(({ request }) => request.id)).toEqual([
      'resident',
      'away',
      'grown',
      'waits',
      'held',
    ])
  })

  it('has no commands and labels, and keeps everything that decisions need', () => {
    const { tasks } = snapshotOf(imageOf(), { workLeftOf: () => WORK })
    const text = JSON.stringify(tasks)
    expect(text).not.toContain('train.py')
    expect(text).not.toContain('vision')
    expect(tasks[1]?.state).toMatchObject({
      number: 12,
      swapOuts: 3,
      placed: {
        residency: 'swapped_out',
        askedAgoMs: 40_000,
        idleForMs: null,
        wantsForMs: 40_000,
        marks: [{ isThisRound: true, decision: 17 }],
        doneUs: 250,
      },
    })
    expect(tasks[2]?.state?.placed).toMatchObject({
      demandMib: 9000,
      growth: { mib: 9500, askedAgoMs: 5000 },
      backOffMs: 7000,
      noswap: 1,
    })
    expect(tasks[3]?.state).toMatchObject({
      waitedMs: 100_000,
      submittedAgoMs: 900_000,
      firstStartedAgoMs: 800_000,
      placed: null,
    })
    expect(tasks[4]?.state?.isHeld).toBe(true)
  })

  it('leaves out stopping tasks and nodes that are not up, and counts swaps in progress as done', () => {
    const image = imageOf()
    const lost = aRunningTask({ id: 'lost', placement: placed({ nodeId: 'down' }) })
    const stopping = { then: 'cancelled', reason: 'x', endReason: null } as const
    const more = [
      lost,
      aRunningTask({ id: 'stopped', placement: placed({ stopping }) }),
      aRunningTask({ id: 'in', placement: placed({ residency: 'swapping_in' }) }),
      aRunningTask({ id: 'out', placement: placed({ residency: 'swapping_out' }) }),
    ]
    const nodes = [
      ...image.nodes,
      { ...image.nodes[0], id: 'down', name: 'down', status: 'suspect' } as SnapshotNode,
    ]
    const snapshot = snapshotOf(
      { ...image, nodes, tasks: [...image.tasks, ...more] },
      { workLeftOf: () => WORK },
    )
    expect(snapshot.leftOut).toEqual({ nodes: 1, tasks: 2, swapsSettled: 2 })
    expect(snapshot.nodes.map(({ name }) => name)).toEqual(['gpu-01'])
    const residency = new Map(
      snapshot.tasks.map(({ request, state }) => [request.id, state?.placed?.residency]),
    )
    expect([residency.get('in'), residency.get('out'), residency.get('lost')]).toEqual([
      'resident',
      'swapped_out',
      undefined,
    ])
  })

  it('treats different GPUs as the largest one with foreign memory on the smaller ones', () => {
    const image = imageOf()
    const gpus = [
      { index: 0, model: 'H100', physicalMib: 81_559, foreignMib: 12, roundNonP0: 4, roundP0: 0 },
      { index: 1, model: 'A10', physicalMib: 24_564, foreignMib: 100, roundNonP0: 9, roundP0: 0 },
    ]
    const nodes = image.nodes.map((node) => ({ ...node, gpus }))
    const tasks = [
      aRunningTask({
        id: 'large',
        seq: 11,
        gpuCount: 1,
        vramMib: 60_000,
        placement: placed({ demandMib: 60_000 }),
      }),
    ]
    const snapshot = snapshotOf({ ...image, nodes, tasks }, { workLeftOf: () => WORK })
    const [node] = loaded(snapshot).scenario.nodes
    expect(node?.gpu.vramMib).toBe(81_559)
    expect(node?.foreign).toEqual([
      { atMs: 0, mib: 12, gpus: [0] },
      { atMs: 0, mib: 100 + 81_559 - 24_564, gpus: [1] },
    ])
  })

  it('leaves out a node without GPUs, with its tasks, and accepts a GPU without a name', () => {
    const image = imageOf()
    const [node] = image.nodes as [SnapshotNode]
    const bare = { ...node, id: 'bare', name: 'bare', gpus: [] }
    const nameless = {
      ...node,
      id: 'nameless',
      name: 'nameless',
      gpus: node.gpus.map((gpu) => ({ ...gpu, model: '' })),
    }
    const snapshot = snapshotOf({ ...image, nodes: [node, bare, nameless] }, { workLeftOf: () => WORK })
    expect(snapshot.leftOut.nodes).toBe(1)
    expect(loaded(snapshot).scenario.nodes.map(({ gpu }) => gpu.model)).toEqual(['H100', 'generic'])
  })

  it('gives live nodes names that are valid in a scenario', () => {
    const names = nodeNames([
      { id: '1', name: 'gpu-1.example.com' },
      { id: '2', name: 'gpu-1-example-com' },
      { id: '3', name: '__' },
      { id: '4', name: 'x'.repeat(80) },
      { id: '5', name: 'x'.repeat(70) },
    ])
    expect([...names.values()]).toEqual([
      'gpu-1-example-com',
      'gpu-1-example-com-2',
      'node',
      'x'.repeat(63),
      `${'x'.repeat(61)}-2`,
    ])
  })

  it('creates each task only when its part is read', () => {
    let made = 0
    const workLeftOf = (): typeof WORK => {
      made += 1
      return WORK
    }
    const lazy = lazySnapshotOf(imageOf(), { workLeftOf })
    expect(lazy.leftOut).toEqual(snapshotOf(imageOf(), { workLeftOf: () => WORK }).leftOut)
    const parts = snapshotText(lazy, { name: 'lazy', description: 'x' })
    const taken: string[] = []
    for (let part = parts.next(); part.done !== true; part = parts.next()) {
      taken.push(part.value)
      expect(made).toBe(taken.filter((each) => each.includes('{"task":')).length)
    }
    expect(made).toBe(5)
    expect(taken.join('')).toBe(
      [...snapshotText(snapshotOf(imageOf(), { workLeftOf }), { name: 'lazy', description: 'x' })].join(''),
    )
  })

  it('of a large cluster is read as JSON, with errors that name the field', () => {
    const image = imageOf()
    const tasks = Array.from({ length: 9_000 }, (_, i) =>
      aTask({ id: `t${i}`, seq: i + 1, submittedAt: AT - i, pendingSince: AT - i, vramMib: 5 }),
    )
    const text = [
      ...snapshotText(snapshotOf({ ...image, tasks }, { workLeftOf: () => WORK }), {
        name: 'large',
        description: 'x',
      }),
    ].join('')
    expect(text.length).toBeGreaterThan(1_048_576)
    expect(loadScenario({ text, baseDir: '.' }).scenario.workload).toHaveLength(9_000)
    const broken = text.replace('"id":"t77"', '"id":"t 77"').replace('"id":"t5"', '"__proto__":{},"id":"t5"')
    expect(() => loadScenario({ text: broken, baseDir: '.' })).toThrow(
      /workload\[5\]\.task\.__proto__: is not a name that a key may have/,
    )
    const wrong = text.replace('"id":"t77"', '"id":"t 77"')
    expect(() => loadScenario({ text: wrong, baseDir: '.' })).toThrow(
      /workload\[77\]\.task\.id: must be an ID/,
    )
    expect(() => loadScenario({ text: `${text.slice(0, -10)}`, baseDir: '.' })).toThrow(ScenarioError)
    const deep = `{"x":"${' '.repeat(1_100_000)}","y":${'['.repeat(100)}${']'.repeat(100)}}`
    expect(() => loadScenario({ text: deep, baseDir: '.' })).toThrow(/at most 64 deep/)
    const many = `{"x":[${'0,'.repeat(6_000_001)}0]}`
    expect(() => loadScenario({ text: many, baseDir: '.' })).toThrow(/at most 6000000 values/)
  })
})

describe('an impossible initial state', () => {
  it.each([
    ['placed: { node: nowhere, gpus: [0] }', /placed\.node: the fleet has no node nowhere/],
    ['placed: { node: one, gpus: [1] }', /placed\.gpus: one has GPUs 0 to 0, none of number 1/],
    ['placed: { node: one, gpus: [0, 0] }', /placed\.gpus: names a GPU twice/],
    [
      'placed: { node: one, gpus: [0], vram_mib: 9000 }',
      /placed\.gpus: GPU 0 of one would hold 9000 MiB of 8000/,
    ],
    [
      'placed: { node: one, gpus: [0], residency: swapped_out, noswap: 1 }',
      /placed\.residency: a noswap task is never swapped out/,
    ],
    [
      'placed: { node: one, gpus: [0], marks: [null, null] }',
      /placed\.marks: must have one entry for each of its 1 GPUs/,
    ],
  ])('is refused by name: %s', (state, problem) => {
    const text =
      '{ scenario: x, version: 1, fleet: [{ name: one, gpu: { vram_mib: 8000 } }], workload: [{ task: ' +
      `{ id: a, vram_mib: 10, state: { ${state} } } }] }`
    expect(() => loadScenario({ text, baseDir: '.' })).toThrow(problem)
  })

  it('is refused for a duplicate number or a submission time', () => {
    const task = (id: string, more: string) => `{ task: { id: ${id}, vram_mib: 10, ${more} } }`
    const of = (...tasks: string[]) =>
      '{ scenario: x, version: 1, fleet: [{ name: one, gpu: { vram_mib: 8000 } }], workload: ' +
      `[${tasks.join(', ')}] }`
    const twice = of(task('a', 'state: { number: 4 }'), task('b', 'state: { number: 4 }'))
    expect(() => loadScenario({ text: twice, baseDir: '.' })).toThrow(
      /workload\[1\]\.task\.state\.number: 4 is the number of workload\[0\]/,
    )
    expect(() => loadScenario({ text: of(task('a', 'at: 5m, state: {}')), baseDir: '.' })).toThrow(
      /at must be 0/,
    )
  })
})

function loaded(snapshot: Snapshot) {
  return loadScenario({
    text: [...snapshotText(snapshot, { name: 'live', description: 'here' })].join(''),
    baseDir: '.',
  })
}

function imageOf(): ClusterSnapshot {
  const gpus = [
    { index: 0, model: 'H100', physicalMib: 81_559, foreignMib: 12, roundNonP0: 4, roundP0: 0 },
    { index: 1, model: 'H100', physicalMib: 81_559, foreignMib: 0, roundNonP0: 9, roundP0: 0 },
  ]
  const times = {
    submittedAt: AT - 900_000,
    pendingSince: AT - 900_000,
    firstStartedAt: AT - 800_000,
    owner: 'ann',
    priority: 2,
    gpuCount: 1,
  } as const
  const tasks: TaskRecord[] = [
    aRunningTask({ ...times, id: 'resident', seq: 11, vramMib: 8000, placement: placed({}) }),
    aRunningTask({
      ...times,
      id: 'away',
      seq: 12,
      vramMib: 7000,
      swapOuts: 3,
      placement: placed({
        demandMib: 7000,
        residency: 'swapped_out',
        wantsGpu: true,
        wantsSince: AT - 40_000,
        askedAt: AT - 40_000,
        marks: [{ round: 4, lastSwapOut: 17 }],
      }),
    }),
    aRunningTask({
      ...times,
      id: 'grown',
      seq: 13,
      vramMib: 8000,
      placement: placed({
        demandMib: 9000,
        noswap: 1,
        heldGrowth: { mib: 9500, askedAt: AT - 5000 },
        backOffUntil: AT + 7000,
      }),
    }),
    aTask({ ...times, id: 'waits', seq: 9, vramMib: 50_000, pendingSince: AT - 100_000, attempt: 1 }),
    aTask({ ...times, id: 'held', seq: 10, vramMib: 50_000, isHeld: true, firstStartedAt: null }),
  ]
  const node = { ...aNode({ gpus, drain: null, overcommitOverride: 30 }), status: 'up' } as const
  const groups = [{ id: 'red', description: '', nodeIds: ['node-1'] }]
  return {
    at: AT,
    config: { ...DEFAULT_CONFIG, default_vram_overcommit_percent: 40 },
    nodes: [node],
    groups,
    tasks,
  }
}

function placed(changes: Partial<PlacementRecord>): PlacementRecord {
  const base = aRunningTask().placement as PlacementRecord
  return {
    ...base,
    gpus: [0],
    demandMib: 8000,
    residency: 'resident',
    startedAt: AT - 800_000,
    assignedAt: AT - 800_000,
    wantsGpu: false,
    wantsSince: AT - 300_000,
    idleSince: AT - 300_000,
    residentSince: AT - 800_000,
    heldGrowth: null,
    stopping: null,
    isCalledBack: false,
    marks: [null],
    ...changes,
  }
}
