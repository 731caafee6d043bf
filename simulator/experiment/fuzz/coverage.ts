/**
 * The paths of the rules that a run has taken, derived from its events, from the messages between controller
 * and servers, and from wait reasons. The controller itself counts nothing for this.
 */
import type { Event } from '../../../controller/model/event.ts'
import type { Envelope } from '../../../protocol/envelope.ts'
import { FAULT_KINDS } from '../../scenario/fault.ts'
import type { World } from '../../world/world.ts'
import { ProbePaths } from './probe-paths.ts'

/** Number of times each path was taken; paths that were not taken are absent. */
export type Counts = Readonly<Record<string, number>>

/** Batches between two inspections of wait reasons, which cost as much as the decisions themselves. */
const CHECK_EVERY_STEPS = 12

export class Coverage {
  readonly #world: World
  readonly #counts = new Map<string, number>()
  readonly #probes: ProbePaths
  #batches = 0
  #lookedAt = 0

  constructor(world: World) {
    this.#world = world
    this.#probes = new ProbePaths(world)
    world.listen((events) => {
      this.#batches += 1
      for (const event of events)
        for (const path of [...pathsOf(event), ...this.#noswapPaths(event), ...this.#probes.of(event)])
          this.#count(path)
    })
  }

  /** Called with a request and its answer. */
  answered(asked: Envelope, answer: Envelope): void {
    for (const path of answerPaths(asked, answer)) this.#count(path)
  }

  afterStep(): void {
    const { cluster } = this.#world.controller
    if (this.#batches < this.#lookedAt + CHECK_EVERY_STEPS || cluster.hasWork()) return
    this.#lookedAt = this.#batches
    for (const node of cluster.nodes.values())
      if (node.collector !== null) this.#count(`collector ${node.collector.kind}`)
    if (cluster.poolReservations.size > 0) this.#count('reservation of the head')
    this.#countWaits()
  }

  counts(): Counts {
    const faults = this.#world.faults?.faultCounts() ?? null
    if (faults !== null)
      for (const kind of FAULT_KINDS)
        if (faults[kind].fired > 0) this.#counts.set(`fault ${kind}`, faults[kind].fired)
    this.#countHooks()
    return Object.fromEntries([...this.#counts].sort(([a], [b]) => (a < b ? -1 : 1)))
  }

  /** Counts the hooks of the machines that exist at the end. */
  #countHooks(): void {
    let [fallbacks, givenUp] = [0, 0]
    for (const { name } of this.#world.plan.nodes) {
      const { troubles } = this.#world.fleet.node(name).device
      fallbacks += troubles.fallbacks
      givenUp += troubles.hooksGivenUp
    }
    if (fallbacks > 0) this.#counts.set('hooks failed, the driver took over', fallbacks)
    if (givenUp > 0) this.#counts.set('hooks given up', givenUp)
  }

  #countWaits(): void {
    const { views } = this.#world.controller
    for (const task of views.openTasks()) {
      const isWaiting =
        task.placement === null || (task.placement.residency === 'swapped_out' && task.placement.wantsGpu)
      if (!isWaiting) continue
      const explanation = views.explain(task)
      if (explanation === null) continue
      const { reason, nodeIds } = explanation.primary
      this.#count(`waits ${reason}`)
      const node = this.#world.controller.cluster.nodes.get(nodeIds[0] ?? '')
      const isAtZero = node?.gpus[0]?.overcommitPercent === 0
      if (isAtZero && task.placement === null && reason === 'WAITING_PHYSICAL_VRAM')
        this.#count('noswap waits at 0%')
    }
  }

  /**
   * Paths of the controller's decisions for a noswap task; the figures are those after the batch of the
   * event.
   */
  #noswapPaths({ kind, taskId, data }: Event): string[] {
    if (kind !== 'task_placed' && kind !== 'swap_decided') return []
    const task = this.#world.controller.cluster.tasks.get(taskId ?? '')
    if (task === undefined || task.spec.noswap === 0 || task.spec.gpuMode === 'exclusive') return []
    if (kind === 'swap_decided') return data['for'] === 'placement' ? ['swap for noswap placement'] : []
    const gpus = task.placement?.gpus ?? []
    const isBeyond = gpus.some(({ noswapMib, swappableMib, limitMib }) => noswapMib + swappableMib > limitMib)
    return isBeyond ? ['noswap placed beyond the commit limit'] : []
  }

  #count(path: string): void {
    this.#counts.set(path, (this.#counts.get(path) ?? 0) + 1)
  }
}

/** The results of commands, the reasons of refused messages, and the orders to end tasks or to restart. */
function answerPaths({ body: asked }: Envelope, { body: answer }: Envelope): string[] {
  if (answer.op === 'result')
    return [`${asked.op} ${answer.outcome}${answer.reason === null ? '' : ` ${answer.reason}`}`]
  if (answer.op === 'refused') return [`${asked.op} refused ${answer.reason}`]
  if (answer.op === 'state_reset') return [answer.op]
  return (answer.op === 'lease' || answer.op === 'welcome') && answer.stop.length > 0 ? ['told to stop'] : []
}

/** Adds the counts of several runs. */
export function addCounts(all: Map<string, number>, counts: Counts): void {
  for (const [path, count] of Object.entries(counts)) all.set(path, (all.get(path) ?? 0) + count)
}

function pathsOf(event: Event): string[] {
  const { kind, data } = event
  switch (kind) {
    case 'task_placed':
      return placedPaths(data)
    case 'task_returned':
      return [`returned ${wordOf(data['reason'])}`]
    case 'task_finished':
      return [
        `ended ${String(data['state'])}`,
        ...(data['state'] === 'lost' ? [`lost because ${wordOf(data['code'])}`] : []),
      ]
    case 'task_residency':
      return [
        `residency ${String(data['residency'])}`,
        ...(data['residual_mib'] === undefined ? [] : ['residency swapped_out, a rest stays']),
        ...(data['because'] === null ? [] : [`moved because ${wordOf(data['because'])}`]),
      ]
    case 'swap_decided':
      return swapPaths(data)
    case 'swap_failed':
      return [`swap failed ${wordOf(data['reason'])}`]
    case 'growth_refused':
      return [`growth refused ${String(data['reason'])}`]
    case 'node_status':
      return [`node ${String(data['status'])}`]
    case 'requeue_freeze':
      return [
        data['is_frozen'] === true
          ? 'freeze begins'
          : data['by'] === null
            ? 'freeze is lifted'
            : 'freeze is released',
      ]
    case 'broker_absence':
      return [data['is_away'] === true ? 'broker away' : 'broker back']
    case 'task_late_result':
      return [data['is_used'] === true ? 'late result used' : 'late result not used']
    case 'task_updated':
      return [data['stopping'] === true ? 'stop ordered' : 'task_updated']
    case 'swap_in_decided':
      return [data['eager'] === true ? 'eager return' : kind]
    case 'node_auto_cordon':
      return [data['is_auto_cordoned'] === true ? 'node closed by itself' : 'node opened by itself']
    case 'task_paused':
      return [`paused ${String(data['reason'])}`]
    case 'task_resumed':
      return [`resumed ${String(data['because'])}`]
    case 'store_behind':
      return [
        data['is_behind'] === true ? `store behind ${wordOf(data['reason'])}` : 'store no longer behind',
      ]
    case 'recovery':
      return [data['is_on'] === true ? 'recovery begins' : 'recovery ends']
    case 'attempt_settled':
      return [`unknown attempt ${wordOf(data['how'])}`]
    case 'attempt_quarantined':
    case 'config_changed':
    case 'duplicate_node':
    case 'group_changed':
    case 'group_deleted':
    case 'growth_granted':
    case 'leader_changed':
    case 'node_config_changed':
    case 'node_drain':
    case 'node_forgotten':
    case 'node_registered':
    case 'reserve_breached':
    case 'swap_ordered':
    case 'task_became_noswap':
    case 'task_held':
    case 'task_reachable':
    case 'task_released':
    case 'task_started':
    case 'task_submitted':
    case 'task_unreachable':
      return [kind]
  }
}

function placedPaths(data: Event['data']): string[] {
  const paths = [`placed ${String(data['when'])}`]
  if ((data['gpus'] as readonly number[]).length > 1) paths.push('placed on several GPUs')
  if ((data['attempt'] as number) > 1) paths.push('placed again')
  return paths
}

function swapPaths(data: Event['data']): string[] {
  const victims = data['victims'] as readonly { readonly class: string }[]
  const closed = data['closed_rounds'] as readonly { readonly class: string }[]
  return [
    `swap for ${String(data['for'])}`,
    ...victims.map((victim) => `victim ${victim.class}`),
    ...closed.map((round) => `round closed ${round.class}`),
    ...((data['missing'] as readonly unknown[]).length > 1 ? ['several GPUs short'] : []),
  ]
}

/** Names of people and tasks are removed. */
function wordOf(value: unknown): string {
  return String(value)
    .replace(/^for .*/, 'for another')
    .replace(/ by .*/, '')
    .replace(/^its node is drained.*/, 'drained')
}
