/**
 * An exercise: a cluster with something to find out or to put right, and what counts as having done so.
 * Whoever learns from it sees `brief` and no more.
 */
import type { DurationMs } from '../../protocol/units.ts'
import type { OperatorAction, Scenario } from '../scenario/scenario.ts'

export interface Exercise {
  readonly name: string
  readonly title: string
  /** What is to be done, for who does it. */
  readonly task: string
  /** What was wrong, and what the reference does; told when it is over. */
  readonly explanation: string
  /** Since the start of the scenario: it begins there, standing still, and is over there. */
  readonly beginsAtMs: DurationMs
  readonly endsAtMs: DurationMs
  /** With the hidden faults, and nobody who acts. */
  readonly scenario: Scenario
  readonly questions: readonly Question[]
  readonly objectives: readonly Objective[]
  /** What somebody does who knows. */
  readonly reference: readonly OperatorAction[]
}

export type AnswerValue = string | number

export interface Question {
  readonly id: string
  readonly ask: string
  readonly points: number
  /** Null: any text or number. */
  readonly choices: readonly string[] | null
  readonly answer: AnswerValue
  /** Of a number: so far it may be off. */
  readonly tolerance: number
}

interface Worth {
  readonly id: string
  readonly text: string
  readonly points: number
}

/** What holds when it is over. Bounds include themselves; null: none. */
export type Objective = Worth &
  (
    | {
        readonly kind: 'metric'
        readonly metric: string
        readonly min: number | null
        readonly max: number | null
      }
    /** What the REST interface answers, at a JSON Pointer (RFC 6901). */
    | {
        readonly kind: 'state'
        readonly path: string
        readonly pointer: string
        readonly oneOf: readonly (string | number | boolean | null)[] | null
        readonly min: number | null
        readonly max: number | null
      }
  )
