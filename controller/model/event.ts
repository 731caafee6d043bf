/**
 * Events in order: every transition of a task, node, group or configuration has exactly one event, and so has
 * every decision. The store keeps them, the journal of a simulation consists of them, the API shows them.
 */
import type { Instant } from '../../protocol/units.ts'

export const EVENT_KINDS = [
  'config_changed',
  'node_registered',
  'node_status',
  'node_config_changed',
  'node_forgotten',
  'node_drain',
  'node_auto_cordon',
  'group_changed',
  'group_deleted',
  'task_submitted',
  'task_updated',
  'task_held',
  'task_released',
  'task_placed',
  'task_started',
  'task_returned',
  'task_paused',
  'task_resumed',
  'task_finished',
  'task_late_result',
  'task_unreachable',
  'task_reachable',
  'task_residency',
  'swap_decided',
  'swap_in_decided',
  'swap_failed',
  'swap_ordered',
  'task_became_noswap',
  'growth_granted',
  'growth_refused',
  'reserve_breached',
  'requeue_freeze',
  'broker_absence',
  'duplicate_node',
  'store_behind',
  'recovery',
  'attempt_quarantined',
  'attempt_settled',
  'leader_changed',
] as const

export type EventKind = (typeof EVENT_KINDS)[number]

export interface Event {
  /** 1, 2, 3, … without a gap. */
  readonly seq: number
  readonly at: Instant
  readonly kind: EventKind
  readonly taskId: string | null
  readonly nodeId: string | null
  /** The event that led to this one; null for external causes. */
  readonly causedBy: number | null
  /** The name of the caller that requested it; null without a caller, and where callers have no names. */
  readonly by: string | null
  /** Facts by kind, JSON values only, keys in a fixed order. */
  readonly data: EventData
}

export type EventValue =
  string | number | boolean | null | readonly EventValue[] | { readonly [key: string]: EventValue }
export type EventData = Readonly<Record<string, EventValue>>

/** Selects events; null or omitted: all. */
export interface EventFilter {
  readonly kinds?: readonly EventKind[] | null
  readonly taskId?: string | null
  readonly nodeId?: string | null
}

export function isEventWanted(
  { kinds = null, taskId = null, nodeId = null }: EventFilter,
  event: Event,
): boolean {
  if (taskId !== null && event.taskId !== taskId) return false
  if (nodeId !== null && event.nodeId !== nodeId) return false
  return kinds === null || kinds.includes(event.kind)
}
