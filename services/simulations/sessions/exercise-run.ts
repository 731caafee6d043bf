/**
 * An exercise in a session's process: the learner's result against the reference solution, scored by the same
 * rules.
 */
import type { Debrief, ExerciseAction, RunReplay } from '../../../controller/ports/simulation.ts'
import type { AnswerValue, Exercise } from '../../../simulator/exercise/exercise.ts'
import { scoreOf, type Evidence, type Score } from '../../../simulator/exercise/score.ts'
import { ResidencyRecorder } from '../../../simulator/report/residency.ts'
import { SeriesSampler } from '../../../simulator/run/series-sampler.ts'
import { nodeIdIn, type RunPlan } from '../../../simulator/run/run.ts'
import type { OperatorAction } from '../../../simulator/scenario/scenario.ts'
import { withIds } from '../../../simulator/scenario/placeholders.ts'
import { Session } from '../../../simulator/session/session.ts'
import type { DurationMs } from '../../../protocol/units.ts'
import { columnsOf } from '../jobs/run-job.ts'
import type { Input } from './session-input.ts'
import { injected, openSessionWorld, type SessionWorld } from './session-world.ts'

/** Returns the debriefing of a session that has reached the end of its exercise. */
export async function debriefOf(
  exercise: Exercise,
  stage: SessionWorld,
  inputs: readonly Input[],
): Promise<Debrief> {
  const own = await outcomeOf(exercise, stage, answersIn(inputs))
  const replay = await replayOf(exercise, inputs)
  const reference = await referenceOutcome(exercise)
  return {
    exercise: exercise.name,
    title: exercise.title,
    score: { points: own.score.points, of: own.score.of },
    marks: own.score.marks,
    explanation: exercise.explanation,
    beginsAtMs: exercise.beginsAtMs,
    actions: actionsIn(inputs),
    answers: answersIn(inputs),
    metrics: own.metrics,
    replay,
    reference: {
      score: { points: reference.score.points, of: reference.score.of },
      marks: reference.score.marks,
      actions: exercise.reference.map(asAction),
      answers: rightAnswers(exercise),
      metrics: reference.metrics,
      replay: reference.replay,
    },
  }
}

interface ExerciseOutcome {
  readonly score: Score
  readonly metrics: object
}

/** Runs the same cluster to its end with the reference solution. */
export async function referenceOutcome(
  exercise: Exercise,
): Promise<ExerciseOutcome & { readonly replay: RunReplay }> {
  const plan: RunPlan = { ...exercise.scenario, operator: exercise.reference }
  const { session, replay } = await recorded(plan, [], exercise.endsAtMs)
  try {
    return { ...(await outcomeOf(exercise, session.stage as SessionWorld, rightAnswers(exercise))), replay }
  } finally {
    await session.close()
  }
}

/** Runs the session again without interruption: a session with seeks has no record of a single run. */
async function replayOf(exercise: Exercise, inputs: readonly Input[]): Promise<RunReplay> {
  const { session, replay } = await recorded(exercise.scenario, inputs, exercise.endsAtMs)
  await session.close()
  return replay
}

async function recorded(plan: RunPlan, inputs: readonly Input[], endMs: DurationMs) {
  const session = await Session.open<Input>({ open: () => openSessionWorld(plan), inputs })
  const { world } = session.stage
  const recorder = new ResidencyRecorder(world)
  const sampler = new SeriesSampler()
  while (sampler.nextAtMs < endMs) {
    await session.advanceTo(sampler.nextAtMs)
    sampler.take(world)
  }
  await session.advanceTo(endMs)
  sampler.finish(world)
  const replay: RunReplay = { residency: recorder.finish(), series: columnsOf(sampler.csv()) }
  return { session, replay }
}

/** Returns the outcome at this instant. */
export async function outcomeOf(
  exercise: Exercise,
  stage: SessionWorld,
  answers: Evidence['answers'],
): Promise<ExerciseOutcome> {
  const reads = new Map<string, { readonly status: number; readonly body: unknown }>()
  const app = await stage.interface()
  for (const objective of exercise.objectives) {
    if (objective.kind !== 'state' || app === null || reads.has(objective.path)) continue
    const path = String(withIds(objective.path, ({ name }) => nodeIdIn(exercise.scenario, name)))
    const asked = {
      kind: 'request',
      method: 'GET',
      path,
      headers: {},
      body: null,
      by: 'exercise',
      role: 'admin',
    } as const
    const { statusCode, body } = await app.inject(injected(asked))
    reads.set(objective.path, { status: statusCode, body: JSON.parse(body) as unknown })
  }
  const metrics = stage.world.metrics()
  return { score: scoreOf(exercise, { answers, metrics, reads }), metrics }
}

function rightAnswers({ questions }: Exercise): Readonly<Record<string, AnswerValue>> {
  return Object.fromEntries(questions.map(({ id, answer }) => [id, answer]))
}

/** The last answer to each question counts. */
export function answersIn(inputs: readonly Input[]): Readonly<Record<string, AnswerValue>> {
  return Object.fromEntries(
    inputs.flatMap((input) => (input.kind === 'answer' ? [[input.question, input.value]] : [])),
  )
}

export function actionsIn(inputs: readonly Input[]): readonly ExerciseAction[] {
  return inputs.flatMap((input): ExerciseAction[] => {
    if (input.kind !== 'request') return []
    const body = input.body === null ? null : Buffer.from(input.body).toString()
    return [
      {
        virtualMs: input.position.atMs,
        method: input.method,
        path: input.path,
        body: jsonOr(body),
        by: input.by,
      },
    ]
  })
}

function asAction({ atMs, method, path, body }: OperatorAction): ExerciseAction {
  return { virtualMs: atMs, method: method.toUpperCase(), path, body, by: null }
}

function jsonOr(text: string | null): unknown {
  try {
    return text === null ? null : (JSON.parse(text) as unknown)
  } catch {
    return text
  }
}
