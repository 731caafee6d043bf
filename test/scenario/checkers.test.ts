import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { FairnessTracker } from '../../simulator/check/fairness-tracker.ts'
import type { FairnessStep } from '../../simulator/check/fairness-tracker.ts'
import { METRIC_PATHS } from '../../simulator/scenario/metrics.ts'
import { describeViolation } from '../../simulator/check/violation.ts'
import { forged, ForgedRun } from '../support/forged-run.ts'

const IDLE_MS = 300_000

describe('The rule single_run', () => {
  it('detects two concurrent attempts of a task', () => {
    const run = forged('single_run').run('x').lives('x', 'b').residency('x', 'resident')
    expect(run.found).toEqual(['single_run: attempts of it run on a and b at once'])
  })

  it('detects a second placement next to the first, and one during a live attempt', () => {
    expect(forged('single_run').run('x').place('x', { node: 'b' }).found).toEqual([
      'single_run: it is placed again while attempt 1 is still placed',
      'single_run: it is placed while an attempt of it runs on a',
    ])
  })

  it('accepts a second run after the end of the first', () => {
    const run = forged('single_run')
      .submit('x')
      .place('x')
      .tell('task_returned', 'x', 'a')
      .place('x', { node: 'b' })
      .start('x', { node: 'b' })
    expect(run.found).toEqual([])
  })
})

describe('The rule resident_within_capacity', () => {
  it('detects a placement, a swap-in and a growth beyond the capacity', () => {
    const placed = forged('resident_within_capacity')
      .run('x', {}, { mib: 500 })
      .submit('y')
      .place('y', { mib: 401 })
    expect(placed.found).toEqual([
      'resident_within_capacity: GPU 0 has 901 MiB resident, the maximum is 900 MiB',
    ])
    const returned = forged('resident_within_capacity')
      .run('x', {}, { mib: 500 })
      .residency('x', 'swapped_out')
      .run('y', {}, { mib: 500 })
    expect(returned.residency('x', 'swapping_in').found).toHaveLength(1)
    const grown = forged('resident_within_capacity')
      .run('x', {}, { mib: 500 })
      .tell('growth_granted', 'x', 'a', { demand_mib: 901 })
    expect(grown.found).toHaveLength(1)
  })

  it('ignores swapped-out tasks, and applies a raised reserve only to later additions', () => {
    const run = forged('resident_within_capacity')
      .run('x', {}, { mib: 500 })
      .residency('x', 'swapped_out')
      .run('y', {}, { mib: 900 })
    run.tell('node_config_changed', null, 'a', { safety_reserve_mib: 200 })
    expect(run.found).toEqual([])
    expect(run.submit('z').place('z', { mib: 1 }).found).toEqual([
      'resident_within_capacity: GPU 0 has 901 MiB resident, the maximum is 800 MiB',
    ])
  })
})

describe('The rule reserve_kept', () => {
  it('detects a server that uses VRAM of the reserve', () => {
    expect(forged('reserve_kept').run('x', {}, { mib: 901 }).found).toEqual([
      'reserve_kept: GPU 0 has 99 MiB left, the reserve is 100 MiB',
    ])
  })

  it('accepts tasks that were placed before the reserve was raised', () => {
    const run = forged('reserve_kept').run('x', {}, { mib: 850 })
    expect(
      run.tell('config_changed', null, null, { revision: 1, safety_reserve_mib: 200 }).finish('absent').found,
    ).toEqual([])
    expect(run.run('y', {}, { mib: 1 }).found).toHaveLength(1)
  })
})

describe('The rule commit_limit', () => {
  it('detects a placement beyond the limit, and at 0 % beyond the resident capacity', () => {
    const run = forged('commit_limit').run('x', {}, { mib: 800 }).submit('y').place('y', { mib: 701 })
    expect(run.found).toEqual(['commit_limit: 1501 MiB are committed on GPU 0, the limit is 1500 MiB'])
    const off = forged('commit_limit')
      .tell('node_config_changed', null, 'a', { overcommit_vram_percent: 0 })
      .submit('x')
      .place('x', { mib: 901 })
    expect(off.found).toEqual(['commit_limit: 901 MiB are committed on GPU 0, the limit is 900 MiB'])
  })

  it('accepts an excess from a growth or a lowered limit while a task waits', () => {
    const run = forged('commit_limit').run('x', {}, { mib: 800 }).submit('y')
    run.tell('growth_granted', 'x', 'a', { demand_mib: 850 })
    run.tell('config_changed', null, null, { revision: 1, default_vram_overcommit_percent: 0 })
    expect(run.place('y', { mib: 700, when: 'after_swap' }).found).toEqual([])
  })
})

