/**
 * An exercise: a cluster with a question to answer or a fault to fix, and the conditions for success.
 * Learners see `brief` only.
 */
import type { DurationMs } from '../../protocol/units.ts'
import type { OperatorAction, Scenario } from '../scenario/scenario.ts'

export interface Exercise {
  readonly name: string
  readonly title: string
  /** Task description for the learner. */
  readonly task: string
  /** Explanation of the fault and of the reference solution; shown at the end. */
  readonly explanation: string
  /**
   * Virtual time since the start of the scenario. The exercise starts there, paused, and ends at `endsAtMs`.
   */
  readonly beginsAtMs: DurationMs
  readonly endsAtMs: DurationMs
  /** With the hidden faults, and without an operator. */
  readonly scenario: Scenario
  readonly questions: readonly Question[]
  readonly objectives: readonly Objective[]
  /** Actions of the reference solution. */
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
  /** Tolerance of a number. */
  readonly tolerance: number
}

interface Worth {
  readonly id: string
  readonly text: string
  readonly points: number
}

/** Conditions at the end. Bounds are inclusive; null: no bound. */
export type Objective = Worth &
  (
    | {
        readonly kind: 'metric'
        readonly metric: string
        readonly min: number | null
        readonly max: number | null
      }
    /** The answer of the REST API at a JSON Pointer (RFC 6901). */
    | {
        readonly kind: 'state'
        readonly path: string
        readonly pointer: string
        readonly oneOf: readonly (string | number | boolean | null)[] | null
        readonly min: number | null
        readonly max: number | null
      }
  )
