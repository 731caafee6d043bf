import { Type, type Static } from 'typebox'
import { closed, count, list, page, pathId, textOrNull } from '../http/fields-schema.ts'
import { RunResidencySchema, SimulationSeriesSchema } from './schema.ts'

const MAX_ANSWER = 200

const brief = {
  name: Type.String(),
  title: Type.String(),
  task: Type.String({ description: 'Assignment for the learner' }),
  begins_at_seconds: Type.Number({ description: 'Virtual time since the start of the simulated cluster' }),
  ends_at_seconds: Type.Number(),
  points: count('Maximum score'),
  questions: list(
    Type.Object({
      id: Type.String(),
      ask: Type.String(),
      points: count(),
      choices: Type.Unsafe<readonly string[] | null>({
        type: ['array', 'null'],
        items: { type: 'string' },
        description: 'null: any string or number',
      }),
    }),
  ),
  objectives: list(Type.Object({ id: Type.String(), text: Type.String(), points: count() })),
}

export const ExerciseSchema = Type.Object(brief)
export const ExercisePageSchema = page(ExerciseSchema)
export const ExercisePathSchema = Type.Object({ exercise: pathId('Name of the exercise') })

const answers = Type.Unsafe<Readonly<Record<string, string | number>>>({
  type: 'object',
  additionalProperties: { type: ['string', 'number'] },
  description: 'By question; the last answer counts',
})
const actions = list(
  Type.Object({
    virtual_seconds: Type.Number({ description: 'Virtual time since the start' }),
    method: Type.String(),
    path: Type.String(),
    body: Type.Unsafe<unknown>({ description: 'Request body; null: empty' }),
    by: textOrNull('Name of the caller'),
  }),
  { description: 'Requests made through the REST API' },
)

export const ExerciseUnderWaySchema = Type.Object({ ...brief, answers, actions })

export const AnswerBodySchema = closed(
  {
    question: Type.String({ minLength: 1, maxLength: MAX_ANSWER, description: 'ID of the question' }),
    answer: Type.Unsafe<string | number>({
      type: ['string', 'number'],
      maxLength: MAX_ANSWER,
      'x-allowed': `a number, or a string of up to ${MAX_ANSWER} characters`,
    }),
  },
  { examples: [{ question: 'gpus', answer: 8 }] },
)

const outcome = {
  score: Type.Object({ points: count(), of: count() }),
  marks: list(
    Type.Object({
      id: Type.String(),
      text: Type.String(),
      points: count(),
      of: count(),
      reason: Type.String({ description: 'Why points were or were not awarded' }),
    }),
  ),
  actions,
  answers,
  replay: Type.Object(
    { residency: RunResidencySchema, series: SimulationSeriesSchema },
    { description: 'Course of the run: GPU occupancy by task, and cluster metrics over time' },
  ),
  metrics: Type.Unsafe<object>({
    type: 'object',
    additionalProperties: true,
    description: 'The same as in the report of a run',
  }),
}

export const DebriefSchema = Type.Object({
  exercise: Type.String(),
  title: Type.String(),
  explanation: Type.String({ description: 'The problem and its solution' }),
  begins_at_seconds: Type.Number({
    description: 'When the learner took over; both runs are identical until then',
  }),
  ...outcome,
  reference: Type.Object(outcome, { description: 'The same cluster with the reference solution' }),
})
export type DebriefBody = Static<typeof DebriefSchema>
