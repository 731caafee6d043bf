/** Scores an exercise, with a reason for every point. Pure. */
import type { AnswerValue, Exercise, Objective, Question } from './exercise.ts'

/** Known facts at the end. */
export interface Evidence {
  readonly answers: Readonly<Record<string, AnswerValue>>
  /** Metrics of the result, over the whole run. */
  readonly metrics: object
  /** Answers of the REST API by path, as written in the exercise; null: not JSON. */
  readonly reads: ReadonlyMap<string, { readonly status: number; readonly body: unknown }>
}

export interface Mark {
  readonly id: string
  readonly text: string
  readonly points: number
  readonly of: number
  /** Reason, for people. */
  readonly reason: string
}

export interface Score {
  readonly points: number
  readonly of: number
  readonly marks: readonly Mark[]
}

export function scoreOf({ questions, objectives }: Exercise, evidence: Evidence): Score {
  const marks = [
    ...questions.map((question) => markAnswer(question, evidence.answers)),
    ...objectives.map((objective) => markObjective(objective, evidence)),
  ]
  return { points: sum(marks.map(({ points }) => points)), of: sum(marks.map((mark) => mark.of)), marks }
}

function markAnswer(question: Question, answers: Evidence['answers']): Mark {
  const { id, ask: text, points: of } = question
  if (!Object.hasOwn(answers, id)) return { id, text, points: 0, of, reason: 'Not answered.' }
  const given = answers[id] as AnswerValue
  const isRight = isRightAnswer(question, given)
  return {
    id,
    text,
    points: isRight ? of : 0,
    of,
    reason: isRight ? `${given} is correct.` : `${given} is not correct.`,
  }
}

/** Texts are compared without regard to case and surrounding blanks, numbers within the tolerance. */
function isRightAnswer({ answer, tolerance }: Question, given: AnswerValue): boolean {
  if (typeof answer === 'string') return String(given).trim().toLowerCase() === answer.toLowerCase()
  const number = typeof given === 'number' ? given : Number(given.trim() || NaN)
  return Math.abs(number - answer) <= tolerance
}

function markObjective(objective: Objective, evidence: Evidence): Mark {
  const { id, text, points: of } = objective
  const { isMet, reason } =
    objective.kind === 'metric' ? metricMet(objective, evidence) : stateMet(objective, evidence)
  return { id, text, points: isMet ? of : 0, of, reason }
}

interface Verdict {
  readonly isMet: boolean
  readonly reason: string
}

function metricMet(
  { metric, min, max }: Extract<Objective, { readonly kind: 'metric' }>,
  { metrics }: Evidence,
): Verdict {
  const value = valueAt(metrics, metric.split('.'))
  return within(metric, value, min, max)
}

function stateMet(objective: Extract<Objective, { readonly kind: 'state' }>, { reads }: Evidence): Verdict {
  const { path, pointer, oneOf, min, max } = objective
  const read = reads.get(path)
  if (read === undefined || read.status !== 200)
    return { isMet: false, reason: `${path} has status ${read?.status ?? 'none'}.` }
  const value = valueAt(read.body, partsOf(pointer))
  const what = wordsOf(path, pointer)
  if (oneOf === null) return within(what, value, min, max)
  const isMet = oneOf.some((allowed) => allowed === value)
  return {
    isMet,
    reason: `${what} is ${shown(value)}${isMet ? '' : `, expected ${oneOf.map(shown).join(' or ')}`}.`,
  }
}

/** `state of task urgent` for `/state` of `/api/v1/tasks/urgent`; other paths stay as they are. */
function wordsOf(path: string, pointer: string): string {
  const [, kind, name] = /^\/api\/v1\/(task|node|group)s\/([^/?]+)$/.exec(path) ?? []
  const parts = partsOf(pointer)
  if (kind === undefined || name === undefined) return `${parts.join('.')} of ${path}`
  // `{node:node-2}` is the id of the node of that name.
  return `${parts.at(-1) ?? ''} of ${kind} ${/^\{\w+:(.+)\}$/.exec(name)?.[1] ?? decodeURIComponent(name)}`
}

function within(what: string, value: unknown, min: number | null, max: number | null): Verdict {
  if (typeof value !== 'number') return { isMet: false, reason: `${what} is not a number: ${shown(value)}.` }
  if (min !== null && value < min)
    return { isMet: false, reason: `${what} is ${rounded(value)}, expected at least ${min}.` }
  if (max !== null && value > max)
    return { isMet: false, reason: `${what} is ${rounded(value)}, expected at most ${max}.` }
  return { isMet: true, reason: `${what} is ${rounded(value)}.` }
}

/** Undefined: there is no value. */
function valueAt(value: unknown, keys: readonly string[]): unknown {
  let at: unknown = value
  for (const key of keys) {
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, key)) return undefined
    at = (at as Readonly<Record<string, unknown>>)[key]
  }
  return at
}

function partsOf(pointer: string): readonly string[] {
  return pointer
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
}

function shown(value: unknown): string {
  return value === undefined ? 'missing' : typeof value === 'string' ? value : JSON.stringify(value)
}

function rounded(value: number): number {
  return Math.round(value * 100) / 100
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}
