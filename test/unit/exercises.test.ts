import { describe, expect, it } from 'vitest'
import { briefOf } from '../../simulator/exercise/brief.ts'
import type { Exercise } from '../../simulator/exercise/exercise.ts'
import { loadExercise } from '../../simulator/exercise/load-exercise.ts'
import { scoreOf, type Evidence } from '../../simulator/exercise/score.ts'
import type { ScenarioError } from '../../simulator/document/problem.ts'

const TEXT = `exercise: small
version: 1
title: Small
task: Look.
explanation: It was small.
ends_at: 10m
scenario:
  scenario: small
  version: 1
  fleet: [{ name: n, gpus: 1, gpu: { model: A100-40, vram_mib: 40960 } }]
hidden_faults: [{ at: 1m, slow_swap: n, factor: 4, for: 2m }]
questions:
  - { id: node, ask: Which?, points: 5, choices: [n, m], answer: n }
  - { id: much, ask: How much?, points: 5, number: 10, tolerance: 1 }
objectives:
  - { id: busy, text: Busy., points: 10, metric: utilization_percent, min: 20, max: 80 }
  - { id: state, text: Runs., points: 10, get: /api/v1/tasks/t, pointer: /a~1b/0, is: [running, completed] }
  - { id: unset, text: Unset., points: 10, get: /api/v1/nodes/n, pointer: /override, is: null }
  - { id: cordoned, text: Cordoned., points: 10, get: /api/v1/nodes/n, pointer: /cordoned, is_true: true }
reference:
  - { at: 2m, post: '/api/v1/nodes/{node:n}/cordon' }
`
const load = (text: string): Exercise => loadExercise(text, '/nowhere', 'small')

function evidence(over: Partial<Evidence> = {}): Evidence {
  return { answers: {}, metrics: { utilization_percent: 50 }, reads: new Map(), ...over }
}

function reasonsOf(over: Partial<Evidence>): Readonly<Record<string, string>> {
  return Object.fromEntries(
    scoreOf(load(TEXT), evidence(over)).marks.map(({ id, points, reason }) => [id, `${points}: ${reason}`]),
  )
}

function problemsOf(text: string): readonly string[] {
  try {
    load(text)
    return []
  } catch (error) {
    return (error as ScenarioError).problems.map(({ line, path, detail }) => `${line} ${path}: ${detail}`)
  }
}

describe('an exercise file', () => {
  it('has its faults in its scenario, and a brief without faults and answers', () => {
    const exercise = load(TEXT)
    expect(exercise.scenario.faults).toMatchObject([{ kind: 'slow_swap', node: 'n' }])
    expect(exercise.reference).toMatchObject([{ atMs: 120_000, method: 'post' }])
    expect(exercise.scenario.operator).toEqual([])
    expect(JSON.stringify(briefOf(exercise))).not.toMatch(
      /slow_swap|"answer"|small\.|cordon"|reference|tolerance/,
    )
  })

  it.each([
    [
      'an unknown node of a fault',
      TEXT.replace('slow_swap: n', 'slow_swap: x'),
      /11 hidden_faults\[0\]\.slow_swap: .*x/,
    ],
    ['an unknown node of the reference', TEXT.replace('{node:n}', '{node:x}'), /reference\[0\].*x/],
    [
      'a right answer that is not a choice',
      TEXT.replace('answer: n', 'answer: x'),
      /questions\[0\]\.answer: must be one of the choices: n, m/,
    ],
    [
      'a question without an answer',
      TEXT.replace(', number: 10', ''),
      /questions\[1\]\.answer: give exactly one of answer and number/,
    ],
    [
      'an objective without a bound',
      TEXT.replace(', min: 20, max: 80', ''),
      /objectives\[0\]\.min: give min or max/,
    ],
    [
      'an unknown metric',
      TEXT.replace('utilization_percent', 'utilisation_percent'),
      /objectives\[0\]\.metric: .*utilization_percent/,
    ],
    ['an id that stands twice', TEXT.replace('id: busy', 'id: node'), /node is the ID of two/],
    [
      'an end before its beginning',
      TEXT.replace('ends_at: 10m', 'begins_at: 10m\nends_at: 5m'),
      /ends_at: must be after begins_at/,
    ],
    [
      'an operator of its own',
      TEXT.replace(
        '  version: 1\n  fleet',
        '  version: 1\n  operator: [{ at: 1m, get: /api/v1/nodes }]\n  fleet',
      ),
      /scenario\.operator: must be empty/,
    ],
    ['a wrong scenario', TEXT.replace('gpus: 1', 'gpus: 0'), /10 scenario\.fleet\[0\]\.gpus/],
  ])('%s is refused with its place', (_, text, problem) =>
    expect(problemsOf(text).join('\n')).toMatch(problem),
  )
})

describe('a score', () => {
  it('is zero without evidence, with a reason for each item', () => {
    expect(reasonsOf({ metrics: { utilization_percent: null } })).toEqual({
      node: '0: Not answered.',
      much: '0: Not answered.',
      busy: '0: utilization_percent is not a number: null.',
      state: '0: /api/v1/tasks/t has status none.',
      unset: '0: /api/v1/nodes/n has status none.',
      cordoned: '0: /api/v1/nodes/n has status none.',
    })
  })

  it('is complete for right answers within tolerance and bounds', () => {
    const reads = new Map([
      ['/api/v1/tasks/t', { status: 200, body: { 'a/b': ['completed'] } }],
      ['/api/v1/nodes/n', { status: 200, body: { override: null, cordoned: true } }],
    ])
    const score = scoreOf(
      load(TEXT),
      evidence({ answers: { node: ' N ', much: '9' }, metrics: { utilization_percent: 80 }, reads }),
    )
    expect(score).toMatchObject({ points: 50, of: 50 })
  })

  it('states the actual and the expected value', () => {
    const reads = new Map([
      ['/api/v1/tasks/t', { status: 404, body: {} }],
      ['/api/v1/nodes/n', { status: 200, body: { cordoned: false } }],
    ])
    expect(
      reasonsOf({ answers: { node: 'm', much: 11.5 }, metrics: { utilization_percent: 80.004 }, reads }),
    ).toEqual({
      node: '0: m is not correct.',
      much: '0: 11.5 is not correct.',
      busy: '0: utilization_percent is 80, expected at most 80.',
      state: '0: /api/v1/tasks/t has status 404.',
      unset: '0: override of node n is missing, expected null.',
      cordoned: '0: cordoned of node n is false, expected true.',
    })
    expect(reasonsOf({ metrics: { utilization_percent: 3 } })['busy']).toBe(
      '0: utilization_percent is 3, expected at least 20.',
    )
    expect(reasonsOf({ answers: { much: 'many' } })['much']).toBe('0: many is not correct.')
  })
})
