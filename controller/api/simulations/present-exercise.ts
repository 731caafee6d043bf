import { presentReplay } from './present-run.ts'
import type { Debrief, ExerciseAction, ExerciseBrief, ExerciseView } from '../../ports/simulation.ts'

export function presentExercise({
  name,
  title,
  task,
  beginsAtMs,
  endsAtMs,
  questions,
  objectives,
}: ExerciseBrief) {
  return {
    name,
    title,
    task,
    begins_at_seconds: beginsAtMs / 1000,
    ends_at_seconds: endsAtMs / 1000,
    points: [...questions, ...objectives].reduce((sum, { points }) => sum + points, 0),
    questions,
    objectives,
  }
}

export function presentUnderWay({ brief, answers, actions }: ExerciseView) {
  return { ...presentExercise(brief), answers, actions: actions.map(presentAction) }
}

export function presentDebrief(debrief: Debrief) {
  const { exercise, title, explanation, beginsAtMs, reference } = debrief
  return {
    exercise,
    title,
    explanation,
    begins_at_seconds: beginsAtMs / 1000,
    ...presentOutcome(debrief),
    reference: presentOutcome(reference),
  }
}

function presentOutcome({ score, marks, actions, answers, metrics, replay }: Debrief['reference']) {
  return {
    score,
    marks,
    actions: actions.map(presentAction),
    answers,
    metrics,
    replay: presentReplay(replay),
  }
}

function presentAction({ virtualMs, ...action }: ExerciseAction) {
  return { virtual_seconds: virtualMs / 1000, ...action }
}
