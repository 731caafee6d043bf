/** Metrics derived from durable events: waits, swaps, and counts by kind. A simulation has none of these. */
import type { Instant } from '../../../protocol/units.ts'
import { totalOf, WakeTimes } from '../../metrics/wake-times.ts'
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
  const wakeTimes = new WakeTimes((id) => openTask(id)?.placement ?? null)
  const waits = new Histogram({
    name: 'headroom_task_wait_seconds',
    help: 'Time in the pending queue until placement.',
    bounds: WAIT_SECONDS,
  })
  const swaps = new Counter({
    name: 'headroom_swaps_total',
    help: 'Completed swaps.',
    labels: ['direction', 'reason'],
  })
  const failed = new Counter({
    name: 'headroom_swaps_failed_total',
    help: 'Swaps that a GPU server could not perform.',
    labels: ['direction'],
  })
  const durations = new Histogram({
    name: 'headroom_swap_duration_seconds',
    help: 'Time from the swap command to the end of the swap.',
    labels: ['direction'],
    bounds: COPY_SECONDS,
  })
  const kinds = new Counter({
    name: 'headroom_events_total',
    help: 'Events that were stored durably.',
    labels: ['kind'],
  })
  const wakes = new Histogram({
    name: 'headroom_wake_seconds',
    help: 'Time from the moment a swapped-out task wants the GPU until it is resident.',
    bounds: WAKE_SECONDS,
  })
  const parts = new Histogram({
    name: 'headroom_wake_part_seconds',
    help: 'Parts of a wake-up: the wait for a victim, the swap-out of the victims, the swap-in.',
    labels: ['part'],
    bounds: WAKE_SECONDS,
  })
  metrics.add(waits, swaps, failed, durations, kinds, wakes, parts)

  function placed(taskId: string, at: Instant): void {
    const task = openTask(taskId)
    if (task !== undefined && at >= task.pendingSince) waits.observe((at - task.pendingSince) / 1000)
  }

  function moved(taskId: string, { at, data }: Event): void {
    const move = moves.get(taskId)
    moves.delete(taskId)
    const { residency, because } = data
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

  function woken(event: Event): void {
    const wake = wakeTimes.take(event)
    if (wake === null) return
    wakes.observe(totalOf(wake) / 1000)
    parts.observe(wake.waitMs / 1000, 'wait')
    parts.observe(wake.swapOutMs / 1000, 'swap_out')
    parts.observe(wake.swapInMs / 1000, 'swap_in')
  }

  function takeOne(event: Event): void {
    const { kind, taskId } = event
    kinds.add(1, kind)
    woken(event)
    if (taskId === null) return
    if (kind === 'task_placed') placed(taskId, event.at)
    else if (kind === 'task_residency') moved(taskId, event)
    else if (kind === 'swap_failed') failed.add(1, moves.get(taskId)?.direction ?? 'unknown')
    else if (kind === 'task_finished' || kind === 'task_returned') moves.delete(taskId)
  }

  return {
    take: (events) => {
      for (const event of events) takeOne(event)
    },
  }
}
