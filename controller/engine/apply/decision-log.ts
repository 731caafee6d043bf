/**
 * Records decisions and their inputs where the store keeps them (`EventLog.keepsDecisions`). Otherwise each
 * function returns after one check.
 */
import type { Instant, Mib } from '../../../protocol/units.ts'
import type { PlacementStrategy } from '../../model/config.ts'
import type { ConsideredGpu, ConsideredVictim, Decision } from '../../model/decision.ts'
import { MAX_CANDIDATES, MAX_CONSIDERED_GPUS, MAX_OTHERS, VICTIM_LEVELS } from '../../model/decision.ts'
import { byCodeUnits, firstDifference } from '../../structures/order.ts'
import type { Gpu } from '../../model/placement.ts'
import type { Plan } from '../../policy/placement/schedule.ts'
import { scoreOf } from '../../policy/placement/score.ts'
import { searchDemandMib } from '../../policy/placement/shape.ts'
import { levelOf } from '../../policy/swap/order.ts'
import { inReturnOrder } from '../../policy/swap/resume.ts'
import type { EntryDecision } from '../../policy/swap/swap.ts'
import type { Cluster } from '../../state/cluster.ts'
import {
  eagerReturnInWords,
  growthRefusedInWords,
  growthInWords,
  growthTooLargeInWords,
  type NeverGranted,
  operatorSwapOutWords,
  placementInWords,
  returnGrownInWords,
  swapInInWords,
  swapOutInWords,
} from './decision-words.ts'
import type { LiveEntry, LiveGpu, LivePlacement, LiveTask } from '../../state/facts.ts'

/** The GPUs that a plan was chosen from. */
export interface Considered {
  readonly strategy: PlacementStrategy
  readonly gpus: readonly ConsideredGpu[]
  readonly hasMore: boolean
}

/** Returns the chosen GPUs and the next best. Call before the plan changes the ledger. */
export function consideredFor(c: Cluster, plan: Plan): Considered | null {
  if (!c.eventLog.keepsDecisions) return null
  const { queue, when, gpus, task } = plan
  const { strategy } = c.policy
  const seen = [...gpus]
  let hasMore = false
  if (queue.shape.gpuCount === 1) {
    for (const gpu of queue.pool.gpusFor(queue.shape, when, searchDemandMib(task.spec))) {
      if (seen.includes(gpu)) continue
      hasMore = seen.length === MAX_CONSIDERED_GPUS
      if (hasMore) break
      seen.push(gpu)
    }
  }
  const ofGpu = (gpu: Gpu): ConsideredGpu => ({
    nodeId: gpu.node.id,
    nodeName: gpu.node.name,
    gpu: gpu.index,
    ...scoreOf(gpu, when, strategy, searchDemandMib(task.spec)),
    isChosen: gpus.includes(gpu),
  })
  return { strategy, gpus: seen.map(ofGpu), hasMore }
}

/** Call after `task_placed` is recorded. */
export function notePlacement(
  c: Cluster,
  placement: LivePlacement,
  considered: Considered | null,
  when: string,
  causedBy: number | null,
): void {
  if (!c.eventLog.keepsDecisions) return
  const { task, assignedAt } = placement
  const rule = when === 'now' ? 'fits_now' : 'victims_left'
  const { strategy } = c.policy
  record(c, task, placement.gpus, assignedAt, {
    kind: 'placement',
    rule,
    sentence: placementInWords(placement, rule, strategy),
    causedBy,
    strategy,
    gpusConsidered: considered?.gpus ?? [],
    hasMoreGpus: considered?.hasMore ?? false,
    waitedMs: assignedAt - task.pendingSince,
  })
}

interface SwapOutContext {
  /** The number under which rounds remember the decision. */
  readonly number: number
  /** GPUs that a pending task, for which victims leave, could have used instead. */
  readonly considered: Considered | null
  readonly causedBy: number | null
}

/** Call after `swap_decided` is recorded, before any victim leaves. */
export function noteSwapOut(
  c: Cluster,
  entry: LiveEntry,
  { choice, shortages }: Extract<EntryDecision, { kind: 'swap_out' }>,
  { number: swapNumber, considered, causedBy }: SwapOutContext,
  now: Instant,
): void {
  if (!c.eventLog.keepsDecisions) return
  const rules = new Map(choice.victims.map(({ id, rule }) => [id, rule]))
  const all = shortages.flatMap(({ gpu, candidates }) =>
    candidates.map((candidate): ConsideredVictim => {
      const { id: taskId, lastSwapOut, mib, idleMs } = candidate
      const level = VICTIM_LEVELS[levelOf(candidate)] ?? 'non_p0_not_yet_swapped'
      const above = candidate.isAboveRequest === true ? { isAboveRequest: true } : {}
      return { taskId, gpu, level, ...above, lastSwapOut, mib, idleMs, chosenBy: rules.get(taskId) ?? null }
    }),
  )
  const candidates = all
    .sort(byChoice)
    .slice(0, MAX_CANDIDATES)
    .map((one) => ({ ...one, taskName: c.tasks.get(one.taskId)?.spec.name ?? one.taskId }))
  const victims = choice.victims.map(({ id }) => c.tasks.get(id)).filter((task) => task !== undefined)
  record(c, entry.task, entry.gpus, now, {
    kind: 'swap_out',
    rule: entry.isCollector ? 'collector' : 'victims_cover',
    sentence: swapOutInWords(entry, victims, all, shortages, now),
    causedBy,
    strategy: considered?.strategy ?? null,
    gpusConsidered: considered?.gpus ?? [],
    hasMoreGpus: considered?.hasMore ?? false,
    victimIds: choice.victims.map(({ id }) => id),
    missing: shortages.map(({ gpu, missingMib: mib }) => ({ gpu, mib })),
    candidates,
    candidatesLeftOut: all.length - candidates.length,
    swapNumber,
    waitedMs: now - entry.askedAt,
  })
}

