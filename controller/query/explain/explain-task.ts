/**
 * Gathers the inputs of an explanation (`scheduler/explain.ts`) from the live cluster, on demand. Decides
 * nothing.
 */
import { requiredFeatures } from '../../policy/placement/feasible.ts'
import type { Instant } from '../../../protocol/units.ts'
import { mayQueue, movableMib, type Node } from '../../model/placement.ts'
import type { PendingFacts, WaitExplanation } from './explain.ts'
import { explainAssigned, explainPending, explainReturn } from './explain.ts'
import type { Request } from './explain-survey.ts'
import { obstacleTo } from '../../policy/node-queue.ts'
import type { Queued } from '../../policy/placement/queue.ts'
import { placeFor } from '../../policy/placement/schedule.ts'
import type { Shape } from '../../policy/placement/shape.ts'
import { searchDemandMib } from '../../policy/placement/shape.ts'
import { attainableMib, freeForMib, shortMib } from '../../policy/swap/bytes.ts'
import { eligibleOn, nextEligibleAt } from '../../policy/swap/eligible.ts'
import { decideEntry, retryAt, coversPlacement } from '../../policy/swap/swap.ts'
import type { Cluster } from '../../state/cluster.ts'
import type { LiveEntry, LiveGpu, LiveNode, LiveTask } from '../../state/facts.ts'
import type { PauseState } from '../../state/placement-pause.ts'
import { pauseOf } from '../../state/placement-pause.ts'
import type { Pool } from '../../state/index/pool.ts'
import { servedBeforeEntry, servedBeforeTask } from './served-before.ts'
import { surveyFor } from './surveys.ts'

/** The part of the cluster that an explanation reads: not its lists of tasks and nodes. */
export type WaitState = PauseState &
  Pick<Cluster, 'blockedTasks' | 'changes' | 'groups' | 'owners' | 'pendingCount' | 'policy' | 'queues'> &
  Pick<Cluster, 'queueFor' | 'refreshPools'>

/** Explains why the task waits now; null if it does not wait. */
export function explainTask(c: WaitState, task: LiveTask, now: Instant): WaitExplanation | null {
  const { placement } = task
  if (placement !== null) {
    if (placement.startedAt === null) return explainAssigned(placement)
    return placement.entry === null ? null : explainEntry(c, placement.entry, now)
  }
  if (task.state !== 'pending') return null
  if (task.placementEntry?.hasReserved === true) return explainEntry(c, task.placementEntry, now)
  return explainIn(c, waitingOf(c, task), now)
}

// ── a pending task ────────────────────────────────────────────────────────────

/** A task as it waits in a pool, or would wait. */
export interface Waiting {
  readonly task: LiveTask
  readonly pool: Pool
  readonly shape: Shape
  readonly queued: Queued
  /** From 1; null while the task is in no queue. */
  readonly position: number | null
}

/** Returns how the task waits, and brings the indexes of its pool up to date. */
export function waitingOf(c: WaitState, task: LiveTask): Waiting {
  c.refreshPools()
  const { pool, shape } = c.queueFor(task.spec)
  const queued: Queued = { task, queueClass: task.queueClass }
  return { task, pool, shape, queued, position: task.queue === null ? null : positionIn(c, queued, pool) }
}

/** The indexes of the pool must be up to date. */
export function explainIn(c: WaitState, waiting: Waiting, now: Instant): WaitExplanation {
  return explainPending(factsOf(c, waiting, now))
}

/** Returns the properties of the task that decide where it fits. */
export function requestOf(
  { policy }: Pick<Cluster, 'policy'>,
  { task: { spec }, shape }: Pick<Waiting, 'task' | 'shape'>,
): Request {
  return {
    shape,
    noswap: spec.noswap,
    demandMib: searchDemandMib(spec),
    maxTasksPerGpu: policy.maxTasksPerGpu,
    needsExec: spec.command !== null,
    features: requiredFeatures(spec),
  }
}

