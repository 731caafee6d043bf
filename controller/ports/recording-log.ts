/**
 * What a controller was told and what it decided from that, entry by entry, to be decided again
 * (docs/recording.md).
 */
import type { StoreKind } from '../domain/store-kind.ts'
import type { Envelope } from '../../protocol/messages.ts'
import type { Instant } from '../../protocol/units.ts'
import type { ConfigFields } from '../domain/config.ts'
import type { Decision } from '../domain/decision.ts'
import type { Event } from '../domain/event.ts'
import type { OwnerLimits } from '../domain/owner-limits.ts'
import type { RequestOutcome } from './bus.ts'
import type { TimerRank } from './clock.ts'
import type { StoredState } from './store.ts'

/** A random number that was drawn while the input was taken: by the stream of this name. */
export type Draw = readonly [stream: string, value: number]

/** Taken in one go: time stands still at `at`. Instants as the controller's clock says. */
interface Taken {
  readonly at: Instant
  /** Left out: none. */
  readonly draws?: readonly Draw[]
}

/** A controller begins; what follows belongs to it. */
export interface StartEntry {
  readonly k: 'start'
  readonly at: Instant
  /** Of the program. */
  readonly version: string
  readonly initialConfig: Partial<ConfigFields>
  readonly ownerLimits: OwnerLimits
  readonly areHeartbeatsElided: boolean
  /** Left out: all servers may join. */
  readonly storeKind?: StoreKind
}

export type InputEntry =
  /** The store has said what is durable. */
  | (Taken & { readonly k: 'loaded'; readonly state: StoredState })
  /** Commit `n`, counted from 1, is durable; or it never will be. */
  | (Taken & { readonly k: 'durable'; readonly n: number })
  | (Taken & { readonly k: 'failed'; readonly n: number; readonly message: string })
  /** A timer ran that had been asked for `due` (not before the instant at which it was asked for). */
  | (Taken & { readonly k: 'timer'; readonly due: Instant; readonly rank: TimerRank })
  /** A node's message, on the subscription of this pattern. */
  | (Taken & {
      readonly k: 'message'
      readonly pattern: string
      readonly subject: string
      readonly message: Envelope
    })
  /** Of request `n` to a node, counted from 1. */
  | (Taken & { readonly k: 'outcome'; readonly n: number; readonly outcome: RequestOutcome })
  /** The connection to the broker was lost, or holds again. */
  | (Taken & { readonly k: 'broker'; readonly isConnected: boolean })
  /** A call of engine/commands/commands.ts, without its answer. */
  | (Taken & { readonly k: 'command'; readonly name: string; readonly args: readonly unknown[] })
  /**
   * Tokens or audit: something to store with the turn, an answer that waits for it, a wish to store it now.
   * What it says is not recorded.
   */
  | (Taken & { readonly k: 'access'; readonly what: 'touch' | 'answer' | 'write' })

/** What became of it: commit `n`. It stands before the input that led to it. */
export interface CommitEntry {
  readonly k: 'commit'
  readonly n: number
  /** The store had it at once; no `durable` follows. */
  readonly isDurable: boolean
  readonly events: readonly Event[]
  readonly decisions: readonly Decision[]
}

export type RecordedEntry = StartEntry | InputEntry | CommitEntry

/**
 * Of checkpoints: one of another number is not understood. Grows with every change of what a controller
 * remembers.
 */
export const CHECKPOINT_FORMAT = 4

/** Where a recording goes on whose earlier files have made room: all that the controller remembered there. */
export interface Checkpoint {
  readonly k: 'checkpoint'
  readonly format: number
  /** Of the input before it. */
  readonly at: Instant
  readonly start: StartEntry
  /** ControllerMemory (controller.ts), as JSON values; null: it had not begun. */
  readonly state: object | null
  /** What it had been told since its start while it had not begun; empty once it has. */
  readonly sinceStart: readonly InputEntry[]
  /** Requests to nodes so far: the next one has the number after it. */
  readonly requests: number
  /** What became of the input that comes next, as far as it stands before. */
  readonly pending: readonly CommitEntry[]
}

/**
 * Where entries go. Never throws and never waits: one that cannot keep up or fails says so elsewhere, and
 * takes nothing more.
 */
export interface RecordingLog {
  /** It takes entries; once false it stays so. */
  readonly isOpen: boolean
  /** The entry is written down in this call: what it is made of may change afterwards. */
  append(entry: RecordedEntry): void
}
