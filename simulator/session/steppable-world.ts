/** The world of a session: from its start, with the inputs from outside. */
import type { DurationMs } from '../../protocol/units.ts'
import type { OperatorAgenda } from '../run/operator-agenda.ts'
import type { World } from '../world/world.ts'

/**
 * Position in a session. Several events may have one instant, and time may have passed since the last event.
 */
export interface Position {
  /** Entries of the event queue that were run since the start. */
  readonly events: number
  /** Number of actions of the scenario's own operator so far. */
  readonly served: number
  /** Virtual time since the start. */
  readonly atMs: DurationMs
}

/** An input from outside, and its position. */
export interface SessionInput {
  readonly position: Position
}

export type Agenda = Pick<OperatorAgenda, 'isDue' | 'serve'>

export interface SteppableWorld<I extends SessionInput> {
  readonly world: World
  readonly agenda: Agenda
  /** Time stops until the input is applied. The same input at the same position has the same effect. */
  apply(input: I): Promise<unknown>
  stateHash(position: Position): string
  close(): Promise<void>
}