/** For a pending task without reserved VRAM. The indexes of the pool must be up to date. */
export function factsOf(
  c: WaitState,
  { task, pool, shape, queued, position }: Waiting,
  now: Instant,
): PendingFacts {
  const plan = !mayQueue(task) ? null : placeFor(queued, { shape, pool }, c.policy)
  return {
    queued,
    shape,
    policy: c.policy,
    now,
    missingGroups: task.spec.groups.filter((id) => !c.groups.has(id)),
    emptyGroups: task.spec.groups.filter((id) => c.groups.get(id)?.nodeIds.length === 0),
    survey: surveyFor(c, pool, requestOf(c, { task, shape })),
    plan,
    isPlanCovered:
      plan !== null &&
      (plan.when === 'now' || coversPlacement(task, plan.node, plan.gpus as readonly LiveGpu[], now)),
    retryAtOn: (nodes: readonly Node[]) =>
      nextEligibleAt(
        nodes.flatMap((node) => node.gpus),
        task,
        c.policy,
        now,
      ),
    queuePosition: position,
    servedBeforeOn: (node: Node) => servedBeforeTask(c, task, node as LiveNode, now),
    pause: c.blockedTasks.has(task.spec.id) ? 'STORE_BEHIND' : pauseOf(c),
    ownerLimit: ownerLimitOf(c, task),
  }
}

/** Returns the usage and limit of the task's owner if the task exceeds the limit; otherwise null. */
export function ownerLimitOf(
  { owners }: Pick<Cluster, 'owners'>,
  { spec: { owner, gpuCount } }: LiveTask,
): PendingFacts['ownerLimit'] {
  const maxGpus = owners?.limits.maxPlacedGpus ?? null
  if (owners === null || owner === null || maxGpus === null || owners.roomOf(owner) >= gpuCount) return null
  return { placedGpus: owners.placedGpusOf(owner), maxGpus }
}

/** Position from 1. Tasks that can never fit are not counted. */
export function positionIn(c: Pick<Cluster, 'queues'>, queued: Queued, pool: Pool): number {
  let ahead = 0
  for (const queue of c.queues)
    if (queue.pool === pool) ahead += queue.countBefore(queued, pool.largestEverMib(queue.shape))
  return ahead + 1
}

// ── an entry of a node's queue ────────────────────────────────────────────────

function explainEntry(c: WaitState, entry: LiveEntry, now: Instant): WaitExplanation {
  const decision = decideEntry(entry, entry.gpus, now, false)
  const isShort = decision.kind === 'not_covered'
  const hostFreeMib = entry.node.hostSwapMib - entry.node.hostUsedMib
  const reachOn = (gpu: LiveGpu) => {
    const candidates = eligibleOn(gpu, entry.task, now, hostFreeMib)
    return candidates.reduce((sum, { mib }) => sum + mib, entry.needMib - shortMib(gpu, entry))
  }
  const distance = (gpu: LiveGpu) =>
    decision.kind === 'impossible' ? attainableMib(gpu, entry) : reachOn(gpu)
  const gpu = entry.gpus.reduce((worst, each) => (distance(each) < distance(worst) ? each : worst))
  const { placement } = entry.task
  const heldMib = entry.kind === 'growth' && placement !== null ? movableMib(placement) : 0
  const obstacle = obstacleTo(entry, true, now)
  const { claimants } = gpu
  const before = entry.hasReserved ? claimants.slice(0, claimants.indexOf(entry)) : claimants
  return explainReturn({
    entry,
    now,
    verdict: decision.kind === 'impossible' ? 'impossible' : isShort ? 'not_covered' : 'covered',
    lacksHostMemory: obstacle === 'SWAP_SPACE_EXHAUSTED',
    backsOffUntil: obstacle === 'BACKING_OFF' ? (entry.task.placement?.backOffUntil ?? null) : null,
    gpu,
    needMib: heldMib + entry.needMib,
    attainableMib: attainableMib(gpu, entry),
    freeMib: heldMib + freeForMib(gpu, entry),
    reachMib: heldMib + reachOn(gpu),
    keptMib: before.reduce((sum, { needMib }) => sum + needMib, 0),
    keptFor: before[0] ?? null,
    retryAt: isShort ? retryAt(entry, c.policy, now) : null,
    servedBefore: servedBeforeEntry(c, entry, now),
  })
}
