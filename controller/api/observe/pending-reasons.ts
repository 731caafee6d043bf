/**
 * What pending tasks wait for, within a bound: an explanation is a look at the whole cluster, up to 2 ms of
 * 10,000 GPUs, and a hundred thousand of them would stop everything else. Up to MAX_SAMPLE tasks are all
 * explained, and the figures are exact. Of more, or where explaining takes too long, an even sample of all is
 * explained, for a few milliseconds each time, and the shares in the findings of the last minute are scaled
 * up.
 */
import type { Instant } from '../../../protocol/units.ts'
import type { Task } from '../../model/placement.ts'
import type { Views } from '../../query/views.ts'
import { WAIT_REASONS, type WaitReason } from '../../query/explain/explain.ts'
import type { SummaryBody } from './summary-schema.ts'
import { threadCpuMs } from './thread-cpu.ts'

/** Maximum number of tasks that are explained at a time, and of findings that are remembered. */
export const MAX_SAMPLE = 1_024
/** Explaining stops after this, but never before the first task. */
const BUDGET_MS = 10
const REMEMBERED_MS = 60_000
/**
 * An answer is given again for this long: several readers ask. An exact one only while as many tasks are
 * pending.
 */
const FRESH_MS = 1_000

export type PendingByReason = SummaryBody['pending_by_reason']

interface Finding {
  readonly at: Instant
  readonly reason: WaitReason
}

/** @param elapsedMs measures how long explaining takes; on a busy host a thread waits for its turn as well */
export function createPendingReasons(
  views: Views,
  elapsedMs: () => number = threadCpuMs,
): () => PendingByReason {
  let known: { readonly at: Instant; readonly answer: PendingByReason } | null = null
  let remembered: Finding[] = []
  let explained = 0

  function look(now: Instant): PendingByReason {
    const { sample, pending } = evenly(views, explained)
    const found = explain(views, sample, now, elapsedMs)
    explained += found.length
    const isExact = found.length === pending
    remembered = isExact
      ? []
      : [...remembered.filter(({ at }) => at <= now && now - at < REMEMBERED_MS), ...found].slice(-MAX_SAMPLE)
    const counted = isExact ? found : remembered
    return { counted: counted.length, of: pending, is_estimate: !isExact, reasons: scaled(counted, pending) }
  }

  return () => {
    const now = views.now()
    const isFresh = known !== null && now >= known.at && now - known.at < FRESH_MS
    if (known === null || !isFresh || (!known.answer.is_estimate && known.answer.of !== views.pendingCount()))
      known = { at: now, answer: look(now) }
    return known.answer
  }
}

interface Sample {
  readonly sample: readonly Task[]
  readonly pending: number
}

/**
 * At most MAX_SAMPLE tasks at even distances, others at each turn, in an order whose every stretch is spread
 * over all of them.
 */
function evenly(views: Views, turn: number): Sample {
  const step = Math.max(1, Math.ceil(views.pendingCount() / MAX_SAMPLE))
  const offset = turn % step
  const taken: Task[] = []
  let pending = 0
  for (const task of views.openTasks()) {
    if (task.state !== 'pending') continue
    if (pending % step === offset && taken.length < MAX_SAMPLE) taken.push(task)
    pending += 1
  }
  const spread = SPREAD.filter((at) => at < taken.length).map((at) => taken[at] as Task)
  const from = spread.length === 0 ? 0 : turn % spread.length
  return { sample: [...spread.slice(from), ...spread.slice(0, from)], pending }
}

/**
 * Places of a sample in the order of their bits from the last to the first: ten of them, as many as
 * MAX_SAMPLE has places.
 */
const SPREAD: readonly number[] = Array.from({ length: MAX_SAMPLE }, (_, place) => {
  let reversed = 0
  for (let bit = 0; bit < 10; bit++) if ((place >> bit) & 1) reversed |= 512 >> bit
  return reversed
})

function explain(
  views: Views,
  tasks: readonly Task[],
  at: Instant,
  elapsedMs: () => number,
): readonly Finding[] {
  const found: Finding[] = []
  const until = elapsedMs() + BUDGET_MS
  for (const task of tasks) {
    if (found.length > 0 && elapsedMs() > until) break
    const reason = views.explain(task)?.primary.reason
    if (reason !== undefined) found.push({ at, reason })
  }
  return found
}

/**
 * In the order of WAIT_REASONS. The numbers add up to `total`: what rounding leaves over goes to the largest
 * fractions, earlier reasons first.
 */
function scaled(findings: readonly Finding[], total: number): PendingByReason['reasons'] {
  const counts = new Map<WaitReason, number>()
  for (const { reason } of findings) counts.set(reason, (counts.get(reason) ?? 0) + 1)
  const shares = WAIT_REASONS.flatMap((reason) => {
    const count = counts.get(reason)
    return count === undefined ? [] : [{ reason, share: (count * total) / findings.length }]
  })
  const left = total - shares.reduce((sum, { share }) => sum + Math.floor(share), 0)
  const raised = new Set(shares.toSorted((a, b) => (b.share % 1) - (a.share % 1)).slice(0, left))
  return shares.map((each) => ({
    reason: each.reason,
    tasks: Math.floor(each.share) + (raised.has(each) ? 1 : 0),
  }))
}
