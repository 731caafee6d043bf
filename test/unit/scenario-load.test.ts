import { createHash } from 'node:crypto'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { CONFIG_RULES, DEFAULT_CONFIG } from '../../controller/model/config.ts'
import { SWAP_PROFILES } from '../../simulator/scenario/swap-profiles.ts'
import { loadScenario } from '../../simulator/scenario/load.ts'
import type { Scenario } from '../../simulator/scenario/scenario.ts'

const HEAD = 'scenario: x\nversion: 1\nfleet: [{ name: a, gpu: { vram_mib: 40960 } }]\n'
const TRACE = '{"trace":"x","version":1,"t_unit":"ms"}\n'

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'scenario-'))
  mkdirSync(join(folder, 'traces'))
  writeFileSync(join(folder, 'traces', 'openb-sample.trace.jsonl'), TRACE)
})
afterAll(() => rmSync(folder, { recursive: true }))

function scenarioOf(text: string): Scenario {
  return loadScenario({ text, baseDir: folder }).scenario
}

describe('a minimal scenario', () => {
  it('has every default', () => {
    expect(scenarioOf(HEAD)).toEqual({
      name: 'x',
      description: null,
      version: 1,
      seed: 1,
      clock: { startMs: Date.UTC(2026, 0, 1), untilMs: null, drain: true },
      nodes: [
        {
          name: 'a',
          gpuCount: 1,
          gpu: {
            model: 'generic',
            vramMib: 40_960,
            swap: SWAP_PROFILES['stock-driver'],
            efficiencyPermille: [1000],
          },
          groups: [],
          safetyReserveMib: null,
          overcommitPercent: null,
          hostSwapMib: 81_920,
        },
      ],
      config: {},
      workload: [],
      operator: [],
      faults: [],
      assertions: { always: [], eventually: [], sometimes: [], final: [] },
      sweep: null,
    })
  })
})

describe('the fleet', () => {
  it('becomes nodes, numbered from 0, in the order of the file', () => {
    const { nodes } = scenarioOf(`scenario: x
version: 1
fleet:
  - { name: "rack-{i}-node-{i}", count: 2, gpus: 8,
      gpu: { model: H100, vram_mib: 80Gi, swap: pinned-gen5, efficiency: [1000, 900] }, groups: [b, a] }
  - name: lone
    gpu: { vram_mib: 8192, swap: { out_mib_per_s: 100, in_mib_per_s: 200, out_fixed_ms: 3 } }
    safety_reserve_mib: 1Gi
    overcommit_vram_percent: 0
    host_swap_mib: 0
`)
    expect(nodes.map((node) => node.name)).toEqual(['rack-0-node-0', 'rack-1-node-1', 'lone'])
    expect(nodes[1]).toMatchObject({ gpuCount: 8, groups: ['b', 'a'], hostSwapMib: 2 * 8 * 81_920 })
    expect(nodes[1]!.gpu).toEqual({
      model: 'H100',
      vramMib: 81_920,
      swap: { outMibPerS: 46_080, inMibPerS: 46_080, outFixedMs: 100, inFixedMs: 300 },
      efficiencyPermille: [1000, 900],
    })
    expect(nodes[2]).toMatchObject({ safetyReserveMib: 1024, overcommitPercent: 0, hostSwapMib: 0 })
    expect(nodes[2]!.gpu.swap).toEqual({ outMibPerS: 100, inMibPerS: 200, outFixedMs: 3, inFixedMs: 0 })
    expect(nodes[0]!.gpu).toBe(nodes[1]!.gpu)
  })
})

describe('the configuration', () => {
  it("has every field of the controller's table", () => {
    const config = JSON.stringify(DEFAULT_CONFIG)
    expect(scenarioOf(`${HEAD}config: ${config}`).config).toEqual(DEFAULT_CONFIG)
    expect(Object.keys(DEFAULT_CONFIG)).toEqual(Object.keys(CONFIG_RULES))
  })
})

