/** Table of an exercise file. */
import { METRIC_PATHS } from '../scenario/metrics.ts'
import {
  boolean,
  byKey,
  choice,
  duration,
  integer,
  list,
  nullable,
  numberFrom,
  optional,
  optionalAbsent,
  record,
  required,
  scalarOr,
  text,
  textLike,
  type ValueOf,
} from '../document/rule.ts'
import { scenarioRule } from '../scenario/schema.ts'
import { faultsRule } from '../scenario/schema-faults.ts'
import { operatorRule } from '../scenario/schema-operator.ts'
import { MAX_TIME_MS } from '../scenario/schema-workload.ts'

const MAX_TEXT = 8192
const MAX_ENTRIES = 50
const MAX_POINTS = 100
const LARGE = 1e15

const name = textLike(/^[a-z0-9][a-z0-9-]*$/, 'a name of small letters, digits and -', 64)
const points = required(integer(1, MAX_POINTS), 'Points.')
const bound = optional(nullable(numberFrom(-LARGE, LARGE)), null, 'An inclusive bound; null: none.')
const answerValue = textLike(/^[^\n]+$/, 'one line of text', 200)

const questionRule = record({
  id: required(name, 'Its name.'),
  ask: required(text(1024), 'The question.'),
  points,
  choices: optional(nullable(list(answerValue, 2, 20)), null, 'Possible answers; null: any text or number.'),
  answer: optionalAbsent(answerValue, 'The correct text.'),
  number: optionalAbsent(numberFrom(-LARGE, LARGE), 'The correct number.'),
  tolerance: optional(numberFrom(0, LARGE), 0, 'Tolerance of the number.'),
})

const worth = {
  id: required(name, 'Its name.'),
  text: required(text(1024), 'The goal, as shown to the learner.'),
  points,
}

const objectiveRule = byKey({
  metric: record({
    ...worth,
    metric: required(choice(...METRIC_PATHS), 'Metric of the result.'),
    min: bound,
    max: bound,
  }),
  get: record({
    ...worth,
    get: required(
      textLike(/^\/api\/v1\/[^\s]+$/, 'a path that begins with /api/v1/', 1024),
      'Path to read at the end.',
    ),
    pointer: required(textLike(/^(\/[^\s]*)?$/, 'a JSON Pointer', 256), 'Position in the answer.'),
    is: optionalAbsent(
      scalarOr(nullable(answerValue), list(answerValue, 1, 20)),
      'Expected value: a text, null, or a list of accepted values.',
    ),
    is_true: optionalAbsent(boolean, 'Expected value true or false.'),
    min: bound,
    max: bound,
  }),
})

export const exerciseRule = record({
  exercise: required(name, 'Its name.'),
  version: required(choice(1), 'Version of the format.'),
  title: required(text(200), 'Title.'),
  task: required(text(MAX_TEXT), 'Task description for the learner.'),
  explanation: required(text(MAX_TEXT), 'The fault and its solution; shown at the end.'),
  begins_at: optional(duration(0, MAX_TIME_MS), 0, 'Start of the exercise, since the start of the scenario.'),
  ends_at: required(duration(1, MAX_TIME_MS), 'End of the exercise.'),
  scenario: required(scenarioRule, 'The cluster, without operator and faults.'),
  hidden_faults: optional(faultsRule, [], 'Faults that the learner is not told about.'),
  questions: optional(list(questionRule, 0, MAX_ENTRIES), [], 'The question.'),
  objectives: optional(list(objectiveRule, 0, MAX_ENTRIES), [], 'Conditions at the end.'),
  reference: optional(
    operatorRule,
    [],
    'Actions of the reference solution; with the correct answers they score all points.',
  ),
})

export type ExerciseDocument = ValueOf<typeof exerciseRule>
