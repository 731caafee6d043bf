import { createHash } from 'node:crypto'
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { RunResult } from '../../simulator/results/result.ts'
import { busyScenario, headroom, headroomJson, temporaryFolder, write } from '../support/headroom-command.ts'

const folder = temporaryFolder()
const busy = write(folder, 'busy.scenario.yaml', busyScenario())

type Printed = RunResult & { readonly timing: Readonly<Record<string, number>> }

const SMALL = 'scenario: small\nversion: 1\nfleet: [{ name: n, gpu: { vram_mib: 10000 } }]\n'
const small = (name: string, rest: string): string => write(folder, `${name}.scenario.yaml`, SMALL + rest)

describe('headroom sim run', () => {
  it('prints the contents of result.json, with the timing', async () => {
    const out = join(folder, 'out-a')
    const printed = await headroomJson<Printed>(['sim', 'run', busy, '--out', out])
    const { timing, ...result } = printed
    expect(Object.keys(printed)).toEqual([
      'digest',
      'scenario_sha256',
      'trace_sha256',
      'seed',
      'version',
      'virtual_s',
      'metrics',
      'timing',
    ])
    expect(Object.keys(result.metrics)).toEqual([
      'jct_s',
      'queue_wait_s',
      'slowdown',
      'wake_s',
      'wake_parts_s',
      'makespan_s',
      'utilization_percent',
      'starvation_percent',
      'swaps_per_hour',
      'swapped_gib_per_hour',
      'swap_jain',
      'tasks',
    ])
    expect(Object.keys(timing)).toEqual(['cpu_s', 'wall_s', 'decide_s'])
    expect(result.scenario_sha256).toBe(createHash('sha256').update(readFileSync(busy)).digest('hex'))
    expect(readFileSync(join(out, 'result.json'), 'utf8')).toBe(`${JSON.stringify(result, null, 2)}\n`)
    expect(readdirSync(out).toSorted((a, b) => (a < b ? -1 : 1))).toEqual([
      'journal.jsonl',
      'result.json',
      'series.csv',
      'tasks.csv',
      'timing.json',
    ])
  })

  it('writes a journal whose SHA-256 is the digest, without changing the run', async () => {
    const out = join(folder, 'out-b')
    const [withFiles, without] = await Promise.all([
      headroomJson<Printed>(['sim', 'run', busy, '--out', out]),
      headroomJson<Printed>(['sim', 'run', busy]),
    ])
    expect(
      createHash('sha256')
        .update(readFileSync(join(out, 'journal.jsonl')))
        .digest('hex'),
    ).toBe(withFiles.digest)
    expect({ ...withFiles, timing: null }).toEqual({ ...without, timing: null })
  })

  it('writes a row for every task and every interval, with sums equal to the result', async () => {
    const out = join(folder, 'out-c')
    const { metrics, virtual_s } = await headroomJson<Printed>(['sim', 'run', busy, '--out', out])
    const tasks = rowsOf(join(out, 'tasks.csv'))
    expect(tasks).toHaveLength(metrics.tasks.submitted)
    const jcts = tasks.filter((row) => row['state'] === 'completed').map((row) => Number(row['jct_s']))
    expect(jcts).toHaveLength(metrics.tasks.completed)
    expect(jcts.reduce((sum, jct) => sum + jct, 0) / jcts.length).toBeCloseTo(metrics.jct_s?.mean ?? NaN, 6)
    const series = rowsOf(join(out, 'series.csv'))
    expect(Number(series.at(-1)?.['t_s'])).toBe(virtual_s)
    const starts = [0, ...series.map((row) => Number(row['t_s']))]
    const busyShare = series.reduce(
      (sum, row, i) =>
        sum + Number(row['utilization_percent']) * (Number(row['t_s']) - (starts[i] as number)),
      0,
    )
    expect(busyShare / virtual_s).toBeCloseTo(metrics.utilization_percent ?? NaN, 2)
    const swapOuts = series.reduce((sum, row) => sum + Number(row['swap_outs']), 0)
    expect(swapOuts / (virtual_s / 3600)).toBeCloseTo(metrics.swaps_per_hour, 6)
    expect(swapOuts).toBeGreaterThan(0)
  })

  it('prints a summary on stdout and its duration on stderr', async () => {
    const { code, stdout, stderr } = await headroom(['sim', 'run', busy])
    expect(code).toBe(0)
    expect(stdout.split('\n').map((line) => line.split(/ {2,}/)[0])).toEqual([
      'busy',
      'tasks',
      'utilization',
      'starvation',
      'queue wait',
      'wake',
      'completion',
      'slowdown',
      'makespan',
      'swaps',
      'digest',
      '',
    ])
    expect(stderr).toMatch(/^took \d+\.\d s; CPU time: \d+\.\d s, of which \d+\.\d s for decisions\n$/m)
  })

  it('accepts another seed, another percentage and another end', async () => {
    const run = (...args: string[]): Promise<Printed> => headroomJson<Printed>(['sim', 'run', busy, ...args])
    const [seeded, denser, shorter, longer] = await Promise.all([
      run('--seed', '7'),
      run('--overcommit', '0'),
      run('--until', '3h'),
      run('--until', '12h'),
    ])
    expect(seeded.seed).toBe(7)
    expect(denser.metrics.swaps_per_hour).toBe(0)
    expect(shorter.metrics.tasks.submitted).toBeLessThan(denser.metrics.tasks.submitted)
    expect(longer.metrics.tasks.submitted).toBeGreaterThan(denser.metrics.tasks.submitted)
    expect(new Set([seeded, denser, shorter, longer].map(({ digest }) => digest)).size).toBe(4)
  })
})

