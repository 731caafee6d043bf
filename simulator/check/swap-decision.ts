/**
 * A parsed `swap_decided` event, with the tasks that were eligible at that decision, derived again (semantics
 * 5, "Eligible").
 */
import type { Event } from '../../controller/model/event.ts'
import type { Instant, Mib } from '../../protocol/units.ts'
import type { Observed, ObservedRequest } from './observed.ts'
import { isNoswap, movableMib, type Shadow, type ShadowNode, type ShadowTask } from './shadow.ts'

/** In the order in which they leave. */
export const CLASSES = ['non_p0', 'non_p0_warm', 'p0', 'p0_warm'] as const
export type VictimClass = (typeof CLASSES)[number]

export interface SwapDecision {
  readonly at: Instant
  readonly node: ShadowNode
  readonly requester: ShadowTask
  readonly kind: 'swap_in' | 'growth' | 'placement'
  readonly victims: readonly { readonly id: string; readonly gpu: number; readonly class: VictimClass }[]
  readonly closedRounds: readonly { readonly gpu: number; readonly class: VictimClass }[]
  /** GPUs with a shortfall, by index. */
  readonly missing: readonly { readonly gpu: number; readonly mib: Mib }[]
}

/** Null for any other event, and for events of unknown tasks. */
export function swapDecisionOf(
  { kind, at, taskId, nodeId, data }: Event,
  shadow: Shadow,
): SwapDecision | null {
  if (kind !== 'swap_decided') return null
  const node = shadow.nodes.get(nodeId ?? '')
  const requester = shadow.tasks.get(taskId ?? '')
  if (node === undefined || requester === undefined) return null
  const missing = data['missing'] as SwapDecision['missing']
  return {
    at,
    node,
    requester,
    kind: data['for'] as SwapDecision['kind'],
    victims: data['victims'] as SwapDecision['victims'],
    closedRounds: data['closed_rounds'] as SwapDecision['closedRounds'],
    missing: missing.toSorted((a, b) => a.gpu - b.gpu),
  }
}

export function classOf({ request }: ShadowTask): VictimClass {
  return classOfRequest(request)
}

export function classOfRequest({
  priority,
  keepWarm = false,
}: Pick<ObservedRequest, 'priority' | 'keepWarm'>): VictimClass {
  if (priority === 0) return keepWarm ? 'p0_warm' : 'p0'
  return keepWarm ? 'non_p0_warm' : 'non_p0'
}

/**
 * Returns why the task may not be swapped out at this decision, apart from class rules; null if it may.
 * Idleness is the server's own count: since the later of the last GPU use and the last start or swap-in.
 */
export function ineligibility(
  task: ShadowTask,
  { at, node, requester }: SwapDecision,
  shadow: Shadow,
  observed: Observed,
): string | null {
  const { placement } = task
  if (task === requester) return 'it is the requester'
  if (placement === null || placement.nodeId !== node.id) return 'it is not on that node'
  if (isNoswap(task)) return 'it is noswap'
  if (placement.residency !== 'resident' || placement.residentSince === null)
    return `it is ${placement.residency}, not resident`
  if (placement.isStopping) return 'it is being stopped'
  if (at < task.backOffUntil) return 'it is in back-off after a failed swap'
  if (movableMib(task) * placement.gpus.length > shadow.hostFreeMib(node))
    return 'it does not fit in host memory'
  const attempt = observed.attemptsOn(node.id).get(task.id)
  if (attempt === undefined) return 'it does not run on that node'
  return activity(
    task,
    attempt,
    { residentSince: placement.residentSince, idleFrom: placement.idleFrom ?? at },
    at,
    shadow,
  )
}

/** Neither idle for the idle period nor, unless it is P0, resident for `max_residency_seconds`. */
function activity(
  { request }: ShadowTask,
  { wantsGpu, lastUseAt }: { readonly wantsGpu: boolean; readonly lastUseAt: Instant },
  { residentSince, idleFrom }: { readonly residentSince: Instant; readonly idleFrom: Instant },
  at: Instant,
  { config }: Shadow,
): string | null {
  const maxMs =
    config.max_residency_seconds === null || request.priority === 0
      ? Infinity
      : config.max_residency_seconds * 1000
  if (at - residentSince >= maxMs) return null
  if (wantsGpu) return 'it wants the GPU'
  const idleMs = at - Math.max(lastUseAt, idleFrom)
  const periodMs = (request.idleSwapOutSeconds ?? config.idle_swap_out_seconds) * 1000
  return idleMs >= periodMs ? null : `it is idle for ${idleMs} ms, the idle period is ${periodMs} ms`
}

/** The eligible tasks on one of the node's GPUs. A P0 task is eligible only for a P0 requester. */
export function eligibleOn(
  gpu: number,
  decision: SwapDecision,
  shadow: Shadow,
  observed: Observed,
): ShadowTask[] {
  const isForP0 = decision.requester.request.priority === 0
  return [...(decision.node.tasks[gpu] ?? [])].filter(
    (task) =>
      (isForP0 || task.request.priority !== 0) && ineligibility(task, decision, shadow, observed) === null,
  )
}
