import { describe, expect, test } from 'vitest'
import type { NodeBody } from '../../controller/api/nodes/schema.ts'
import {
  conditionWords,
  CONDITIONS,
  gpuModels,
  groupWords,
  statusWords,
  troubleWords,
} from '../../ui/format/nodes.ts'
import { askedWords, idleWords, reasonOf, residencyWords, usedMib } from '../../ui/format/tasks.ts'
import { choiceWords, levelWords } from '../../ui/format/victims.ts'
import { eventWords, factWords, tasksOf } from '../../ui/format/events.ts'
import { EVENT_GROUPS, SWAP_KINDS } from '../../ui/format/event-groups.ts'
import { typedWhole } from '../../ui/format/whole-number.ts'
import { changeOf, draftOf, settingsWords } from '../../ui/pages/nodes/override-draft.ts'
import { isFiltered, sortsOf, taskQueryOf } from '../../ui/pages/tasks/task-filter.ts'
import {
  whyNotHold,
  whyNotOwn,
  whyNotPatch,
  whyNotRelease,
  whyNotSwapIn,
  whyNotSwapOut,
} from '../../ui/pages/tasks/task-rights.ts'
import { noForecastWords } from '../../ui/format/forecast.ts'
import { NODE_CONDITIONS } from '../../controller/model/node-conditions.ts'
import { troubled } from '../../ui/pages/dashboard/rankings.ts'

const placement = {
  node_id: 'n',
  node_name: 'gpu-1',
  gpus: [0],
  demand_mib: 4096,
  residual_mib: 0,
  memory_mib: null,
  vram_limit_mib: null,
  memory_limit_mib: null,
  wants_gpu: false,
  can_signal: true,
  idle_since: '2026-01-01T00:00:00.000Z',
  assigned_at: '2026-01-01T00:00:00.000Z',
  started_at: '2026-01-01T00:00:00.000Z',
}

describe('the shown state of a task', () => {
  test('has used VRAM of 0 while swapped out, and unknown VRAM while not placed', () => {
    expect(usedMib({ placement, residency: 'swapped_out' })).toBe(0)
    expect(usedMib({ placement, residency: 'resident' })).toBe(4096)
    expect(usedMib({ placement: null, residency: 'none' })).toBe(null)
  })

  test('has an idle time only for a started task that does not want the GPU', () => {
    const now = Date.parse('2026-01-01T00:02:05.000Z')
    const residency = 'resident'
    expect(idleWords({ placement, residency }, now)).toBe('2 min 5 s')
    expect(idleWords({ placement: { ...placement, wants_gpu: true }, residency }, now)).toBe('wants the GPU')
    expect(idleWords({ placement: { ...placement, started_at: null }, residency }, now)).toBe('—')
    expect(idleWords({ placement: null, residency: 'none' }, now)).toBe('—')
  })

  test('has no idle time for a swapped-out task that cannot signal', () => {
    const now = Date.parse('2026-01-01T00:02:05.000Z')
    const unable = { ...placement, can_signal: false }
    expect(idleWords({ placement: unable, residency: 'swapped_out' }, now)).toBe('—')
    expect(idleWords({ placement: unable, residency: 'resident' }, now)).toBe('2 min 5 s')
    expect(idleWords({ placement, residency: 'swapped_out' }, now)).toBe('2 min 5 s')
  })

  test('has its demand per GPU', () => {
    expect(askedWords({ vram_mib: 16_384, gpu_count: 4 })).toBe('4 × 16.0 GiB')
    expect(askedWords({ vram_mib: null, gpu_count: 1 })).toBe('whole GPU')
  })

  test('has words for residency and reasons', () => {
    expect(residencyWords({ residency: 'swapping_in' })).toBe('swapping in')
    expect(residencyWords({ residency: 'none' })).toBe('—')
    expect(reasonOf({ wait: null, end_reason: 'exit' })).toBe('exit')
    expect(reasonOf({ wait: null, end_reason: null })).toBe('')
    expect(levelWords('non_p0_swapped')).toBe('not P0, swapped out in this round')
    expect(levelWords('of_tomorrow')).toBe('of tomorrow')
    expect(choiceWords(null)).toBe('stays')
    expect(eventWords('task_placed')).toBe('task placed')
    expect(factWords({ when: 'now', gpus: [0, 1], reason: null })).toBe('immediately, GPU 0, 1')
  })

  test('has event data with task names and units, without internal counters', () => {
    const swap = {
      decision: 3,
      for: 'placement',
      victims: [{ id: 'v1', gpu: 2, class: 'p0' }],
      closed_rounds: [],
      missing: [{ gpu: 2, mib: 12_288 }],
    }
    expect(factWords(swap, { v1: 'notebook' })).toBe(
      'for a placement, notebook swapped out of GPU 2, 12.0 GiB missing on GPU 2',
    )
    expect(factWords(swap)).toContain('v1 swapped out of GPU 2')
    expect(factWords({ residency: 'swapped_out', generation: 2, because: 'for v1' }, { v1: 'eager' })).toBe(
      'swapped out, for eager',
    )
    const gone = 'c5217096-051c-48eb-aa0a-42a749b7ac88'
    expect(factWords({ residency: 'swapping_out', because: `for ${gone}` })).toBe(`swapping out, for ${gone}`)
    expect(factWords({ residency: 'swapping_out', because: 'for my-own-id' })).toBe(
      'swapping out, for my-own-id',
    )
    expect(factWords({ stopping: true, because: 'max_runtime_seconds' })).toBe(
      'stopping, because of max runtime seconds',
    )
    expect(factWords({ for: 'swap_in' })).toBe('for a swap-in')
    expect(factWords({ seq: 9, gpus: 1, vram_mib: 9_879, mode: 'shared', noswap: 0, priority: 2 })).toBe(
      '9.6 GiB, swappable, P2',
    )
    expect(factWords({ waited_ms: 5_180, mib: 7_479, default_vram_overcommit_percent: 40 })).toBe(
      'waited 5.2 s, 7.3 GiB, default vram overcommit 40%',
    )
  })
})