/**
 * Records a swap-out without a beneficiary: an operator requested it, or the task returns with a larger
 * demand. Call after its event is recorded.
 */
export function noteLoneSwapOut(
  c: Cluster,
  placement: LivePlacement,
  rule: 'operator' | 'return_grown',
  now: Instant,
): void {
  if (!c.eventLog.keepsDecisions) return
  const { task, gpus } = placement
  const sentence =
    rule === 'operator' ? operatorSwapOutWords(placement, c.eventLog.by) : returnGrownInWords(placement, now)
  record(c, task, gpus, now, { kind: 'swap_out', rule, sentence, victimIds: [task.spec.id] })
}

/** Call after `swap_in_decided` is recorded. */
export function noteSwapIn(c: Cluster, entry: LiveEntry, now: Instant): void {
  if (!c.eventLog.keepsDecisions) return
  record(c, entry.task, entry.gpus, now, {
    kind: 'swap_in',
    rule: 'bytes_free',
    sentence: swapInInWords(entry, now),
    waitedMs: now - entry.askedAt,
    ...othersWaiting(c, entry, now),
  })
}

/** Call after `swap_in_decided` is recorded, before the VRAM is counted as resident. */
export function noteEagerReturn(c: Cluster, placement: LivePlacement, now: Instant): void {
  if (!c.eventLog.keepsDecisions) return
  record(c, placement.task, placement.gpus, now, {
    kind: 'swap_in',
    rule: 'eager_return',
    sentence: eagerReturnInWords(placement, now),
  })
}

/** Call after `growth_granted` is recorded. */
export function noteGrowth(
  c: Cluster,
  placement: LivePlacement,
  entry: LiveEntry | null,
  byMib: Mib,
  now: Instant,
): void {
  if (!c.eventLog.keepsDecisions) return
  record(c, placement.task, placement.gpus, now, {
    kind: 'growth_granted',
    rule: entry === null ? 'return_grown' : 'bytes_free',
    sentence: growthInWords(placement, byMib, entry === null),
    ...(entry === null ? {} : { waitedMs: now - entry.askedAt, ...othersWaiting(c, entry, now) }),
  })
}

/** Call after `growth_refused` is recorded. */
export function noteGrowthRefused(c: Cluster, entry: LiveEntry, reason: string, now: Instant): void {
  if (!c.eventLog.keepsDecisions) return
  record(c, entry.task, entry.gpus, now, {
    kind: 'growth_refused',
    rule: 'waited_too_long',
    sentence: growthRefusedInWords(entry, reason, now),
    waitedMs: now - entry.askedAt,
    ...othersWaiting(c, entry, now),
  })
}

/** As above, for a growth that can never be granted. */
export function noteGrowthTooLarge(
  c: Cluster,
  placement: LivePlacement,
  mib: Mib,
  reason: NeverGranted,
  now: Instant,
): void {
  if (!c.eventLog.keepsDecisions) return
  const sentence = growthTooLargeInWords(placement, mib, reason)
  record(c, placement.task, placement.gpus, now, {
    kind: 'growth_refused',
    rule: reason === 'VRAM_LIMIT' ? 'above_vram_limit' : 'larger_than_gpu',
    sentence,
  })
}

type Facts = Pick<Decision, 'kind' | 'rule' | 'sentence'> & Partial<Decision>

/** Records the decision under the number of the task's latest event. */
function record(c: Cluster, task: LiveTask, gpus: readonly LiveGpu[], at: Instant, facts: Facts): void {
  const [first] = gpus
  if (task.lastEventSeq === null || first === undefined)
    throw new Error(`broken invariant: a decision on ${task.spec.id} has no event`)
  c.eventLog.transaction.decisions.push({
    number: task.lastEventSeq,
    at,
    taskId: task.spec.id,
    taskName: task.spec.name,
    nodeId: first.node.id,
    nodeName: first.node.name,
    gpus: gpus.map(({ index }) => index),
    causedBy: null,
    strategy: null,
    gpusConsidered: [],
    hasMoreGpus: false,
    victimIds: [],
    missing: [],
    candidates: [],
    candidatesLeftOut: 0,
    swapNumber: null,
    waitedMs: null,
    others: [],
    othersLeftOut: 0,
    ...facts,
  })
}

function othersWaiting(
  c: Cluster,
  entry: LiveEntry,
  now: Instant,
): Pick<Decision, 'others' | 'othersLeftOut'> {
  const inOrder = inReturnOrder(entry.node.queue, c.policy, now).filter((other) => other !== entry)
  const others = inOrder
    .slice(0, MAX_OTHERS)
    .map(({ kind, task, askedAt }) => ({ taskId: task.spec.id, what: kind, waitedMs: now - askedAt }))
  return { others, othersLeftOut: inOrder.length - others.length }
}

/**
 * Order in which candidates are recorded.
 * 1. Chosen victims first.
 * 2. Earlier level, then above the request, then older last swap-out: the order in which victims are taken.
 * 3. GPU, then task id, so that the order is total.
 */
const byChoice = firstDifference<ConsideredVictim>(
  (a, b) => Number(a.chosenBy === null) - Number(b.chosenBy === null),
  (a, b) => VICTIM_LEVELS.indexOf(a.level) - VICTIM_LEVELS.indexOf(b.level),
  (a, b) => Number(b.isAboveRequest === true) - Number(a.isAboveRequest === true),
  (a, b) => (a.lastSwapOut ?? -1) - (b.lastSwapOut ?? -1),
  (a, b) => a.gpu - b.gpu,
  (a, b) => byCodeUnits(a.taskId, b.taskId),
)
