import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { loadScenario } from '../../simulator/scenario/load.ts'
import { MAX_PROBLEMS, ScenarioError } from '../../simulator/document/problem.ts'

const HEAD = 'scenario: x\nversion: 1\nfleet: [{ name: a, gpu: { vram_mib: 40960 } }]\n'

function errorOf(text: string): ScenarioError {
  try {
    loadScenario({ text, baseDir: '/nowhere', file: 'x.yaml' })
  } catch (error) {
    if (error instanceof ScenarioError) return error
    throw error
  }
  throw new Error('the scenario was taken')
}

/** Returns `line:column path: detail` of each problem. */
function problemsOf(text: string): string[] {
  return errorOf(text).problems.map(
    ({ line, column, path, detail }) => `${line}:${column} ${path}: ${detail}`,
  )
}

/** Expects exactly this `problem`, at the » in the text. */
function expectProblem(marked: string, problem: string): void {
  const before = marked.slice(0, marked.indexOf('»')).split('\n')
  const place = `${before.length}:${before.at(-1)!.length + 1}`
  expect(problemsOf(marked.replace('»', ''))).toEqual([expect.stringContaining(`${place} ${problem}`)])
}

describe('an item in the wrong place', () => {
  it.each([
    [
      'an unknown key',
      '»sed: 3',
      'sed: is not a known key; did you mean seed? (allowed are scenario, description, version,',
    ],
    ['an unknown key without a neighbour', '»zzzzz: 3', 'zzzzz: is not a known key; allowed are scenario,'],
    [
      'another word for a key',
      'clock: { »end: 3h }',
      'clock.end: is not a known key; did you mean until? (allowed are start, until, drain)',
    ],
    [
      'an unknown field of the configuration',
      'config:\n  »idle_swap_seconds: 3',
      'config.idle_swap_seconds: is not a known key; did you mean idle_swap_out_seconds?',
    ],
    ['a duplicate key', 'seed: 3\n»seed: 4', 'seed: stands here for the second time'],
    ['a merge', 'clock: { »<<: 1 }', 'clock["<<"]: merging maps with << is not part of YAML 1.2'],
    ['a key that is a list', 'clock: { »[1]: 1 }', 'clock["?"]: a key must be a name or a number'],
    ['__proto__', 'config: { »__proto__: 3 }', 'config.__proto__: is not a name that a key may have'],
    [
      'constructor',
      'workload: [{ task: { »constructor: 1, id: a, vram_mib: 1 } }]',
      'workload[0].task.constructor: is not a name',
    ],
  ])('causes an error: %s', (_, tail, problem) => expectProblem(`${HEAD}${tail}`, problem))

  it('Missing keys are named, except for a key that is only misspelt', () => {
    expect(problemsOf('scenaro: x\n')).toEqual([
      expect.stringContaining('1:1 scenaro: is not a known key; did you mean scenario?'),
      '1:1 version: is missing; must be 1',
      '1:1 fleet: is missing; must be a list of 1 to 10000 items',
    ])
  })
})

