/**
 * The part of an exercise that the learner may see: no answers, no faults, no actions of the reference
 * solution.
 */
import type { Exercise } from './exercise.ts'

export function briefOf({ name, title, task, beginsAtMs, endsAtMs, questions, objectives }: Exercise) {
  return {
    name,
    title,
    task,
    beginsAtMs,
    endsAtMs,
    questions: questions.map(({ id, ask, points, choices }) => ({ id, ask, points, choices })),
    objectives: objectives.map(({ id, text, points }) => ({ id, text, points })),
  }
}
