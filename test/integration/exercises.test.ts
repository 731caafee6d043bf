/**
 * The included exercises: the reference solution gets the full score, and inaction does not; one of them is
 * done over REST.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { DebriefBody } from '../../controller/api/simulations/exercise-schema.ts'
import { outcomeOf, referenceOutcome } from '../../services/simulations/sessions/exercise-run.ts'
import type { Input } from '../../services/simulations/sessions/session-input.ts'
import { openSessionWorld, type SessionWorld } from '../../services/simulations/sessions/session-world.ts'
import { loadExercise } from '../../simulator/exercise/load-exercise.ts'
import { Session } from '../../simulator/session/session.ts'
import { namedAccess } from '../support/named-access.ts'
import { simulationsWorld, type SimulationsWorld } from '../support/simulations-world.ts'

const FOLDER = join(import.meta.dirname, '../../scenarios/exercises')
const FILES = readdirSync(FOLDER).filter((name) => name.endsWith('.exercise.yaml'))

it('There are at least six exercises', () => expect(FILES.length).toBeGreaterThanOrEqual(6))

describe.each(FILES)('%s', (name) => {
  const exercise = loadExercise(readFileSync(join(FOLDER, name), 'utf8'), FOLDER, name)

  it('has the name of its file', () => expect(name).toBe(`${exercise.name}.exercise.yaml`))

  it('gives the reference solution every point', async () => {
    const { score } = await referenceOutcome(exercise)
    expect(score.marks.filter(({ points, of }) => points < of)).toEqual([])
    expect(score.of).toBe(100)
  })

  it('gives inaction less than half', async () => {
    const session = await Session.open<Input>({ open: () => openSessionWorld(exercise.scenario) })
    await session.advanceTo(exercise.endsAtMs)
    const { score } = await outcomeOf(exercise, session.stage as SessionWorld, {})
    await session.close()
    expect(score.points).toBeLessThan(score.of / 2)
  })
})

/**
 * Both solutions cover the whole time; they are equal until the learner's first action, and differ after it.
 */
function expectReplays({ begins_at_seconds: begins, replay, reference }: DebriefBody): void {
  expect([begins, replay.residency.ends_seconds, reference.replay.residency.ends_seconds]).toEqual([
    2400, 5400, 5400,
  ])
  /** Bars within that time. */
  const within = ({ tasks, bars }: DebriefBody['replay']['residency'], from: number, to: number) =>
    bars.gpu.flatMap((gpu, at) => {
      const [start, end] = [
        Math.max(from, bars.from_seconds[at] as number),
        Math.min(to, bars.to_seconds[at] as number),
      ]
      return start < end ? [`${gpu} ${tasks[bars.task[at] as number]} ${bars.kind[at]} ${start} ${end}`] : []
    })
  expect(within(replay.residency, 0, begins).length).toBeGreaterThan(0)
  expect(new Set(within(replay.residency, 0, begins))).toEqual(
    new Set(within(reference.replay.residency, 0, begins)),
  )
  expect(new Set(within(replay.residency, begins, 5400))).not.toEqual(
    new Set(within(reference.replay.residency, begins, 5400)),
  )
  expect(replay.series.x.at(-1)).toBe(5400)
  // The reference solution removes a node in this exercise: the counters of its GPUs remain.
  const utilization =
    reference.replay.series.series.find(({ name }) => name === 'utilization_percent')?.values ?? []
  expect(Math.min(...utilization)).toBeGreaterThanOrEqual(0)
}