describe('The rule admission_rules', () => {
  it('detects a placement on too few GPUs, and accepts one on all of them', () => {
    const fewer = forged('admission_rules')
      .submit('x', { gpuCount: 2 })
      .place('x', { gpus: [1] })
    expect(fewer.found).toEqual(['admission_rules: it is placed on 1 GPUs, but requests 2'])
    expect(
      forged('admission_rules')
        .submit('x', { gpuCount: 2 })
        .place('x', { gpus: [0, 1] }).found,
    ).toEqual([])
  })
})

describe('The rule noswap_never_swapped', () => {
  it('detects a swap in events and on servers', () => {
    const run = forged('noswap_never_swapped').run('x', { noswap: 1 }).residency('x', 'swapping_out')
    expect(run.found).toEqual(['noswap_never_swapped: it is noswap, and swapping_out'])
    const server = forged('noswap_never_swapped')
      .run('x', { noswap: 1 })
      .lives('x', 'a', { residency: 'swapped_out' })
      .submit('y')
      .place('y')
    expect(server.found).toEqual(['noswap_never_swapped: on its server it is noswap, and swapped_out'])
  })

  it('follows the current setting of the client', () => {
    const run = forged('noswap_never_swapped').run('x', { noswap: 1 }).change('x', { noswap: 0 })
    expect(run.lives('x', 'a', { noswap: 0 }).residency('x', 'swapping_out').found).toEqual([])
  })
})

describe('The rule idle_rule', () => {
  const watched = (config = {}) => forged('idle_rule', config).run('x').submit('asks')

  it('detects a victim before the end of the idle period, which is inclusive', () => {
    expect(
      watched()
        .after(IDLE_MS - 1)
        .decide('asks', [{ id: 'x' }]).found,
    ).toEqual([
      'idle_rule: it is swapped out for asks, but it is idle for 299999 ms, the idle period is 300000 ms',
    ])
    expect(
      watched()
        .after(IDLE_MS)
        .decide('asks', [{ id: 'x' }]).found,
    ).toEqual([])
  })

  it('counts from the last use, and from the last swap-in', () => {
    const used = watched().after(IDLE_MS)
    expect(
      used.lives('x', 'a', { lastUseAt: used.now - 1 }).decide('asks', [{ id: 'x' }]).found,
    ).toHaveLength(1)
    const returned = watched()
      .residency('x', 'swapping_out')
      .residency('x', 'swapped_out')
      .after(IDLE_MS)
      .residency('x', 'swapping_in')
    expect(
      returned
        .residency('x', 'resident')
        .after(1)
        .decide('asks', [{ id: 'x' }]).found,
    ).toHaveLength(1)
  })

  it('accepts an active victim after max_residency_seconds, unless it is P0', () => {
    const run = watched({ max_residency_seconds: 60 }).run('p0', { priority: 0 }).after(60_000)
    for (const id of ['x', 'p0']) run.lives(id, 'a', { wantsGpu: true })
    expect(run.decide('asks', [{ id: 'x' }]).found).toEqual([])
    expect(run.decide('asks', [{ id: 'p0' }]).found).toEqual([
      'idle_rule: it is swapped out for asks, but it wants the GPU',
    ])
  })

  it('detects other tasks that are not eligible', () => {
    const run = watched()
      .run('noswap', { noswap: 1 })
      .run('elsewhere', {}, { node: 'b' })
      .submit('waits')
      .after(IDLE_MS)
    run.decide('asks', [
      { id: 'noswap' },
      { id: 'elsewhere' },
      { id: 'waits' },
      { id: 'asks' },
      { id: 'absent' },
    ])
    expect(run.found.map((each) => each.split(', but ')[1])).toEqual([
      'it is noswap',
      'it is not on that node',
      'it is not on that node',
      'it is the requester',
      'it is unknown',
    ])
    const failed = watched()
      .after(IDLE_MS)
      .tell('swap_failed', 'x', 'a')
      .after(29_999)
      .decide('asks', [{ id: 'x' }])
    expect(failed.found).toEqual([
      'idle_rule: it is swapped out for asks, but it is in back-off after a failed swap',
    ])
  })

  it('detects a host without enough memory', () => {
    const run = forged('idle_rule')
      .run('big', {}, { gpus: [0, 1], mib: 900 })
      .run('away', {}, { gpus: [0, 1], mib: 1200 })
      .submit('asks')
    run.residency('away', 'swapped_out').after(IDLE_MS)
    expect(run.decide('asks', [{ id: 'big' }]).found).toEqual([
      'idle_rule: it is swapped out for asks, but it does not fit in host memory',
    ])
  })

  it('detects a swap-out without a decision', () => {
    expect(watched().after(IDLE_MS).residency('x', 'swapping_out', 'for asks').found).toEqual([
      'idle_rule: no decision swaps it out',
    ])
  })
})