describe('the tasks of an event', () => {
  test("are the victims of a decided swap-out, and otherwise the event's own task", () => {
    const victims = [
      { id: 'v1', gpu: 0 },
      { id: 'v2', gpu: 1 },
    ]
    expect(tasksOf({ kind: 'swap_decided', task_id: 'eager', data: { victims } })).toEqual(['v1', 'v2'])
    expect(tasksOf({ kind: 'swap_decided', task_id: 'eager', data: {} })).toEqual(['eager'])
    expect(tasksOf({ kind: 'task_placed', task_id: 'eager', data: { victims } })).toEqual(['eager'])
    expect(tasksOf({ kind: 'node_status', task_id: null, data: {} })).toEqual([])
  })

  test('The link to all swaps matches an option of the filter', () => {
    expect(EVENT_GROUPS.map(({ kinds }) => kinds)).toContain(SWAP_KINDS)
  })
})

describe('the address of the list of tasks', () => {
  test('ignores invalid values', () => {
    expect(taskQueryOf({ tab: 'nothing', sort: 'by-colour', priority: '7', node: '' })).toEqual({
      state: 'running',
      sort: 'newest',
      cursor: null,
    })
  })

  test('contains filters, order and page', () => {
    const query = taskQueryOf({
      tab: 'pending',
      sort: 'priority',
      priority: '0',
      q: 'train',
      label: 'team=vision',
      cursor: 'abc',
      reason: 'NEVER_FITS',
    })
    expect(query).toEqual({
      state: 'pending',
      sort: 'priority',
      priority: 0,
      q: 'train',
      label: 'team=vision',
      cursor: 'abc',
      reason: 'NEVER_FITS',
    })
    expect(isFiltered(query)).toBe(true)
    expect(isFiltered(taskQueryOf({ tab: 'all' }))).toBe(false)
  })

  test('selects tasks without an owner, unless it names one', () => {
    const query = taskQueryOf({ tab: 'all', without_owner: 'true' })
    expect([query.without_owner, isFiltered(query)]).toEqual([true, true])
    expect(taskQueryOf({ tab: 'all', without_owner: 'yes' }).without_owner).toBeUndefined()
    expect(taskQueryOf({ owner: 'ada', without_owner: 'true' })).toMatchObject({ owner: 'ada' })
    expect(taskQueryOf({ owner: 'ada', without_owner: 'true' }).without_owner).toBeUndefined()
  })

  test('has no order by priority or name for final tasks', () => {
    expect(sortsOf('all').map(({ value }) => value)).toEqual(['newest', 'oldest'])
    expect(taskQueryOf({ tab: 'failed', sort: 'name' }).sort).toBe('newest')
    // Final tasks have no wait reason.
    expect(taskQueryOf({ tab: 'failed', reason: 'NEVER_FITS' }).reason).toBeUndefined()
  })
})

