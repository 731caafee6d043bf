/**
 * Predicts where a task would be placed if submitted now, and which victims would leave for it: the deciders
 * of the cycle, applied to a temporary task. Derived figures are updated as in the next cycle; nothing else
 * changes.
 */
import type { Instant, Mib } from '../../../protocol/units.ts'
import { movableMib, type Gpu, type Node, type Task } from '../../model/placement.ts'
import type { WaitExplanation } from '../explain/explain.ts'
import { queueClass, type Queued } from '../../policy/placement/queue.ts'
import { yieldsToP0 } from '../../policy/node-queue.ts'
import { whenPlacedOn } from '../../policy/place-alone.ts'
import { gpusOnNode, placeFor, type Plan } from '../../policy/placement/schedule.ts'
import { byNodeId } from '../../policy/placement/score.ts'
import { shapeOf } from '../../policy/placement/shape.ts'
import { decidePlacement } from '../../policy/swap/swap.ts'
import type { Cluster } from '../../state/cluster.ts'
import { forkWithReservations, releaseEntryOn } from '../../state/snapshot/node-fork.ts'
import type { Answer } from '../../model/command.ts'
import type { TaskRequest } from '../../../protocol/task.ts'
import type { Waiting, WaitState } from '../explain/explain-task.ts'
import { explainIn, ownerLimitOf, positionIn } from '../explain/explain-task.ts'
import type { LiveGpu, LiveTask } from '../../state/facts.ts'
import { newLiveTask } from '../../state/new-facts.ts'
import { problemsOf } from '../../engine/inputs/commands/task-commands.ts'
import { specOfRequest } from '../../../protocol/task-body.ts'

export interface PredictedVictim {
  readonly task: Task
  /** The GPU whose shortage chose it. */
  readonly gpu: number
  /** VRAM freed on each of its GPUs. */
  readonly mib: Mib
}

export interface Prediction {
  /**
   * `after_swap`: VRAM would be reserved at once, and the task would start when the victims have left. Null:
   * it would wait.
   */
  readonly when: 'now' | 'after_swap' | null
  readonly node: Node | null
  readonly gpus: readonly Gpu[]
  readonly demandMib: Mib
  readonly victims: readonly PredictedVictim[]
  /** Why it would wait; null if it would not. */
  readonly wait: WaitExplanation | null
}

export function predictPlacement(c: Cluster, request: TaskRequest, now: Instant): Answer<Prediction> {
  const problems = problemsOf(request)
  if (problems.length > 0) return { ok: false, refusal: { code: 'invalid', problems } }
  c.eligibilityTimers.runDue(c, now)
  c.deriveFigures()
  const task = newLiveTask(specOfRequest(request, '', c.nextTaskSeq, c.policy.maxRequeues, now), now)
  const { poolKey } = shapeOf(task.spec)
  const isNewPool = !c.pools.has(poolKey)
  const prediction = predict(c, task, now)
  if (isNewPool) c.dropPool(poolKey)
  return { ok: true, value: prediction }
}

function predict(
  c: WaitState & Pick<Cluster, 'collecting' | 'poolFor' | 'tasks'>,
  task: LiveTask,
  now: Instant,
): Prediction {
  const shape = shapeOf(task.spec)
  const pool = c.poolFor(shape.poolKey)
  const queued: Queued = { task, queueClass: queueClass(task, c.policy, now) }
  const position = positionIn(c, queued, pool)
  const isBehind = ownerLimitOf(c, task) !== null || (c.policy.strategy === 'fifo' && position > 1)
  for (let isFirst = true; ; isFirst = false) {
    const plan = isBehind ? null : placeFor(queued, { shape, pool }, c.policy)
    const found =
      (plan === null ? null : placed(c, task, plan, now)) ??
      (isFirst && !isBehind ? inPlaceOfCollector(c, { queued, task, shape, pool }, now) : null)
    if (found !== null) return found
    if (plan === null) return { ...NOWHERE, wait: explainIn(c, { task, pool, shape, queued, position }, now) }
    // The victims do not cover the task there: continue with the other nodes, as the cycle does.
    task.avoidedNow = new Set([...(task.avoidedNow ?? []), plan.node])
  }
}

/** For a P0 task that fits nowhere else: on a node whose collector lets its VRAM go for it. */
function inPlaceOfCollector(
  c: Pick<Cluster, 'collecting' | 'policy' | 'tasks'>,
  { queued, task, shape, pool }: Omit<Waiting, 'position'>,
  now: Instant,
): Prediction | null {
  if (!shape.isP0) return null
  for (const node of [...c.collecting].sort(byNodeId)) {
    const { collector } = node
    if (collector === null || !yieldsToP0(collector) || !pool.nodes.has(node)) continue
    const fork = forkWithReservations(node)
    releaseEntryOn(fork, collector)
    const when = whenPlacedOn(fork, queued, shape, c.policy, now)
    const gpus = when === null ? null : gpusOnNode(fork, queued, shape, when, c.policy)
    const found = when === null || gpus === null ? null : placed(c, task, { when, node: fork, gpus }, now)
    if (found !== null)
      return { ...found, node, gpus: found.gpus.map(({ index }) => node.gpus[index] as Gpu) }
  }
  return null
}

const NOWHERE = { when: null, node: null, gpus: [], demandMib: 0, victims: [] } as const

/** Returns null if the victims do not cover the task. */
function placed(
  c: Pick<Cluster, 'tasks'>,
  task: LiveTask,
  { when, node, gpus }: Pick<Plan, 'when' | 'node' | 'gpus'>,
  now: Instant,
): Prediction | null {
  const demandMib =
    task.spec.vramMib > 0 ? task.spec.vramMib : Math.min(...gpus.map((gpu) => gpu.capacityMib))
  const place = { when, node, gpus, demandMib, wait: null }
  if (when === 'now') return { ...place, victims: [] }
  // Ordered as in the queue of the node.
  const byIndex = [...gpus].sort((a, b) => a.index - b.index) as LiveGpu[]
  const decision = decidePlacement(task, node, byIndex, now)
  const later = { ...place, gpus: byIndex }
  if (decision.kind === 'wait') return { ...later, victims: [] }
  if (decision.kind !== 'swap_out') return null
  const victims = decision.choice.victims.flatMap(({ id, gpu }) => {
    const victim = c.tasks.get(id)
    if (victim === undefined) return []
    return [{ task: victim, gpu, mib: victim.placement === null ? 0 : movableMib(victim.placement) }]
  })
  return { ...later, victims }
}