describe('The rule p0_rule', () => {
  const watched = (priority: 0 | 2) =>
    forged('p0_rule').run('p0', { priority: 0 }).run('x').submit('asks', { priority }).after(IDLE_MS)

  it('detects a P0 victim for a task that is not P0', () => {
    expect(watched(2).decide('asks', [{ id: 'x' }, { id: 'p0', class: 'p0' }]).found).toEqual([
      'p0_rule: it is P0, and swapped out for asks, which is not',
    ])
  })

  it('detects a P0 victim while another candidate was left', () => {
    expect(watched(0).decide('asks', [{ id: 'p0', class: 'p0' }]).found).toEqual([
      'p0_rule: it is P0, and swapped out before x of GPU 0',
    ])
    expect(watched(0).decide('asks', [{ id: 'x' }, { id: 'p0', class: 'p0' }]).found).toEqual([])
  })

  it('accepts a P0 victim while other tasks are active', () => {
    expect(
      watched(0)
        .lives('x', 'a', { wantsGpu: true })
        .decide('asks', [{ id: 'p0', class: 'p0' }]).found,
    ).toEqual([])
  })
})

describe('The rule fairness_bound', () => {
  it('detects repeated swap-outs of the same one of two tasks', () => {
    const run = forged('fairness_bound').run('x').run('y').submit('asks').after(IDLE_MS)
    run.decide('asks', [{ id: 'x' }])
    expect(run.found).toEqual([])
    run.decide('asks', [{ id: 'x' }], { closed: ['non_p0'] })
    expect(run.found).toEqual([
      'fairness_bound: swap-outs of x and y, non-P0 tasks of GPU 0, differ by 2 where 1 is the bound',
    ])
  })

  it('detects a round closed without reason, and a closed round that is not reported', () => {
    const run = forged('fairness_bound').run('x').submit('asks').after(IDLE_MS)
    run.decide('asks', [{ id: 'x' }], { closed: ['non_p0'] }).decide('asks', [{ id: 'x' }])
    expect(run.found).toEqual([
      'fairness_bound: the round of the non-P0 tasks of GPU 0 is reported as closed, but is open',
      'fairness_bound: the round of the non-P0 tasks of GPU 0 is closed but not reported',
    ])
  })

  it('does not compare with a task that was active', () => {
    const run = forged('fairness_bound')
      .run('x')
      .run('y')
      .submit('asks')
      .after(IDLE_MS)
      .lives('y', 'a', { wantsGpu: true })
    run.decide('asks', [{ id: 'x' }])
    for (let i = 0; i < 5; i++) run.decide('asks', [{ id: 'x' }], { closed: ['non_p0'] })
    expect(run.found).toEqual([])
  })

  it('does not compare with a task that was chosen for an earlier GPU of the decision', () => {
    const wide = { gpuCount: 2 }
    const run = forged('fairness_bound')
      .run('wide', wide, { gpus: [0, 1] })
      .run('narrow', {}, { gpus: [1] })
      .submit('asks', wide)
      .after(IDLE_MS)
    const both = [{ id: 'wide' }, { id: 'narrow', gpu: 1 }]
    run.decide('asks', both, { missing: [0, 1] })
    for (let i = 0; i < 4; i++) {
      run.tell('swap_decided', 'asks', 'a', {
        for: 'placement',
        victims: both.map((victim) => ({ gpu: 0, class: 'non_p0', ...victim })),
        closed_rounds: [0, 1].map((gpu) => ({ gpu, class: 'non_p0' })),
        missing: [0, 1].map((gpu) => ({ gpu, mib: 100 })),
      })
    }
    expect(run.found).toEqual([])
  })

  it('finds, pair by pair, exactly what trying every window finds', () => {
    const ids = ['a', 'b', 'c', 'd']
    const step = fc
      .record({ victims: fc.subarray(ids), idle: fc.subarray(ids) })
      .map(({ victims, idle }): FairnessStep => {
        return { victims, available: new Set([...victims, ...idle]) }
      })
    const property = fc.property(fc.array(step, { minLength: 1, maxLength: 8 }), (steps) => {
      const book = new FairnessTracker()
      for (const id of ids) book.join(id)
      const found = steps.map((each) => book.decide(each) !== null)
      expect(found.includes(true)).toBe(hasBreach(ids, steps))
    })
    fc.assert(property, { seed: 20_250_614, numRuns: 3000 })
  })
})