describe('an action on a task', () => {
  const session = (role: string, name: string) => ({
    body: () => ({ caller: { role, name } }) as never,
    whyNot: () => null,
  })

  test('is allowed for a submitter only on own tasks, and for an operator on all', () => {
    expect(whyNotOwn(session('submitter', 'ann'), { owner: 'ann' })).toBe(null)
    expect(whyNotOwn(session('submitter', 'ann'), { owner: 'bob' })).toContain('belongs to bob')
    expect(whyNotOwn(session('operator', 'ann'), { owner: 'bob' })).toBe(null)
  })

  test('is allowed only in certain states', () => {
    const pending = { state: 'pending', residency: 'none', held: false } as const
    const running = { state: 'running', residency: 'resident', held: false } as const
    const over = { state: 'failed', residency: 'none', held: false } as const
    expect([whyNotHold(pending), whyNotSwapOut(running), whyNotPatch(running)]).toEqual([null, null, null])
    expect(whyNotRelease({ ...pending, held: true })).toBe(null)
    expect(whyNotSwapIn({ ...running, residency: 'swapped_out' })).toBe(null)
    expect(whyNotHold({ ...pending, held: true })).toBe('The task is already on hold.')
    expect(whyNotHold(running)).toContain('Only pending tasks')
    expect(whyNotHold(over)).toBe('The task is already failed.')
    expect(whyNotSwapIn(running)).toBe('The task is not swapped out.')
    expect(whyNotSwapOut(pending)).toBe('The task is not resident.')
    expect(whyNotRelease(pending)).toBe('The task is not on hold.')
    expect(whyNotPatch(over)).toBe('The task is already failed.')
  })
})

describe('the shown state of a node', () => {
  const drain = { since: '', moves_at: null, by: 'ann', tasks_left: 3 }

  test('has status, models and groups', () => {
    expect(statusWords({ status: 'up', cordoned: false, drain: null })).toBe('up')
    expect(statusWords({ status: 'suspect', cordoned: true, drain: null })).toBe('suspect, cordoned')
    expect(statusWords({ status: 'up', cordoned: true, drain })).toBe('up, draining: 3 tasks left')
    expect(statusWords({ status: 'up', cordoned: true, drain: { ...drain, tasks_left: 0 } })).toBe(
      'up, drained',
    )
    const open = { status: 'up', cordoned: false, drain: null } as const
    expect(statusWords({ ...open, quarantined_attempts: 2 })).toBe('up, 2 quarantined attempts')
    expect(statusWords({ ...open, status: 'suspect', cordoned: true }, true)).toBe(
      'suspect, ahead of the store, cordoned',
    )
    expect(gpuModels({ gpus: [{ model: 'A' }, { model: 'B' }, { model: 'A' }] })).toBe('2 × A, 1 × B')
    expect(groupWords([])).toBe('common pool')
    expect(groupWords(['a', 'b'])).toBe('a, b')
  })
})

