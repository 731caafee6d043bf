/**
 * What pending tasks wait for, within a bound: an explanation is a look at the whole cluster, and a hundred thousand of them would stop
 * everything else. Few tasks are all explained, and the figures are exact. Of many an even sample is, for a few milliseconds each time,
 * and the shares in what was found in the last minute are scaled up to all of them.
 */
import type { Instant } from '../../../protocol/units.ts'
import type { Task } from '../../domain/task.ts'
import type { Views } from '../../engine/views.ts'
import type { WaitReason } from '../../scheduler/explain.ts'

/** So many tasks are explained each time at most, and so many findings are remembered. */
export const MAX_SAMPLE = 256
/** Explaining stops after so long, but never before the first. */
const BUDGET_MS = 10
const REMEMBERED_MS = 60_000
/** For so long the answer is given again: several readers may ask. */
const FRESH_MS = 1_000

export type PendingReasons = ReadonlyMap<WaitReason, number>

interface Finding {
  readonly at: Instant
  readonly reason: WaitReason
}

/** @param elapsedMs a clock that measures how long explaining takes. */
export function createPendingSample(views: Views, elapsedMs: () => number = () => performance.now()): () => PendingReasons {
  let known: { readonly at: Instant; readonly answer: PendingReasons } | null = null
  let remembered: Finding[] = []
  let turn = 0

  function look(now: Instant): PendingReasons {
    turn += 1
    const pending = pendingTasks(views)
    const sample = evenly(pending, turn)
    const found = explain(views, sample, now, elapsedMs)
    if (found.length === sample.length && sample.length === pending.length) {
      remembered = []
      return scaled(found, 1)
    }
    remembered = [...remembered.filter(({ at }) => now - at < REMEMBERED_MS), ...found].slice(-MAX_SAMPLE)
    return scaled(remembered, pending.length / remembered.length)
  }

  return () => {
    const now = views.now()
    if (known !== null && now >= known.at && now - known.at < FRESH_MS) return known.answer
    known = { at: now, answer: look(now) }
    return known.answer
  }
}

function pendingTasks(views: Views): readonly Task[] {
  const pending: Task[] = []
  for (const task of views.openTasks()) if (task.state === 'pending') pending.push(task)
  return pending
}

/** At most MAX_SAMPLE tasks at even distances, others each turn, in an order whose every beginning is spread over all of them. */
function evenly(tasks: readonly Task[], turn: number): readonly Task[] {
  const step = Math.max(1, Math.ceil(tasks.length / MAX_SAMPLE))
  const places: number[] = []
  for (let place = turn % step; place < tasks.length; place += step) places.push(place)
  return [...places.keys()].sort((a, b) => reversedBits(a) - reversedBits(b) || a - b).map((at) => tasks[places[at] as number] as Task)
}

/** Of eight bits, as many as MAX_SAMPLE has places. */
function reversedBits(value: number): number {
  let reversed = 0
  for (let bit = 0; bit < 8; bit++) if ((value >> bit) & 1) reversed |= 128 >> bit
  return reversed
}

function explain(views: Views, tasks: readonly Task[], at: Instant, elapsedMs: () => number): readonly Finding[] {
  const found: Finding[] = []
  const until = elapsedMs() + BUDGET_MS
  for (const task of tasks) {
    if (found.length > 0 && elapsedMs() > until) break
    const reason = views.explain(task)?.primary.reason
    if (reason !== undefined) found.push({ at, reason })
  }
  return found
}

function scaled(findings: readonly Finding[], factor: number): PendingReasons {
  const counts = new Map<WaitReason, number>()
  for (const { reason } of findings) counts.set(reason, (counts.get(reason) ?? 0) + 1)
  return new Map([...counts].map(([reason, count]) => [reason, Math.round(count * factor)]))
}