describe('a task', () => {
  it('has every field', () => {
    const { workload } = scenarioOf(`${HEAD}workload:
  - task:
      id: p0-a
      at: 10m
      name: the name
      gpus: 2
      vram_mib: 24Gi
      gpu_mode: exclusive
      noswap: 1
      priority: 0
      groups: [x.y]
      labels: { team/x: "1" }
      owner: me
      command: [python, train.py]
      max_runtime_seconds: 60
      on_node_loss: requeue
      work: { kind: phases, phases: [[10m, 5s], [20, 0]] }
      alloc: [[0, 25Gi], [90s, 26Gi]]
      cancel_at: 1h
`)
    expect(workload).toEqual([
      {
        kind: 'task',
        atMs: 600_000,
        request: {
          id: 'p0-a',
          name: 'the name',
          vramMib: 24_576,
          gpuCount: 2,
          gpuMode: 'exclusive',
          noswap: 1,
          priority: 0,
          groups: ['x.y'],
          labels: { 'team/x': '1' },
          owner: 'me',
          command: ['python', 'train.py'],
          maxRuntimeSeconds: 60,
          onNodeLoss: 'requeue',
        },
        work: {
          kind: 'phases',
          phases: [
            [600_000, 5000],
            [20, 0],
          ],
        },
        allocSteps: [
          [0, 25_600],
          [90_000, 26_624],
        ],
        cancelAtMs: 3_600_000,
      },
    ])
  })

  it.each([
    ['', { kind: 'residence', ms: 3_600_000, activity: 'always-busy' }],
    ['run: 10m, activity: serving', { kind: 'residence', ms: 600_000, activity: 'serving' }],
    ['work: { kind: duration, ms: 5 }', { kind: 'duration', ms: 5 }],
    [
      'work: { kind: bursts, at: [[0, 5], [1m, 1s]], stayMs: 2m }',
      {
        kind: 'bursts',
        at: [
          [0, 5],
          [60_000, 1000],
        ],
        stayMs: 120_000,
      },
    ],
  ])('accepts { %s }', (fields, work) => {
    expect(
      scenarioOf(`${HEAD}workload: [{ task: { id: a, vram_mib: 1, ${fields} } }]`).workload[0],
    ).toMatchObject({ work })
  })

  it('needs no VRAM if it uses whole GPUs', () => {
    const item = scenarioOf(`${HEAD}workload: [{ task: { id: a, gpu_mode: exclusive } }]`).workload[0]
    expect(item).toMatchObject({ request: { vramMib: null, gpuMode: 'exclusive' } })
  })
})