describe('a wrong value', () => {
  it.each([
    ['seed: »-1', 'seed: must be a whole number from 0 to 4294967295; is -1'],
    ['seed: »1.5', 'seed: must be a whole number from 0 to 4294967295; is 1.5'],
    ['seed: »"1"', 'seed: must be a whole number from 0 to 4294967295; is "1"'],
    [
      'seed: »99999999999999999999',
      'seed: must be a whole number from 0 to 4294967295; is 100000000000000000000',
    ],
    ['seed: ».nan', 'seed: must be a whole number from 0 to 4294967295; is NaN'],
    ['seed:»', 'seed: must be a whole number from 0 to 4294967295; is empty'],
    ['seed: »[1]', 'seed: is a list; must be a whole number from 0 to 4294967295'],
    ['clock: »3', 'clock: is 3; must be a map of start, until, drain'],
    ['clock: { drain: »yes }', 'clock.drain: must be true or false; is "yes"'],
    [
      'clock: { until: »10 }',
      'clock.until: must be a whole number with a unit: ms, s, m, h or d (90s, 10m), at least 1ms, ' +
        'at most 36500d, or null; is 10, without a unit',
    ],
    [
      'clock: { until: »1.5h }',
      'clock.until: must be a whole number with a unit: ms, s, m, h or d (90s, 10m), at least 1ms, ' +
        'at most 36500d, or null; is "1.5h"',
    ],
    [
      'clock: { start: »2026-02-30T00:00:00Z }',
      'clock.start: must be an instant from 1970 on in RFC 3339 (2026-01-01T00:00:00Z); is ' +
        '"2026-02-30T00:00:00Z"',
    ],
    ['clock: { drain: »false }', 'clock.drain: may be false only when until is set'],
    [
      'description: »5',
      'description: must be text of 1 to 4096 characters, or null; is 5, not text: put it in quotes',
    ],
    [
      'config: { default_vram_overcommit_percent: »1001 }',
      'config.default_vram_overcommit_percent: must be a whole number from 0 to 1000; is 1001',
    ],
    [
      'config: { max_residency_seconds: »0 }',
      'config.max_residency_seconds: must be a whole number from 1 to 604800, or null; is 0',
    ],
    [
      'config: { idle_swap_out_seconds: »null }',
      'config.idle_swap_out_seconds: must be a whole number from 1 to 86400; is empty',
    ],
    [
      'config: { placement_strategy: »bestfit }',
      'config.placement_strategy: must be one of best_fit, spread, fifo; is "bestfit"; did you mean ' +
        'best_fit?',
    ],
    [
      'operator: [{ at: 0, put: »/config, body: {} }]',
      'operator[0].put: must be a path that begins with /api/v1/; is "/config"',
    ],
    ['operator: [»{ at: 0, put: /api/v1/config }]', 'operator[0].body: is missing; must be any value'],
    [
      'operator: [»{ at: 0, putt: /api/v1/config }]',
      'operator[0]: needs one of the keys get, put, post, patch, delete; did you mean put instead of putt?',
    ],
    [
      'operator: [{ at: 0, get: »"/api/v1/nodes/{node:b}" }]',
      'operator[0].get: the fleet has no node b; did you mean a?',
    ],
    ['assert: { always: [»single_runs] }', 'assert.always[0]: must be one of single_run,'],
    [
      'assert: { final: [»{ metric: makespan_s }] }',
      'assert.final[0]: needs at least one of min, max, equals',
    ],
    [
      'assert: { final: [{ metric: makespan_s, min: 2, max: »1 }] }',
      'assert.final[0].max: must not be below min',
    ],
    ['assert: { final: [{ metric: »X.y, min: 2 }] }', 'assert.final[0].metric: must be one of jct_s.mean, '],
    [
      'sweep: { seeds: »5..1 }',
      'sweep.seeds: is "5..1"; must be whole numbers from 0 to 4294967295: a list or a range A..B or ' +
        'A..B:STEP',
    ],
    ['sweep: { seeds: »1..20000 }', 'sweep.seeds: has 20000 values; allowed are at most 10000'],
    ['sweep: { seeds: »[1, 2, 1] }', 'sweep.seeds: has a value twice'],
    [
      'sweep: { config.idle_swap_out_seconds: »[60, 60] }',
      'sweep["config.idle_swap_out_seconds"]: has a value twice',
    ],
    ['sweep: { seeds: »[] }', 'sweep.seeds: has 0 items; allowed are 1 to 10000'],
    [
      'sweep: { »default_vram_overcommit_percent: [1] }',
      'sweep.default_vram_overcommit_percent: is not a known key; did you mean ' +
        'config.default_vram_overcommit_percent?',
    ],
    [
      'sweep: { config.default_vram_overcommit_percent: [0, »1001] }',
      'sweep["config.default_vram_overcommit_percent"][1]: must be a whole number from 0 to 1000; is 1001',
    ],
    [
      'sweep: »{ config.default_vram_overcommit_percent: 0..999, seeds: 1..101 }',
      'sweep: makes 101000 runs; allowed are 100000',
    ],
  ])('causes an error: %s', (tail, problem) => expectProblem(`${HEAD}${tail}`, problem))

  it('An empty file and a file that is not a map are refused', () => {
    expect(problemsOf('')).toEqual([expect.stringContaining('1:1 : is empty; must be a map of scenario,')])
    expect(problemsOf('- a')).toEqual([
      expect.stringContaining('1:1 : is a list; must be a map of scenario,'),
    ])
  })
})

