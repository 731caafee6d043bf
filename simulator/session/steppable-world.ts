/** What a session drives: a world from its start, and who does to it what comes from outside. */
import type { DurationMs } from '../../protocol/units.ts'
import type { OperatorAgenda } from '../run/operator-agenda.ts'
import type { World } from '../world/world.ts'

/** Where a session is. Several events may lie in one instant, and time may have passed since the last. */
export interface Position {
  /** Entries of the event queue that were taken since the start. */
  readonly events: number
  /** How often the scenario's own operator has acted. */
  readonly served: number
  /** Virtual time since the start. */
  readonly atMs: DurationMs
}

/** Something done from outside, and where. */
export interface SessionInput {
  readonly position: Position
}

export type Agenda = Pick<OperatorAgenda, 'isDue' | 'serve'>

export interface SteppableWorld<I extends SessionInput> {
  readonly world: World
  readonly agenda: Agenda
  /** Time stands still until it is done. The same input at the same position does the same. */
  apply(input: I): Promise<unknown>
  stateHash(position: Position): string
  close(): Promise<void>
}