describe('The rule group_isolation', () => {
  const grouped = () =>
    forged('group_isolation').tell('group_changed', null, null, { group: 'g', nodes: ['a'] })

  it('detects a task without groups on a node of a group, and the opposite', () => {
    expect(grouped().submit('x').place('x').found).toEqual([
      'group_isolation: it targets no group, the node belongs to g',
    ])
    const astray = grouped()
      .submit('x', { groups: ['g'] })
      .place('x', { node: 'b' })
    expect(astray.found).toEqual(['group_isolation: it targets g, the node belongs to no group'])
  })

  it('accepts any of the groups, and tasks that were placed before the change', () => {
    const run = forged('group_isolation')
      .run('x')
      .tell('group_changed', null, null, { group: 'g', nodes: ['a'] })
    expect(
      run
        .residency('x', 'swapping_in')
        .submit('y', { groups: ['f', 'g'] })
        .place('y').found,
    ).toEqual([])
    expect(run.tell('group_deleted', null, null, { group: 'g' }).submit('z').place('z').found).toEqual([])
  })
})

describe('The assertion eventually', () => {
  const eventually = (that: 'every_feasible_task_runs' | 'all_tasks_finish', withinMs: number | null) =>
    new ForgedRun({ eventually: [{ that, after: 'heal', withinMs }] })

  it('detects a task that never started although it could', () => {
    const run = eventually('every_feasible_task_runs', null)
      .submit('x')
      .submit('huge', { vramMib: 901 })
      .submit('lost', { groups: ['none'] })
    expect(run.end().found).toEqual(['every_feasible_task_runs: it has not started'])
  })

  it('detects a task that started too late or still waits after its time', () => {
    const run = eventually('every_feasible_task_runs', 1000)
      .submit('x')
      .submit('y')
      .after(1000)
      .place('x')
      .start('x')
    expect(run.found).toEqual([])
    expect(run.after(500).submit('z').after(1).place('y').start('y').found).toEqual([
      'every_feasible_task_runs: it has started 501 ms too late',
    ])
    expect(run.after(1000).end().found).toHaveLength(2)
  })

  it('detects a task that did not finish, or finished too late', () => {
    expect(eventually('all_tasks_finish', null).run('x').run('y').finish('y').end().found).toEqual([
      'all_tasks_finish: it has not finished',
    ])
    expect(eventually('all_tasks_finish', 10).run('x').after(11).finish('x').end().found).toEqual([
      'all_tasks_finish: it has finished 1 ms too late',
    ])
  })
})

describe('The assertion sometimes', () => {
  const sometimes = (name: ConstructorParameters<typeof ForgedRun>[0]['sometimes']) =>
    new ForgedRun({ sometimes: name ?? [] })

  it('detects that nothing of the kind has happened', () => {
    const names = [
      'swap_out',
      'swap_in',
      'p0_preempts_p0',
      'task_waits',
      'reservation',
      'multi_gpu_placed',
    ] as const
    const run = sometimes(names).run('x').residency('x', 'resident').after(1).finish('x').end()
    expect(run.found).toEqual(names.map((name) => `${name}: it has never happened`))
  })

  it('accepts that it has happened', () => {
    const run = sometimes([
      'swap_out',
      'swap_in',
      'p0_preempts_p0',
      'task_waits',
      'reservation',
      'multi_gpu_placed',
    ])
    run
      .run('x', { priority: 0, gpuCount: 2 }, { gpus: [0, 1] })
      .submit('p0', { priority: 0 })
      .after(IDLE_MS)
    run
      .decide('p0', [{ id: 'x', class: 'p0' }])
      .residency('x', 'swapping_out')
      .residency('x', 'swapped_out')
    run.place('p0', { when: 'after_swap' }).residency('x', 'swapping_in').residency('x', 'resident')
    expect(run.end().found).toEqual([])
  })

  it('counts a task that still waits at the end if it could run', () => {
    expect(sometimes(['task_waits', 'reservation']).submit('x').after(IDLE_MS).end().found).toEqual([])
    expect(
      sometimes(['task_waits']).submit('huge', { vramMib: 901 }).after(IDLE_MS).end().found,
    ).toHaveLength(1)
  })
})

