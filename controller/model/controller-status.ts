/** States of the controller towards its store, its broker and silent nodes: plain values. */
import type { Instant } from '../../protocol/units.ts'

/** In order of precedence: the first that applies is shown. */
export const PAUSE_REASONS = ['STORE_BEHIND', 'RECOVERY', 'AWAITING_NODES'] as const
export type PauseReason = (typeof PAUSE_REASONS)[number]

/** Why the store is older than what a node has heard of. */
export const BEHIND_REASONS = ['higher_epoch', 'other_controller', 'missing_events'] as const
export type BehindReason = (typeof BEHIND_REASONS)[number]

/** A node that has heard of more than this store has. JSON values only. */
export interface AheadNode {
  readonly name: string | null
  readonly reason: BehindReason
  readonly epoch: number
  readonly controller: string | null
  readonly eventSeq: number
  /** Boot counter and number of its last message that showed this. */
  readonly bootCounter: number
  readonly seq: number
  readonly since: Instant
  /**
   * Tasks with an attempt on the node, as of its last hello or heartbeat: none of them is placed elsewhere.
   */
  readonly taskIds: readonly string[]
}

/** The store was restored, or a loss was accepted. */
export interface Recovery {
  readonly reason: 'restored' | 'loss_accepted'
  readonly since: Instant
  /** Known nodes that have not been heard since the start: the recovery ends with the last one. */
  readonly awaited: Set<string>
}

/** The controller's own connection to the broker. */
export interface BrokerAbsence {
  readonly isAway: boolean
  /** Since when the connection is lost or restored; null: never lost since this controller started. */
  readonly since: Instant | null
  /** After the connection is restored: no node is given up before this instant. */
  readonly heldUntil: Instant
  /** The absence lasted long enough to make nodes suspect, and the alarm was raised. */
  readonly isAlarmed: boolean
}

export const BROKER_PRESENT: BrokerAbsence = { isAway: false, since: null, heldUntil: 0, isAlarmed: false }

/** The brake on mass silence: while it is on, nothing is requeued or given up. */
export interface RequeueFreeze {
  readonly isFrozen: boolean
  /** Since when the current state holds; null: never frozen. */
  readonly since: Instant | null
  /** Number of nodes that became silent together, as of the last check. */
  readonly silentNodes: number
  /** Silent nodes that an operator has excluded; each counts again once it is heard. */
  readonly released: ReadonlySet<string>
  /** The event of the last change. */
  readonly event: number | null
}

export const NOT_FROZEN: RequeueFreeze = {
  isFrozen: false,
  since: null,
  silentNodes: 0,
  released: new Set(),
  event: null,
}
