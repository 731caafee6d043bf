/** The inputs and decisions of a controller, entry by entry, for replay (docs/recording.md). */
import type { StoreKind } from '../model/store-kind.ts'
import type { Envelope } from '../../protocol/envelope.ts'
import type { Instant } from '../../protocol/units.ts'
import type { ConfigFields } from '../model/config.ts'
import type { Decision } from '../model/decision.ts'
import type { Event } from '../model/event.ts'
import type { OwnerLimits } from '../model/owner-limits.ts'
import type { RequestOutcome } from './bus.ts'
import type { TimerRank } from './clock.ts'
import type { StoredState } from './store.ts'

/** A random number drawn while the input was applied, and the name of its stream. */
export type Draw = readonly [stream: string, value: number]

/** Applied atomically: time stands still at `at`. Instants are those of the controller's clock. */
interface Taken {
  readonly at: Instant
  /** Omitted: none. */
  readonly draws?: readonly Draw[]
}

/** A controller starts; the following entries belong to it. */
export interface StartEntry {
  readonly k: 'start'
  readonly at: Instant
  /** Version of the program. */
  readonly version: string
  readonly initialConfig: Partial<ConfigFields>
  readonly ownerLimits: OwnerLimits
  readonly areHeartbeatsElided: boolean
  /** Omitted: all servers may join. */
  readonly storeKind?: StoreKind
  /** Lease of the leader among several controllers. */
  readonly leaseMs?: number
}

export type InputEntry =
  /** The store has loaded the durable state. */
  | (Taken & { readonly k: 'loaded'; readonly state: StoredState })
  /** Commit `n`, counted from 1, is durable, or has failed. */
  | (Taken & { readonly k: 'durable'; readonly n: number })
  | (Taken & { readonly k: 'failed'; readonly n: number; readonly message: string })
  /** A timer ran that was requested for `due` (not before the instant of the request). */
  | (Taken & { readonly k: 'timer'; readonly due: Instant; readonly rank: TimerRank })
  /** A node's message, on the subscription with this pattern. */
  | (Taken & {
      readonly k: 'message'
      readonly pattern: string
      readonly subject: string
      readonly message: Envelope
    })
  /** The outcome of request `n` to a node, counted from 1. */
  | (Taken & { readonly k: 'outcome'; readonly n: number; readonly outcome: RequestOutcome })
  /** The connection to the broker was lost or restored. */
  | (Taken & { readonly k: 'broker'; readonly isConnected: boolean })
  /** A call of engine/commands/commands.ts, without its answer. */
  | (Taken & { readonly k: 'command'; readonly name: string; readonly args: readonly unknown[] })
  /**
   * Tokens or audit: data to store with the transaction, an answer that waits for it, or a request to store
   * it now. The content is not recorded.
   */
  | (Taken & { readonly k: 'access'; readonly what: 'touch' | 'answer' | 'write' })

/** The result: commit `n`. It precedes the input that led to it. */
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
 * Format of checkpoints; others are refused. Increment it with every change of the controller's captured
 * state.
 */
export const CHECKPOINT_FORMAT = 5

/** The start of a recording whose earlier files were removed: the controller's state at that point. */
export interface Checkpoint {
  readonly k: 'checkpoint'
  readonly format: number
  /** The instant of the previous input. */
  readonly at: Instant
  readonly start: StartEntry
  /** ControllerCheckpoint (controller.ts), as JSON values; null: the controller had not begun. */
  readonly state: object | null
  /** Inputs since the start while the controller had not begun; empty once it has. */
  readonly sinceStart: readonly InputEntry[]
  /** Number of requests to nodes so far; the next one gets the following number. */
  readonly requests: number
  /** Commits that the next input leads to, as far as they precede it. */
  readonly pending: readonly CommitEntry[]
}

/**
 * Receives entries. Never throws and never waits: a log that cannot keep up or fails reports that elsewhere
 * and accepts nothing more.
 */
export interface RecordingLog {
  /** Returns true while it accepts entries; once false it stays false. */
  readonly isOpen: boolean
  /** Serialises the entry within this call: its parts may change afterwards. */
  append(entry: RecordedEntry): void
}