describe('The assertion final', () => {
  const final = (metric: string, bounds: { min?: number; max?: number; equals?: number }) =>
    new ForgedRun({ final: [{ metric, min: null, max: null, equals: null, ...bounds }] })
  const waits = { queue_wait_s: { mean: 1, p50: 1, p95: 5, p99: 9 } }

  it('checks a number against its inclusive bounds', () => {
    expect(final('queue_wait_s.p99', { min: 9, max: 9, equals: 9 }).end(waits).found).toEqual([])
    expect(final('queue_wait_s.p99', { max: 8 }).end(waits).found).toEqual([
      'queue_wait_s.p99: it is 9, the maximum is 8',
    ])
    expect(final('queue_wait_s.p99', { min: 10 }).end(waits).found).toEqual([
      'queue_wait_s.p99: it is 9, the minimum is 10',
    ])
    expect(final('tasks.failed', { equals: 1 }).end().found).toEqual(['tasks.failed: it is 0, expected 1'])
  })

  it('fails without a number', () => {
    expect(final('queue_wait_s.p99', { max: 9 }).end().found).toEqual([
      'queue_wait_s.p99: the result has no such number: nothing happened that it counts',
    ])
  })

  it('refuses an unknown metric and suggests the most similar one', () => {
    expect(() => final('queue_wait_s.p98', { max: 1 })).toThrow(
      'the result has no number queue_wait_s.p98; did you mean queue_wait_s.p',
    )
    expect(() => final('queue_wait_s', { max: 1 })).toThrow(RangeError)
    expect(METRIC_PATHS).toContain('starvation_percent.swap')
  })
})

it('A violation names rule, time and place', () => {
  const run = forged('reserve_kept').run('x', {}, { mib: 901 })
  expect(run.checker.violations.map(describeViolation)).toEqual([
    'reserve_kept at 1970-01-01T00:16:40.000Z (node a): GPU 0 has 99 MiB left, the reserve is 100 MiB',
  ])
})

it('20 violations of one rule are listed and the others counted, separately for each rule', () => {
  const final = [{ metric: 'tasks.submitted', min: null, max: 3, equals: null }]
  const run = new ForgedRun({ always: ['group_isolation'], final })
  run.tell('group_changed', null, null, { group: 'g', nodes: ['a'] })
  for (let i = 0; i < 150; i++) run.submit(`x${i}`).place(`x${i}`)
  const found = run.end({ tasks: { submitted: 150, completed: 0, failed: 0, unfinished: 150 } }).found
  expect(found).toHaveLength(22)
  expect(found.slice(20)).toEqual([
    'tasks.submitted: it is 150, the maximum is 3',
    'group_isolation: and 130 more times',
  ])
})

function hasBreach(ids: readonly string[], steps: readonly FairnessStep[]): boolean {
  const rounds = roundsOf(steps)
  for (let from = 0; from < rounds.length; from++) {
    if (hasBreachFrom(ids, rounds, from, false, 2)) return true
    const isRoundStart = from === 0 || (rounds[from]?.swapped.length ?? 0) > 0
    if (isRoundStart && hasBreachFrom(ids, rounds, from, (rounds[from]?.swapped.length ?? 0) > 0, 1))
      return true
    if (from === 0 && hasBreachFrom(ids, rounds, from, false, 1)) return true
  }
  return false
}

interface RoundStep {
  readonly fresh: readonly string[]
  readonly swapped: readonly string[]
  readonly available: ReadonlySet<string>
}

/**
 * Victims grouped by whether they were already swapped out in the round; an already swapped victim closes the
 * round and belongs to the next.
 */
function roundsOf(steps: readonly FairnessStep[]): RoundStep[] {
  let marked = new Set<string>()
  return steps.map(({ victims, available }) => {
    const swapped = victims.filter((id) => marked.has(id))
    const fresh = victims.filter((id) => !marked.has(id))
    marked = swapped.length > 0 ? new Set(swapped) : new Set([...marked, ...fresh])
    return { fresh, swapped, available }
  })
}

/**
 * @param isNewRound whether the window begins inside its first decision, with the round that this decision
 * begins
 */
function hasBreachFrom(
  ids: readonly string[],
  steps: readonly RoundStep[],
  from: number,
  isNewRound: boolean,
  bound: number,
): boolean {
  const counts = new Map(ids.map((id) => [id, 0]))
  let comparable = [...ids]
  for (const [to, step] of steps.entries()) {
    if (to < from) continue
    const isInside = to === from && isNewRound
    for (const id of isInside ? step.swapped : [...step.fresh, ...step.swapped])
      counts.set(id, (counts.get(id) ?? 0) + 1)
    if (step.swapped.length > 0 && !isInside) comparable = comparable.filter((id) => step.available.has(id))
    const present = comparable.map((id) => counts.get(id) ?? 0)
    if (Math.max(...present, 0) - Math.min(...present, Infinity) > bound) return true
  }
  return false
}