describe('the override of a node', () => {
  const node = (percent: number | null, reserve: number | null) =>
    ({
      overcommit_vram_percent: percent,
      safety_reserve_mib: reserve,
      overcommit: {
        override_percent: percent,
        default_percent: 50,
        effective_percent: percent ?? 50,
        source: percent === null ? 'global' : 'node',
      },
      reserve: { override_mib: reserve, default_mib: 2048, effective_mib: reserve ?? 2048 },
    }) satisfies Pick<NodeBody, 'overcommit_vram_percent' | 'safety_reserve_mib' | 'overcommit' | 'reserve'>

  test.each([
    [null, null],
    [0, 0],
    [20, 4096],
  ])('%s and %s: the untouched form requests the current values', (percent, reserve) => {
    const asked = changeOf(draftOf(node(percent, reserve)))
    expect(asked).toEqual({
      ok: true,
      change: { overcommit_vram_percent: percent, safety_reserve_mib: reserve },
    })
  })

  test.each(['1001', '-1', '1.5', '', 'abc', '1e2', '9999999999'])(
    '%s is not a valid percentage',
    (percent) => {
      const asked = changeOf({ ...draftOf(node(20, null)), percent })
      expect(asked).toEqual({
        ok: false,
        percentProblem: 'Enter a whole number from 0 to 1,000.',
        reserveProblem: null,
      })
    },
  )

  test('ignores typed values that are not selected, and reports both problems at once', () => {
    expect(changeOf({ ...draftOf(node(null, null)), percent: 'abc' }).ok).toBe(true)
    const both = changeOf({ overcommit: 'value', percent: 'x', reserve: 'value', reserveMib: '1048577' })
    expect(both).toMatchObject({ ok: false, reserveProblem: 'Enter a whole number from 0 to 1,048,576.' })
  })

  test('is described in words', () => {
    expect(settingsWords(node(20, null))).toBe('override 20%, reserve inherits 2.0 GiB')
    expect(settingsWords(node(0, 512))).toBe('off, reserve override 512 MiB')
    expect(settingsWords(node(null, null))).toBe('inherits 50%, reserve inherits 2.0 GiB')
    expect(typedWhole(' 7 ', 0, 10)).toEqual({ ok: true, value: 7 })
  })
})

test('A missing forecast is explained without hints for programs', () => {
  expect(
    noForecastWords(
      'NOT_YET: the forecast is being computed; try again in a few seconds, or send forecast=wait.',
    ),
  ).toBe('The forecast is being computed.')
  expect(noForecastWords('NO_HISTORY: too little was seen')).toBe('Too little was seen.')
  expect(noForecastWords(null)).toBe('There is no forecast.')
})

describe('the list of nodes with problems', () => {
  const node = (name: string, more: Partial<NodeBody> = {}): NodeBody =>
    ({
      node_id: name,
      name,
      status: 'up',
      cordoned: false,
      drain: null,
      queue_length: 0,
      vram: { reserve_deficit_mib: 0, over_committed_mib: 0, commit_limit_mib: 100, committed_mib: 50 },
      ...more,
    }) as NodeBody
  const drain = (left: number) => ({ since: '', moves_at: null, by: 'api', tasks_left: left })

  test('describes the problems, unreachable nodes first, each once', () => {
    const lost = node('z', { status: 'unreachable', cordoned: true })
    const full = node('a', {
      vram: { ...node('a').vram, reserve_deficit_mib: 512, over_committed_mib: 20_480 },
    })
    const all = [
      lost,
      node('b'),
      full,
      node('m', { drain: drain(3), cordoned: true }),
      node('n', { cordoned: true }),
      lost,
    ]
    expect(troubled(all).map((each) => [each.name, ...troubleWords(each)])).toEqual([
      ['z', 'unreachable, as are all its tasks', 'cordoned'],
      ['a', 'reserve deficit 512 MiB', 'over-committed by 20.0 GiB'],
      ['m', 'draining: 3 tasks left'],
      ['n', 'cordoned'],
    ])
    expect(troubleWords(node('q', { quarantined_attempts: 2 }))).toEqual([
      '2 quarantined attempts not in the store',
    ])
    expect(troubleWords(node('s', { status: 'suspect', drain: drain(0) }))).toEqual([
      'silent, receives no new tasks',
      'drained',
    ])
    expect(troubleWords(node('a', { status: 'suspect' }), true)).toEqual([
      'ahead of the store, receives no commands',
    ])
  })

  test('Every condition of the summary has its own words, as has a node with that condition', () => {
    expect(new Set<string>(CONDITIONS)).toEqual(new Set<string>(NODE_CONDITIONS))
    expect(new Set(CONDITIONS.map(conditionWords)).size).toBe(CONDITIONS.length)
    expect(troubleWords(node('q', { quarantined_attempts: 2 }))).toEqual([
      '2 quarantined attempts not in the store',
    ])
  })
})
