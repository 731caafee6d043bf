/** External inputs of a session, stored to be repeated. */
import type { Role } from '../../../controller/model/role.ts'
import type { Fault } from '../../../simulator/scenario/fault.ts'
import type { SessionInput } from '../../../simulator/session/steppable-world.ts'

export interface AskedBy {
  readonly by: string | null
  readonly role: Role
}

export interface RequestInput extends SessionInput, AskedBy {
  readonly kind: 'request'
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array | null
}

export interface FaultInput extends SessionInput {
  readonly kind: 'fault'
  readonly fault: Fault
  /** Visible only to its author and to equal or higher roles. */
  readonly isHidden: boolean
  readonly by: string | null
}

/** An answer to an exercise question. */
export interface AnswerInput extends SessionInput {
  readonly kind: 'answer'
  readonly question: string
  readonly value: string | number
  readonly by: string | null
}

export type Input = RequestInput | FaultInput | AnswerInput
/** An input without a position yet. */
export type Unplaced<I extends Input = Input> = I extends unknown ? Omit<I, 'position'> : never
