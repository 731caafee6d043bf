/**
 * What happened, in order: every transition of a task, node, group or configuration is exactly one event, every decision too.
 * The store keeps them, the journal of a simulation is made of them, the API shows them.
 */
import type { Instant } from '../../protocol/units.ts'

export type EventKind =
  | 'config_changed'
  | 'node_registered'
  | 'node_status'
  | 'node_config_changed'
  | 'node_forgotten'
  | 'group_changed'
  | 'group_deleted'
  | 'task_submitted'
  | 'task_updated'
  | 'task_placed'
  | 'task_started'
  | 'task_returned'
  | 'task_finished'
  | 'task_unreachable'
  | 'task_reachable'
  | 'task_residency'
  | 'swap_decided'
  | 'swap_in_decided'
  | 'swap_failed'
  | 'task_became_noswap'
  | 'growth_granted'
  | 'growth_refused'
  | 'reserve_breached'
  | 'requeue_freeze'
  | 'duplicate_node'

export interface Event {
  /** 1, 2, 3, … without a gap. */
  readonly seq: number
  readonly at: Instant
  readonly kind: EventKind
  readonly taskId: string | null
  readonly nodeId: string | null
  /** The event that led to this one; null for what came from outside. */
  readonly causedBy: number | null
  /** Facts by kind, JSON values only, keys in a fixed order. */
  readonly data: EventData
}

export type EventValue = string | number | boolean | null | readonly EventValue[] | { readonly [key: string]: EventValue }
export type EventData = Readonly<Record<string, EventValue>>
