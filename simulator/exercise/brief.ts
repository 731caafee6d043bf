/**
 * Of an exercise what who learns from it may know: no answers, no faults, nothing of what the reference does.
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
