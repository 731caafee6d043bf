/** Converts the text of an exercise to an Exercise, or throws a ScenarioError with all problems. */
import { buildScenario } from '../scenario/build.ts'
import { check } from '../document/check.ts'
import { parseDocument } from '../document/document.ts'
import { refuseIn, type Refuse } from '../document/refusal.ts'
import type { Exercise, Objective, Question } from './exercise.ts'
import { exerciseRule, type ExerciseDocument } from './schema-exercise.ts'

/** @param baseDir base folder of relative trace files; `file` is the name used in messages */
export function loadExercise(text: string, baseDir: string, file: string): Exercise {
  const { root, problems } = parseDocument(text)
  if (root === null) throw problems.toError(file)
  const document = check(root, exerciseRule, problems)
  problems.throwIfAny(file)
  const refuse = refuseIn(root, problems)
  if (document.scenario.operator.length > 0)
    refuse(['scenario', 'operator'], 'must be empty: the learner is the operator')
  if (document.scenario.faults.length > 0)
    refuse(['scenario', 'faults'], 'must be empty: faults belong in hidden_faults')
  if (document.ends_at <= document.begins_at) refuse(['ends_at'], 'must be after begins_at')
  const whole = { ...document.scenario, faults: document.hidden_faults, operator: document.reference }
  const scenario = buildScenario(whole, baseDir, (keys, detail) => refuse(inExercise(keys), detail))
  const questions = document.questions.map((entry, index) => questionOf(entry, index, refuse))
  const objectives = document.objectives.map((entry, index) => objectiveOf(entry, index, refuse))
  refuseSameIds([...questions.map(({ id }) => id), ...objectives.map(({ id }) => id)], refuse)
  if (questions.length + objectives.length === 0)
    refuse(['objectives'], 'must not be empty if there are no questions')
  problems.throwIfAny(file)
  return {
    name: document.exercise,
    title: document.title,
    task: document.task.trim(),
    explanation: document.explanation.trim(),
    beginsAtMs: document.begins_at,
    endsAtMs: document.ends_at,
    scenario: { ...scenario, operator: [] },
    questions,
    objectives,
    reference: scenario.operator,
  }
}

/** Converts a position in the scenario to one in the file. */
function inExercise([first = '', ...rest]: readonly (string | number)[]): readonly (string | number)[] {
  if (first === 'faults') return ['hidden_faults', ...rest]
  return first === 'operator' ? ['reference', ...rest] : ['scenario', first, ...rest]
}

function questionOf(entry: ExerciseDocument['questions'][number], index: number, refuse: Refuse): Question {
  const { id, ask, points, choices, tolerance, answer, number } = entry
  const place = (field: string) => ['questions', index, field]
  if ((answer === undefined) === (number === undefined))
    refuse(place('answer'), 'give exactly one of answer and number')
  if (choices !== null && !choices.includes(answer ?? ''))
    refuse(place('answer'), `must be one of the choices: ${choices.join(', ')}`)
  return { id, ask, points, choices, tolerance, answer: answer ?? number ?? '' }
}

function objectiveOf(
  entry: ExerciseDocument['objectives'][number],
  index: number,
  refuse: Refuse,
): Objective {
  const { id, text, points, min, max } = entry
  const place = (field: string) => ['objectives', index, field]
  if ('metric' in entry) {
    if (min === null && max === null) refuse(place('min'), 'give min or max')
    return { id, text, points, kind: 'metric', metric: entry.metric, min, max }
  }
  const { get: path, pointer, is, is_true: isTrue } = entry
  const oneOf =
    isTrue !== undefined
      ? [isTrue]
      : is === undefined
        ? null
        : Array.isArray(is)
          ? (is as readonly string[])
          : [is as string | null]
  if (oneOf === null && min === null && max === null)
    refuse(place('is'), 'give one of is, is_true, min and max')
  return { id, text, points, kind: 'state', path, pointer, oneOf, min, max }
}

function refuseSameIds(ids: readonly string[], refuse: Refuse): void {
  const seen = new Set<string>()
  for (const id of ids) {
    if (seen.has(id))
      refuse(['objectives'], `${id} is the ID of two questions or objectives; each needs its own`)
    seen.add(id)
  }
}