describe('a generate item', () => {
  it('has every field', () => {
    const { workload } = scenarioOf(`${HEAD}workload:
  - generate: poisson
    name: batch
    rate_per_hour: 0.5
    from: 1h
    until: 2h
    count: 7
    gpus: { 4: 1, 1: 3 }
    vram_mib: { choice: { 20000: 1, 10000: 2 } }
    duration: { lognormal: { median: 30m, sigma: 1.5 } }
    activity: training
    priority: { 0: 0.1, 2: 0.9 }
    noswap: 0.29
    groups: [g]
    gpu_mode: exclusive
    owner: me
`)
    expect(workload).toEqual([
      {
        kind: 'generate',
        arrivals: 'poisson',
        daily: null,
        batch: 1,
        labels: {},
        runPolicy: { maxRuntimeSeconds: null, onNodeLoss: 'wait' },
        cancelAfter: null,
        name: 'batch',
        ratePerHour: 0.5,
        fromMs: 3_600_000,
        untilMs: 7_200_000,
        count: 7,
        gpus: [
          [1, 3],
          [4, 1],
        ],
        vram: {
          kind: 'choice',
          weights: [
            [10_000, 2],
            [20_000, 1],
          ],
        },
        duration: { kind: 'lognormal', medianMs: 1_800_000, sigma: 1.5 },
        activity: 'training',
        priority: [
          [0, 0.1],
          [2, 0.9],
        ],
        noswapPermille: 290,
        groups: ['g'],
        gpuMode: 'exclusive',
        owner: 'me',
      },
    ])
  })

  it.each([
    ['vram_mib: 8Gi', { vram: { kind: 'constant', mib: 8192 } }],
    [
      'vram_mib: { uniform: { min: 1Gi, max: 2048 } }',
      { vram: { kind: 'uniform', minMib: 1024, maxMib: 2048 } },
    ],
    [
      'vram_mib: { lognormal: { median: 5, sigma: 0, min: 2, max: 9 } }',
      { vram: { kind: 'lognormal', medianMib: 5, sigma: 0, minMib: 2, maxMib: 9 } },
    ],
    ['vram_mib: 1, duration: 5m', { duration: { kind: 'constant', ms: 300_000 } }],
    [
      'vram_mib: 1, duration: { uniform: { min: 1s, max: 2s } }',
      { duration: { kind: 'uniform', minMs: 1000, maxMs: 2000 } },
    ],
    [
      'vram_mib: 1, duration: { exponential: { mean: 2s } }',
      { duration: { kind: 'exponential', meanMs: 2000 } },
    ],
    [
      'vram_mib: 1',
      { duration: { kind: 'exponential', meanMs: 3_600_000 }, untilMs: 21_600_000, name: 'g1' },
    ],
  ])('accepts { %s }', (fields, item) => {
    const text =
      `${HEAD}clock: { until: 6h }\nworkload: [{ task: { id: a, vram_mib: 1 } }, { generate: poisson, ` +
      `rate_per_hour: 1, ${fields} }]`
    expect(scenarioOf(text).workload[1]).toMatchObject(item)
  })

  it('draws no more VRAM than fits on any GPU, unless the scenario allows more', () => {
    const lognormal =
      'workload: [{ generate: poisson, rate_per_hour: 1, count: 1, vram_mib: { lognormal: { median: ' +
      '5, sigma: 1 } } }]'
    const fleet = (reserve: string): string =>
      'scenario: x\nversion: 1\nfleet: [{ name: a, gpu: { vram_mib: 10000 }, safety_reserve_mib: ' +
      `${reserve} }]\n`
    const maxOf = (text: string): unknown =>
      (scenarioOf(text).workload[0] as { vram: { maxMib: number } }).vram.maxMib
    expect(maxOf(`${fleet('null')}${lognormal}`)).toBe(10_000 - 2048)
    expect(maxOf(`${fleet('null')}config: { safety_reserve_mib: 0 }\n${lognormal}`)).toBe(10_000)
    expect(maxOf(`${fleet('100')}config: { safety_reserve_mib: 0 }\n${lognormal}`)).toBe(9900)
  })
})

describe('a trace item', () => {
  it('is found in the folder of the scenario, and prefixes ids only next to another trace', () => {
    const item =
      '{ trace: traces/openb-sample.trace.jsonl, time_scale: 0.01, sample: 0.2, from: 1h, to: 2h, ' +
      'max_gpus: 4 }'
    const file = join(folder, 'traces', 'openb-sample.trace.jsonl')
    const trace = {
      kind: 'trace',
      file,
      timeScale: 0.01,
      sample: 0.2,
      fromMs: 3_600_000,
      toMs: 7_200_000,
      maxGpus: 4,
      activity: null,
    }
    expect(scenarioOf(`${HEAD}workload: [${item}]`).workload).toEqual([
      { ...trace, name: 't0', idPrefix: '' },
    ])
    expect(scenarioOf(`${HEAD}workload: [${item}, ${item}]`).workload).toEqual([
      { ...trace, name: 't0', idPrefix: 't0-' },
      { ...trace, name: 't1', idPrefix: 't1-' },
    ])
  })
})