describe('a fleet with an error', () => {
  it.each([
    ['  »[]', 'fleet: has 0 items; allowed are 1 to 10000'],
    [
      '  - { name: a, gpu: { »vram_mb: 3 } }',
      'fleet[0].gpu.vram_mb: is not a known key; did you mean vram_mib?',
    ],
    [
      '  - { name: a, gpus: »17, gpu: { vram_mib: 3 } }',
      'fleet[0].gpus: must be a whole number from 1 to 16; is 17',
    ],
    [
      '  - { name: »a.b, gpu: { vram_mib: 3 } }',
      'fleet[0].name: must be a name of letters, digits, - and _, with {i} for the number; is "a.b"',
    ],
    [
      '  - { name: »a, count: 2, gpu: { vram_mib: 3 } }',
      'fleet[0].name: needs {i} in it, because count is 2',
    ],
    [
      '  - { name: a, gpu: { vram_mib: »24G } }',
      'fleet[0].gpu.vram_mib: must be whole MiB from 1 to 16777216, or text with Mi or Gi (24Gi); is "24G"',
    ],
    [
      '  - { name: a, gpu: { vram_mib: 3, swap: »stok-driver } }',
      'fleet[0].gpu.swap: must be one of stock-driver, pinned-gen3, pinned-gen4, pinned-gen5, ' +
        'h100-driver-580, cli-exec; is "stok-driver"; did you mean stock-driver?',
    ],
    [
      '  - { name: a, gpu: { vram_mib: 3, swap: { out_mib_per_s: »0, in_mib_per_s: 1 } } }',
      'fleet[0].gpu.swap.out_mib_per_s: must be a whole number from 1 to 16777216; is 0',
    ],
    [
      '  - { name: a, gpu: { vram_mib: 3, swap: »{ out_mib_per_s: 1 } } }',
      'fleet[0].gpu.swap.in_mib_per_s: is missing',
    ],
    [
      '  - { name: a, gpu: { vram_mib: 3, efficiency: »[] } }',
      'fleet[0].gpu.efficiency: has 0 items; allowed are 1 to 1024',
    ],
    [
      '  - { name: a, gpu: { vram_mib: 3 } }\n  - { name: »a, gpu: { vram_mib: 3 } }',
      'fleet[1].name: makes a second node a; the first is of fleet[0]',
    ],
    [
      '  - { name: "a{i}", count: »20001, gpu: { vram_mib: 3 } }',
      'fleet[0].count: must be a whole number from 1 to 20000; is 20001',
    ],
    [
      '  - { name: "a{i}", count: 20000, gpu: { vram_mib: 3 } }\n  - »{ name: b, gpu: { vram_mib: 3 } }',
      'fleet[1].count: makes 20001 nodes with those above; allowed are 20000 in all',
    ],
  ])('is reported at its position: %s', (entries, problem) =>
    expectProblem(`scenario: x\nversion: 1\nfleet:\n${entries}`, problem),
  )
})