describe('an exercise over REST', () => {
  let world: SimulationsWorld
  const as =
    (name: string, role: string) => (method: 'GET' | 'POST' | 'DELETE', path: string, body?: unknown) =>
      world.api.send(method, path, body, { authorization: `Bearer ${name} ${role}` })
  const trainee = as('trainee', 'submitter')

  beforeAll(async () => {
    world = await simulationsWorld(undefined, namedAccess())
  })
  afterAll(() => world.close())

  it('is listed with its task, and without answers', async () => {
    const { items, total } = (await as('visitor', 'viewer')('GET', '/exercises')).body
    expect(total).toBe(FILES.length)
    expect(JSON.stringify(items)).not.toMatch(/"answer"|explanation|reference|hidden|slow_swap|crash/)
    expect((await trainee('GET', '/exercises/handle-a-lost-node')).body).toMatchObject({
      points: 100,
      begins_at_seconds: 2400,
    })
    expect((await trainee('GET', '/exercises/nothing')).status).toBe(404)
    expect((await trainee('POST', '/exercises/nothing/start')).status).toBe(404)
  })

  it('records actions, hides its faults, and scores next to the reference solution', async () => {
    const started = await trainee('POST', '/exercises/handle-a-lost-node/start')
    expect([started.status, started.body.kind, started.body.exercise]).toEqual([
      202,
      'session',
      'handle-a-lost-node',
    ])
    const session = `/simulations/${started.body.id}`
    expect((await trainee('GET', `${session}/session`)).body).toMatchObject({
      virtual_seconds: 2400,
      is_paused: true,
      ends_after_seconds: 5400,
    })
    const { items } = (await trainee('GET', `${session}/api/v1/nodes`)).body
    const lost = items.find(({ status }: { status: string }) => status === 'unreachable')
    expect(lost.name).toBe('node-0')
    for (const role of ['viewer', 'submitter', 'operator']) {
      for (const path of [
        '',
        '/session',
        '/exercise',
        '/faults',
        '/api/v1/events?limit=200',
        '/api/v1/nodes',
      ]) {
        const answer = await as('trainee', role)('GET', `${session}${path}`)
        expect(answer.status, path).toBe(200)
        expect(JSON.stringify(answer.body), `${path} as ${role}`).not.toContain('crash')
      }
    }
    expect((await as('instructor', 'admin')('GET', `${session}/faults`)).body.items).toMatchObject([
      { is_hidden: true, fault: { kind: 'crash' } },
    ])
    await trainee('POST', `${session}/answers`, { question: 'node', answer: 'node-2' })
    expect((await trainee('POST', `${session}/answers`, { question: 'no', answer: 'x' })).status).toBe(409)
    expect(
      (await as('other', 'submitter')('POST', `${session}/answers`, { question: 'node', answer: 'node-0' }))
        .status,
    ).toBe(403)
    expect(
      (await trainee('POST', `${session}/api/v1/tasks/important/requeue`, { confirm_fenced: true })).status,
    ).toBe(202)
    const view = (await trainee('GET', `${session}/exercise`)).body
    expect(view.answers).toEqual({ node: 'node-2' })
    expect(view.actions).toMatchObject([
      { virtual_seconds: 2400, method: 'POST', path: '/api/v1/tasks/important/requeue', by: 'trainee' },
    ])
    const finished = await trainee('POST', `${session}/finish`)
    expect(finished.body).toMatchObject({
      score: { points: 50, of: 100 },
      marks: [
        { id: 'node', points: 0, reason: 'node-2 is not correct.' },
        { id: 'runs', points: 50 },
        { id: 'forgotten', points: 0, reason: expect.stringContaining('expected at most 2') as string },
      ],
      actions: [{ path: '/api/v1/tasks/important/requeue' }],
      reference: { score: { points: 100, of: 100 }, answers: { node: 'node-0' }, actions: { length: 2 } },
    })
    expect(finished.body.explanation).toContain('node-0 is lost')
    expectReplays(finished.body as DebriefBody)
    expect((await trainee('GET', session)).body).toMatchObject({ state: 'done', progress: 1 })
    // The report is the same response, with the same names and units.
    expect((await trainee('GET', `${session}/report`)).body).toEqual(finished.body)
    expect((await trainee('GET', `${session}/exercise`)).status).toBe(409)
  })
})
