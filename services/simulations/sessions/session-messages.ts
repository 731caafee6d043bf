/** Messages between the controller and the process of a session. `n` identifies a conversation. */
import type {
  Debrief,
  ExerciseView,
  ForwardedRequest,
  RunChoices,
  ScenarioProblem,
  SessionCommand,
  SessionFault,
  SessionView,
} from '../../../controller/ports/simulation.ts'
import type { ScenarioSource } from '../../../simulator/scenario/load.ts'
import type { Branch } from './session-host.ts'

/** @property source `exercise`: the file of one */
export interface SessionJob {
  readonly source: ScenarioSource | { readonly exercise: string }
  readonly choices: RunChoices
  readonly branch: Branch | null
  readonly speed: number | null
  readonly isPaused: boolean
}

export type ToSession =
  | { readonly n: number; readonly kind: 'open'; readonly job: SessionJob }
  | { readonly n: number; readonly kind: 'control'; readonly command: SessionCommand }
  | { readonly n: number; readonly kind: 'branch'; readonly snapshot: string | null }
  | {
      readonly n: number
      readonly kind: 'break'
      readonly entry: string
      readonly isHidden: boolean
      readonly by: string | null
    }
  | { readonly n: number; readonly kind: 'faults' | 'exercise' | 'finish' }
  | {
      readonly n: number
      readonly kind: 'answer'
      readonly question: string
      readonly value: string | number
      readonly by: string | null
    }
  | { readonly n: number; readonly kind: 'ask'; readonly request: ForwardedRequest }
  /** The reader of an answer requests one more piece, or stops reading. */
  | { readonly n: number; readonly kind: 'more' | 'enough' }

export type FromSession =
  | { readonly n: number; readonly kind: 'view'; readonly view: SessionView }
  | { readonly n: number; readonly kind: 'branch'; readonly branch: Branch }
  | { readonly n: number; readonly kind: 'faults'; readonly faults: readonly SessionFault[] }
  | { readonly n: number; readonly kind: 'exercise'; readonly view: ExerciseView }
  | { readonly n: number; readonly kind: 'debrief'; readonly debrief: Debrief }
  | { readonly n: number; readonly kind: 'problems'; readonly problems: readonly ScenarioProblem[] }
  | {
      readonly n: number
      readonly kind: 'failed'
      readonly name: string
      readonly message: string
      readonly stack: string | undefined
    }
  | {
      readonly n: number
      readonly kind: 'head'
      readonly status: number
      readonly headers: Readonly<Record<string, string>>
    }
  | { readonly n: number; readonly kind: 'piece'; readonly bytes: Uint8Array }
  | { readonly n: number; readonly kind: 'end' }
  /** Sent while the session advances by itself: its progress. */
  | { readonly n: 0; readonly kind: 'progress'; readonly virtualMs: number; readonly endMs: number | null }