describe('the end of a run', () => {
  const task = (fields: string): string => `  - { task: { ${fields} } }\n`

  it('is the end of the last task that can end, even if another task can never start', async () => {
    const file = small(
      'hopeless',
      `workload:\n${task('id: a, vram_mib: 5000, run: 30m')}${task('id: never, vram_mib: 9000')}`,
    )
    const { virtual_s, metrics } = await headroomJson<Printed>(['sim', 'run', file])
    expect({ virtual_s, tasks: metrics.tasks }).toEqual({
      virtual_s: 1800,
      tasks: { submitted: 2, completed: 1, failed: 0, unfinished: 1, fit_nowhere: 1 },
    })
    const enacted = await headroomJson<Printed>(['sim', 'run', file, '--enact-heartbeats'])
    expect({ virtual_s: enacted.virtual_s, digest: enacted.digest }).toEqual({
      virtual_s,
      digest: (await headroomJson<Printed>(['sim', 'run', file])).digest,
    })
  })

  it('is reached when a swapped-out task can never return, also with every heartbeat sent', async () => {
    const file = write(
      folder,
      'locked-out.scenario.yaml',
      `scenario: locked-out
version: 1
fleet: [{ name: n, gpu: { vram_mib: 10000 } }]
config: { default_vram_overcommit_percent: 100, idle_swap_out_seconds: 60 }
workload:
  - { task: { id: a, vram_mib: 7000, work: { kind: phases, phases: [[1m, 1h], [1m, 0]] } } }
  - { task: { id: b, at: 10m, vram_mib: 5000, run: 10m } }
operator:
  - { at: 15m, put: "/api/v1/nodes/{node:n}/config",
      body: { safety_reserve_mib: 4000, overcommit_vram_percent: 100 }, expect: 200 }
`,
    )
    const out = join(folder, 'out-locked-out')
    const [plain, enacted] = await Promise.all([
      headroomJson<Printed>(['sim', 'run', file, '--out', out]),
      headroomJson<Printed>(['sim', 'run', file, '--enact-heartbeats']),
    ])
    expect(plain.metrics.tasks).toEqual({ submitted: 2, completed: 1, failed: 0, unfinished: 1 })
    expect(plain.virtual_s).toBeLessThan(2 * 3600)
    expect({ digest: enacted.digest, tasks: enacted.metrics.tasks }).toEqual({
      digest: plain.digest,
      tasks: plain.metrics.tasks,
    })
    expect(enacted.virtual_s).toBeLessThan(9 * 86_400)
    expect(rowsOf(join(out, 'tasks.csv')).map(({ id, state }) => [id, state])).toEqual([
      ['b', 'completed'],
      ['a', 'running'],
    ])
  })

  it('waits for the cancellation of a task that cannot start', async () => {
    const file = small(
      'cancelled',
      `workload:\n${task('id: a, vram_mib: 5000, run: 30m')}` +
        `${task('id: never, vram_mib: 9000, cancel_at: 2h')}`,
    )
    const { virtual_s, metrics } = await headroomJson<Printed>(['sim', 'run', file])
    expect({ virtual_s, unfinished: metrics.tasks.unfinished }).toEqual({ virtual_s: 7200, unfinished: 0 })
  })

  it('is not before until, and exactly until without drain; later arrivals are not submitted', async () => {
    const workload =
      `workload:\n${task('id: a, vram_mib: 5000, run: 30m')}` +
      `${task('id: b, at: 50m, vram_mib: 5000, run: 30m')}${task('id: c, at: 61m, vram_mib: 5000')}`
    const [idle, drained, cut] = await Promise.all([
      headroomJson<Printed>([
        'sim',
        'run',
        small('idle', `clock: { until: 3h }\nworkload:\n${task('id: a, vram_mib: 5000, run: 30m')}`),
      ]),
      headroomJson<Printed>(['sim', 'run', small('drained', `clock: { until: 1h }\n${workload}`)]),
      headroomJson<Printed>(['sim', 'run', small('cut', `clock: { until: 1h, drain: false }\n${workload}`)]),
    ])
    expect(idle.virtual_s).toBe(10_800)
    expect({ at: drained.virtual_s, tasks: drained.metrics.tasks }).toEqual({
      at: 4800,
      tasks: { submitted: 2, completed: 2, failed: 0, unfinished: 0 },
    })
    expect({ at: cut.virtual_s, tasks: cut.metrics.tasks }).toEqual({
      at: 3600,
      tasks: { submitted: 2, completed: 1, failed: 0, unfinished: 1 },
    })
  })

  it('is reached at once without tasks', async () => {
    expect(await headroomJson(['sim', 'run', small('empty', '')])).toMatchObject({
      virtual_s: 0,
      metrics: { jct_s: null, utilization_percent: null },
    })
  })
})