describe('a workload with an error', () => {
  const task = (fields: string): string => `workload: [{ task: { id: a, ${fields} } }]`
  const generate = (fields: string): string => `workload: [{ generate: poisson, ${fields} }]`

  it.each([
    ['workload: [»{}]', 'workload[0]: needs one of the keys trace, generate, task'],
    [
      'workload: [»{ tarce: x }]',
      'workload[0]: needs one of the keys trace, generate, task; did you mean trace instead of tarce?',
    ],
    [
      'workload: [»{ trace: x, task: {} }]',
      'workload[0]: has both trace and task; only one of them says what it is',
    ],
    ['workload: [{ trace: »x }]', 'workload[0].trace: no such file: /nowhere/x'],
    ['workload: [{ trace: x, from: 2h, to: »1h }]', 'workload[0].to: must be after from'],
    ['workload: [{ trace: x, sample: »0 }]', 'workload[0].sample: must be a number above 0, at most 1; is 0'],
    [task('vram_mib: 1, noswap: »true'), 'workload[0].task.noswap: must be one of 0, 1; is true'],
    [task('vram_mib: 1, priority: »5'), 'workload[0].task.priority: must be one of 0, 1, 2, 3, 4; is 5'],
    [
      task('vram_mib: 1, »gpu_count: 2'),
      'workload[0].task.gpu_count: is not a known key; did you mean gpus?',
    ],
    [task('vram_mib: 1, labels: { »"a b": x }'), 'workload[0].task.labels["a b"]: the key must be a label'],
    [
      'workload: [{ task: »{ id: a, gpus: 2 } }]',
      'workload[0].task.vram_mib: is needed unless gpu_mode is exclusive',
    ],
    [task('vram_mib: 1, at: 2h, cancel_at: »1h'), 'workload[0].task.cancel_at: must not be before at'],
    [task('vram_mib: 5, alloc: »[[1s, 5]]'), 'workload[0].task.alloc: step 0: 5 MiB is not more than 5 MiB'],
    [
      task('vram_mib: 5, alloc: »[[1s, 6], [1s, 7]]'),
      'workload[0].task.alloc: step 1: 1000 ms is not after 1000 ms',
    ],
    [task('vram_mib: 5, alloc: [»[1s]]'), 'workload[0].task.alloc[0]: must be a list of two values, has 1'],
    [
      task('vram_mib: 5, work: »{ ms: 1 }'),
      'workload[0].task.work.kind: is missing; must be one of duration, phases, bursts',
    ],
    [
      task('vram_mib: 5, work: { kind: »phase }'),
      'workload[0].task.work.kind: must be one of duration, phases, bursts; is "phase"; did you mean phases?',
    ],
    [task('vram_mib: 5, work: { kind: duration, ms: »0 }'), 'workload[0].task.work.ms: must be whole ms,'],
    [
      task('vram_mib: 5, work: { kind: phases, phases: »[[0, 0]] }'),
      'workload[0].task.work.phases: must last 1 ms or longer in all',
    ],
    [
      task('vram_mib: 5, work: { kind: bursts, at: »[[5, 1], [4, 1]], stayMs: 0 }'),
      'workload[0].task.work.at: falls from 5 to 4 ms',
    ],
    [
      task('vram_mib: 5, work: { kind: bursts, at: [], stayMs: »0 }'),
      'workload[0].task.work.stayMs: must be 1 or more',
    ],
    [
      task('vram_mib: 5, run: »1h, work: { kind: duration, ms: 1 }'),
      'workload[0].task.run: says the same as work',
    ],
    [
      task('vram_mib: 5, activity: »serving, work: { kind: duration, ms: 1 }'),
      'workload[0].task.activity: goes with run',
    ],
    [
      task('vram_mib: 5, activity: »busy'),
      'workload[0].task.activity: must be one of always-busy, serving, training; is "busy"; did you ' +
        'mean always-busy?',
    ],
    [
      'workload: [{ generate: »uniform, rate_per_hour: 1, vram_mib: 1 }]',
      'workload[0].generate: must be one of poisson, regular; is "uniform"',
    ],
    [generate('rate_per_hour: »0, vram_mib: 1'), 'workload[0].rate_per_hour: must be a number above 0'],
    [
      'workload: [»{ generate: poisson, rate_per_hour: 1, vram_mib: 1 }]',
      'workload[0].until: is needed here, or count, or until in clock: it would never end',
    ],
    [
      'workload: [»{ generate: poisson, rate_per_hour: 1, until: 1h }]',
      'workload[0].vram_mib: is needed unless gpu_mode is exclusive',
    ],
    [
      generate('rate_per_hour: 1, from: 2h, until: »1h, vram_mib: 1'),
      'workload[0].until: must be after from',
    ],
    [
      generate('rate_per_hour: 1, until: 1h, vram_mib: 1, noswap: »0.0005'),
      'workload[0].noswap: must be a probability in steps of 0.001',
    ],
    [
      generate('rate_per_hour: 1, until: 1h, vram_mib: { uniform: { min: 3, max: »2 } }'),
      'workload[0].vram_mib.uniform.max: must not be below min',
    ],
    [
      generate('rate_per_hour: 1, until: 1h, vram_mib: »{ lognorm: { median: 3 } }'),
      'workload[0].vram_mib: needs one of the keys uniform, lognormal, choice; did you mean ' +
        'lognormal instead of lognorm?',
    ],
    [
      generate('rate_per_hour: 1, until: 1h, vram_mib: { choice: { »24Gi: 1 } }'),
      'workload[0].vram_mib.choice["24Gi"]: the key must be whole MiB',
    ],
    [
      generate('rate_per_hour: 1, until: 1h, vram_mib: 1, gpus: { »0: 1 }'),
      'workload[0].gpus["0"]: the key must be a number of GPUs from 1 to 1024',
    ],
    [
      generate('rate_per_hour: 1, until: 1h, vram_mib: 1, gpus: { 1: »0 }'),
      'workload[0].gpus["1"]: must be a number above 0',
    ],
    [
      generate('rate_per_hour: 1, until: 1h, vram_mib: 1, duration: { exponential: { mean: »5 } }'),
      'workload[0].duration.exponential.mean: must be a whole number with a unit',
    ],
    [
      generate('rate_per_hour: »100000, until: 30d, vram_mib: 1'),
      'workload[0].rate_per_hour: makes about 72000000 tasks with those above; allowed are 10000000 in all',
    ],
  ])('is reported at its position: %s', (tail, problem) => expectProblem(`${HEAD}${tail}`, problem))

  it('refuses duplicate ids and names', () => {
    const items = [
      '  - { task: { id: a, vram_mib: 1 } }',
      '  - { task: { id: a, vram_mib: 1 } }',
      '  - { task: { id: g4-12, vram_mib: 1 } }',
      '  - { generate: poisson, name: g4, rate_per_hour: 1, until: 1h, vram_mib: 1 }',
      '  - { generate: poisson, rate_per_hour: 1, until: 1h, vram_mib: 1 }',
    ]
    expect(problemsOf(`${HEAD}workload:\n${items.join('\n')}`)).toEqual([
      '6:19 workload[1].task.id: a is the ID of workload[0], too; each needs its own',
      '7:19 workload[2].task.id: is an ID that the generated tasks of g4 have, too',
      '9:5 workload[4].name: g4 is the name of workload[3], too; each needs its own',
    ])
  })
})

