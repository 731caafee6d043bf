/** The whole of an exercise file as one table. */
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
const points = required(integer(1, MAX_POINTS), 'What it is worth.')
const bound = optional(
  nullable(numberFrom(-LARGE, LARGE)),
  null,
  'A bound, which is allowed itself; null: none.',
)
const answerValue = textLike(/^[^\n]+$/, 'a text on one line', 200)

const questionRule = record({
  id: required(name, 'Its name.'),
  ask: required(text(1024), 'What is asked.'),
  points,
  choices: optional(
    nullable(list(answerValue, 2, 20)),
    null,
    'What may be answered; null: any text or number.',
  ),
  answer: optionalAbsent(answerValue, 'What is right, of a text.'),
  number: optionalAbsent(numberFrom(-LARGE, LARGE), 'What is right, of a number.'),
  tolerance: optional(numberFrom(0, LARGE), 0, 'So far a number may be off.'),
})

const worth = {
  id: required(name, 'Its name.'),
  text: required(text(1024), 'What is to be reached, for people.'),
  points,
}

const objectiveRule = byKey({
  metric: record({
    ...worth,
    metric: required(choice(...METRIC_PATHS), 'Which number of the result.'),
    min: bound,
    max: bound,
  }),
  get: record({
    ...worth,
    get: required(
      textLike(/^\/api\/v1\/[^\s]+$/, 'a path that begins with /api/v1/', 1024),
      'What is read when it is over.',
    ),
    pointer: required(textLike(/^(\/[^\s]*)?$/, 'a JSON Pointer', 256), 'Where in the answer.'),
    is: optionalAbsent(
      scalarOr(nullable(answerValue), list(answerValue, 1, 20)),
      'What stands there: a text, null, or a list of which one does.',
    ),
    is_true: optionalAbsent(boolean, 'Or true or false.'),
    min: bound,
    max: bound,
  }),
})

export const exerciseRule = record({
  exercise: required(name, 'Its name.'),
  version: required(choice(1), 'Of the format.'),
  title: required(text(200), 'In a few words.'),
  task: required(text(MAX_TEXT), 'What is to be done, for who does it.'),
  explanation: required(text(MAX_TEXT), 'What was wrong and what helps; shown when it is over.'),
  begins_at: optional(
    duration(0, MAX_TIME_MS),
    0,
    'Virtual time at which it begins, since the start of the scenario.',
  ),
  ends_at: required(duration(1, MAX_TIME_MS), 'Virtual time at which it is over.'),
  scenario: required(scenarioRule, 'The cluster; without an operator and without faults of its own.'),
  hidden_faults: optional(faultsRule, [], 'What breaks, which nobody is told.'),
  questions: optional(list(questionRule, 0, MAX_ENTRIES), [], 'What is asked.'),
  objectives: optional(list(objectiveRule, 0, MAX_ENTRIES), [], 'What is to hold when it is over.'),
  reference: optional(
    operatorRule,
    [],
    'What somebody does who knows; with the right answers it scores everything.',
  ),
})

export type ExerciseDocument = ValueOf<typeof exerciseRule>
