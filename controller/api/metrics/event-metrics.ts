/** Metrics derived from durable events: waits, swaps, and counts by kind. A simulation has none of these. */
import type { Instant } from '../../../protocol/units.ts'
import type { Event } from '../../model/event.ts'
import type { Task } from '../../model/placement.ts'
import { COPY_SECONDS, Counter, Histogram, WAIT_SECONDS, WAKE_SECONDS } from './instruments.ts'
import type { Metrics } from './metrics.ts'

/**
 * Reason of a swap: another task's demand, no specific task, or the task wants the GPU; `unknown` if it began
 * before this process.
 */
type SwapReason = 'demand' | 'ordered' | 'wanted' | 'unknown'

interface Move {
  readonly direction: 'out' | 'in'
  readonly reason: SwapReason
  readonly from: Instant
}

export interface EventMetrics {
  /** Every event, in order, once it is durable. */
  take(events: readonly Event[]): void
}

/** @param openTask as in the views. */
export function createEventMetrics(
  metrics: Metrics,
  openTask: (id: string) => Task | undefined,
): EventMetrics {
  /** Tasks in a swap: at most as many as are placed. */
  const moves = new Map<string, Move>()
  /** Since when tasks are swapped out: at most as many as are placed. */
  const outSince = new Map<string, Instant>()
  const waits = new Histogram({
    name: 'headroom_task_wait_seconds',
    help: 'From the beginning of a wait in the pending queue to the placement that ended it.',
    bounds: WAIT_SECONDS,
  })
  const swaps = new Counter({
    name: 'headroom_swaps_total',
    help: 'Swaps that were completed.',
    labels: ['direction', 'reason'],
  })
  const failed = new Counter({
    name: 'headroom_swaps_failed_total',
    help: 'Swaps that a server could not do.',
    labels: ['direction'],
  })
  const durations = new Histogram({
    name: 'headroom_swap_duration_seconds',
    help: 'From the order of a swap to its end.',
    labels: ['direction'],
    bounds: COPY_SECONDS,
  })
  const kinds = new Counter({
    name: 'headroom_events_total',
    help: 'Events that became durable.',
    labels: ['kind'],
  })
  const wakes = new Histogram({
    name: 'headroom_wake_seconds',
    help: 'From the time at which a swapped-out task wants the GPU until it is resident.',
    bounds: WAKE_SECONDS,
  })
  metrics.add(waits, swaps, failed, durations, kinds, wakes)

  function placed(taskId: string, at: Instant): void {
    const task = openTask(taskId)
    if (task !== undefined && at >= task.pendingSince) waits.observe((at - task.pendingSince) / 1000)
  }

  function moved(taskId: string, { at, data }: Event): void {
    const move = moves.get(taskId)
    moves.delete(taskId)
    const { residency, because } = data
    if (residency === 'swapped_out') outSince.set(taskId, outSince.get(taskId) ?? at)
    else if (residency === 'resident') woken(taskId, at)
    if (residency === 'swapping_out') {
      moves.set(taskId, {
        direction: 'out',
        reason: String(because).startsWith('for ') ? 'demand' : 'ordered',
        from: at,
      })
    } else if (residency === 'swapping_in') moves.set(taskId, { direction: 'in', reason: 'wanted', from: at })
    // A failed swap-in also ends swapped out.
    else if (residency === 'swapped_out' && move?.direction !== 'in') ended('out', move, at)
    // A failed or cancelled swap-out ends resident; without a recorded swap, it began before this process.
    else if (residency === 'resident' && (move === undefined ? because === null : move.direction === 'in'))
      ended('in', move, at)
  }

  function ended(direction: Move['direction'], move: Move | undefined, at: Instant): void {
    const isKnown = move?.direction === direction
    swaps.add(1, direction, isKnown ? move.reason : 'unknown')
    if (isKnown) durations.observe((at - move.from) / 1000, direction)
  }

  /** A task that was swapped out while it wanted the GPU counts from the swap-out. */
  function woken(taskId: string, at: Instant): void {
    const since = outSince.get(taskId)
    outSince.delete(taskId)
    const placement = openTask(taskId)?.placement ?? null
    if (since === undefined || placement === null || !placement.wantsGpu) return
    const from = Math.max(since, placement.wantsSince)
    if (from <= at) wakes.observe((at - from) / 1000)
  }

  function takeOne(event: Event): void {
    const { kind, taskId } = event
    kinds.add(1, kind)
    if (taskId === null) return
    if (kind === 'task_placed') placed(taskId, event.at)
    else if (kind === 'task_residency') moved(taskId, event)
    else if (kind === 'swap_failed') failed.add(1, moves.get(taskId)?.direction ?? 'unknown')
    else if (kind === 'task_finished' || kind === 'task_returned') {
      moves.delete(taskId)
      outSince.delete(taskId)
    }
  }

  return {
    take: (events) => {
      for (const event of events) takeOne(event)
    },
  }
}