describe('the operator of a scenario', () => {
  const operator = (...actions: string[]): string =>
    `${SMALL}workload: [{ task: { id: a, vram_mib: 5000, run: 2h } }]\noperator:\n` +
    `${actions.map((each) => `  - { ${each} }\n`).join('')}`

  it('uses the real routes in virtual time, and the changes take effect', async () => {
    const file = write(
      folder,
      'operator.scenario.yaml',
      operator(
        'at: 10m, put: /api/v1/config, body: { default_vram_overcommit_percent: 80 }, expect: 200',
        'at: 20m, put: "/api/v1/nodes/{node:n}/config", body: { overcommit_vram_percent: 0 }, expect: 200',
        'at: 30m, put: /api/v1/config, body: { default_vram_overcommit_percent: 1001 }, expect: 400',
        'at: 40m, get: /api/v1/config, expect: 200',
        'at: 50m, delete: /api/v1/tasks/a, expect: 202',
      ),
    )
    const out = join(folder, 'out-operator')
    const { virtual_s } = await headroomJson<Printed>(['sim', 'run', file, '--out', out])
    expect(virtual_s).toBe(3000)
    const events = readFileSync(join(out, 'journal.jsonl'), 'utf8')
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as { kind: string; at: number })
    const start = Date.UTC(2026, 0, 1)
    const changes = events
      .filter(({ kind }) => kind.includes('config_changed'))
      .map(({ kind, at }) => [kind, (at - start) / 60_000])
    expect(changes).toEqual([
      ['config_changed', 10],
      ['node_config_changed', 20],
    ])
  })

  it('fails the run if an answer is unexpected or an action is not reached', async () => {
    const wrong = write(
      folder,
      'wrong.scenario.yaml',
      operator('at: 10m, get: /api/v1/nodes/none, expect: 200'),
    )
    const refused = await headroom(['sim', 'run', wrong])
    expect(refused.code).toBe(1)
    expect(refused.stderr).toMatch(
      /operator at 10m: GET \/api\/v1\/nodes\/none was answered 404, expected is 200: /,
    )
    const late = write(
      folder,
      'late.scenario.yaml',
      operator('at: 3h, get: /api/v1/config').replace('fleet', 'clock: { until: 1h, drain: false }\nfleet'),
    )
    const missed = await headroom(['sim', 'run', late])
    expect(missed.code).toBe(1)
    expect(missed.stderr).toContain('the run ended before 1 of its actions')
  })
})

describe('headroom sim replay', () => {
  it('loads no server, no store and no YAML parser', async () => {
    const spy = write(folder, 'spy.mjs', PACKAGE_SPY)
    const trace = write(folder, 'one.trace.jsonl', '{"trace":"one","version":1,"t_unit":"ms"}\n')
    const fleet = ['--nodes', '1', '--gpus-per-node', '2', '--vram-mib', '16384']
    const { stderr } = await headroom(['sim', 'replay', trace, ...fleet], {
      env: { NODE_OPTIONS: `--import=${spy}` },
    })
    expect(stderr).toMatch(/^packages: commander seedrandom$/m)
  })

  it('says which data is synthetic, and that overcommit has no effect', async () => {
    const csv = write(folder, 'jobs.csv', 'job_id,num_gpu,submit_time,duration\na,1,0,60\nb,2,30,90\n')
    const trace = join(folder, 'jobs.trace.jsonl')
    await headroom(['trace', 'import', 'tiresias', csv, '-o', trace])
    const fleet = [
      '--nodes',
      '1',
      '--gpus-per-node',
      '2',
      '--vram-mib',
      '24Gi',
      '--safety-reserve-mib',
      '1024',
      '--idle-swap-out',
      '60',
    ]
    const { code, stderr } = await headroom([
      'sim',
      'replay',
      trace,
      ...fleet,
      '--overcommit',
      '50',
      '--max-gpus',
      '2',
      '--until',
      '1h',
      '--wire',
    ])
    expect(code).toBe(0)
    expect(stderr).toContain('not measured: gpu_mode, activity')
    expect(stderr).toContain('never idle')
  })
})

/** Prints at the end which packages were loaded. */
const PACKAGE_SPY = `import { registerHooks } from 'node:module'
const packages = new Set()
registerHooks({ load: (url, context, next) => {
  const name = /node_modules\\/((?:@[^/]+\\/)?[^/]+)/.exec(url)?.[1]
  if (name !== undefined) packages.add(name)
  return next(url, context)
} })
process.on('exit', () => process.stderr.write(\`packages: \${[...packages].join(' ')}\\n\`))
`

function rowsOf(file: string): Record<string, string>[] {
  const [head, ...lines] = readFileSync(file, 'utf8').trimEnd().split('\n')
  const columns = (head ?? '').split(',')
  return lines.map((line) => Object.fromEntries(line.split(',').map((cell, i) => [columns[i], cell])))
}