describe('operator, assertions and sweep', () => {
  it('actions are sorted by time, and at the same instant by the order of the file', () => {
    const { operator } = scenarioOf(`${HEAD}operator:
  - { at: 2h, put: /api/v1/config, body: { a: [1, null, "x"] }, expect: 200 }
  - { at: 1h, post: "/api/v1/nodes/{node:a}/cordon" }
  - { at: 1h, delete: /api/v1/tasks/x, expect: 202 }
  - { at: 1h, patch: /api/v1/tasks/x, body: { noswap: 1 } }
  - { at: 0, get: /api/v1/nodes }
`)
    expect(operator).toEqual([
      { atMs: 0, method: 'get', path: '/api/v1/nodes', body: null, expect: 'accepted' },
      {
        atMs: 3_600_000,
        method: 'post',
        path: '/api/v1/nodes/{node:a}/cordon',
        body: null,
        expect: 'accepted',
      },
      { atMs: 3_600_000, method: 'delete', path: '/api/v1/tasks/x', body: null, expect: 202 },
      { atMs: 3_600_000, method: 'patch', path: '/api/v1/tasks/x', body: { noswap: 1 }, expect: 'accepted' },
      { atMs: 7_200_000, method: 'put', path: '/api/v1/config', body: { a: [1, null, 'x'] }, expect: 200 },
    ])
  })

  it('assertions are given by name', () => {
    const { assertions } = scenarioOf(`${HEAD}assert:
  always: [single_run, reserve_kept]
  eventually: [{ that: all_tasks_finish }, { after: heal, within: 10m, that: every_feasible_task_runs }]
  sometimes: [swap_out]
  final: [{ metric: queue_wait_s.p99, max: 900 }, { metric: tasks.failed, equals: 0 }]
`)
    expect(assertions).toEqual({
      always: ['single_run', 'reserve_kept'],
      eventually: [
        { that: 'all_tasks_finish', after: 'heal', withinMs: null },
        { that: 'every_feasible_task_runs', after: 'heal', withinMs: 600_000 },
      ],
      sometimes: ['swap_out'],
      final: [
        { metric: 'queue_wait_s.p99', min: null, max: 900, equals: null },
        { metric: 'tasks.failed', min: null, max: null, equals: 0 },
      ],
    })
  })

  it('swept values are given as lists or ranges', () => {
    const { sweep } = scenarioOf(`${HEAD}sweep:
  seeds: 1..3
  config.placement_strategy: [best_fit, fifo]
  config.max_residency_seconds: [null, 60]
  config.default_vram_overcommit_percent: 0..200:50
`)
    expect(sweep).toEqual({
      fields: [
        { field: 'default_vram_overcommit_percent', values: [0, 50, 100, 150, 200] },
        { field: 'max_residency_seconds', values: [null, 60] },
        { field: 'placement_strategy', values: ['best_fit', 'fifo'] },
      ],
      seeds: [1, 2, 3],
    })
  })
})

describe('a scenario file', () => {
  it('is hashed byte by byte, and traces are searched in its folder', () => {
    const text = `${HEAD}workload: [{ trace: traces/openb-sample.trace.jsonl }] # ü\n`
    writeFileSync(join(folder, 'x.scenario.yaml'), text)
    const loaded = loadScenario(join(folder, 'x.scenario.yaml'))
    expect(loaded).toMatchObject({
      text,
      sha256: createHash('sha256').update(text).digest('hex'),
      file: join(folder, 'x.scenario.yaml'),
    })
    expect(loaded.scenario).toEqual(scenarioOf(text))
  })

  it('is also accepted as JSON, with or without a byte order mark', () => {
    const text = JSON.stringify(
      { scenario: 'x', version: 1, fleet: [{ name: 'a', gpu: { vram_mib: 40_960 } }] },
      null,
      2,
    )
    expect(scenarioOf(text)).toEqual(scenarioOf(HEAD))
    expect(scenarioOf(`\u{feff}${text}`)).toEqual(scenarioOf(HEAD))
  })
})

describe('the example of the design', () => {
  it('is taken as it stands', () => {
    const text = readFileSync(join(import.meta.dirname, '../fixtures/every-section.yaml'), 'utf8')
    const { scenario } = loadScenario({ text, baseDir: folder })
    expect(scenario).toMatchObject({
      name: 'swap-fairness-basic',
      seed: 42,
      clock: { untilMs: 21_600_000, drain: true },
    })
    expect(scenario.nodes.map((node) => node.name)).toEqual(['a100-0', 'a100-1', 'a100-2', 'a100-3'])
    expect(scenario.workload.map((item) => item.kind)).toEqual(['trace', 'generate', 'task'])
    expect(scenario.sweep!.seeds).toHaveLength(20)
    expect(scenario.faults.map((fault) => fault.kind)).toEqual([
      'crash',
      'partition',
      'restart_controller',
      'swarm',
    ])
  })
})