describe('the list of problems', () => {
  it('has every problem in the order of the file, one per line', () => {
    const error = errorOf('scenario: X Y\nversion: 2\nfleet: [{ name: a, gpu: { vram_mib: 0 } }]\nsed: 1\n')
    expect(error.message.split('\n')).toEqual([
      'x.yaml:1:11: scenario: must be a name of small letters, digits, dot, - and _; is "X Y"',
      'x.yaml:2:10: version: must be 1; is 2',
      'x.yaml:3:37: fleet[0].gpu.vram_mib: must be whole MiB from 1 to 16777216, or text with Mi or ' +
        'Gi (24Gi); is 0',
      expect.stringMatching(/^x\.yaml:4:1: sed: is not a known key; did you mean seed\?/),
    ])
  })

  it(`ends after ${MAX_PROBLEMS} problems and counts the others`, () => {
    const error = errorOf(`${HEAD}workload: [${'{},'.repeat(30)}]`)
    expect(error.problems).toHaveLength(MAX_PROBLEMS)
    expect(error.message).toMatch(/\nx\.yaml: and 10 more$/)
  })

  it('shortens long values', () => {
    expect(problemsOf(`${HEAD}seed: ${'z'.repeat(5000)}`)[0]!.length).toBeLessThan(200)
    expect(problemsOf(`${HEAD}clock: { ${'z'.repeat(900)}: 1 }`)[0]!.length).toBeLessThan(200)
  })
})

describe('an unreadable file', () => {
  const folder = mkdtempSync(join(tmpdir(), 'scenario-'))
  const messageOf = (file: string): string => {
    try {
      loadScenario(join(folder, file))
    } catch (error) {
      expect(error).toBeInstanceOf(ScenarioError)
      return (error as Error).message.replace(folder, '')
    }
    throw new Error('the file was taken')
  }

  it('causes an error with the reason', () => {
    mkdirSync(join(folder, 'folder.yaml'))
    writeFileSync(join(folder, 'latin.yaml'), Buffer.from([0x61, 0x3a, 0xff]))
    writeFileSync(join(folder, 'large.yaml'), 'x'.repeat(1_048_577))
    expect(messageOf('none.yaml')).toBe('/none.yaml:1:1: no such file')
    expect(messageOf('folder.yaml')).toBe('/folder.yaml:1:1: is not a file')
    expect(messageOf('latin.yaml')).toBe('/latin.yaml:1:1: is not UTF-8 text')
    expect(messageOf('large.yaml')).toBe('/large.yaml:1:1: is larger than 1048576 bytes')
    rmSync(folder, { recursive: true })
  })
})
