/**
 * The state of the cluster, derived from events alone and by other means than the engine's: placements,
 * residency and settings. Figures are summed on demand. MiB are per GPU.
 */
import type { ConfigFields } from '../../controller/model/config.ts'
import type { Event, EventData } from '../../controller/model/event.ts'
import type { StoredState, TaskRecord } from '../../controller/ports/store.ts'
import type { DurationMs, Instant, Mib, Percent } from '../../protocol/units.ts'
import { LostAttempts } from './lost-attempts.ts'
import type { Observed, ObservedNode, ObservedRequest } from './observed.ts'

export type ShadowResidency = 'none' | 'resident' | 'swapping_out' | 'swapped_out' | 'swapping_in'

export interface ShadowPlacement {
  readonly nodeId: string
  readonly gpus: readonly number[]
  readonly attempt: number
  demandMib: Mib
  /** What its last swap-out left in VRAM on each GPU. */
  residualMib: Mib
  /** Its server found that it cannot be swapped out. */
  isUnswappable: boolean
  residency: ShadowResidency
  /** Since its start or its last swap-in. */
  residentSince: Instant | null
  /** Its server was ordered to stop it. */
  isStopping: boolean
  /** The earliest instant from which it counts as idle; an eager return does not count. */
  idleFrom: Instant | null
  /** How long it was idle when its node reported it, in place of a start. */
  readonly reportedIdleMs: DurationMs
  /** Its last return was eager: nothing had requested it. */
  isEager: boolean
}

export interface ShadowTask {
  readonly id: string
  readonly submittedAt: Instant
  request: ObservedRequest
  /**
   * Start of its wait for a placement; in the future while it is paused after refused or short attempts
   * (safety 3).
   */
  pendingSince: Instant
  placement: ShadowPlacement | null
  /** After a failed swap it cannot be a victim before this instant. */
  backOffUntil: Instant
}

export interface ShadowNode extends ObservedNode {
  overcommitPercent: Percent | null
  reserveMib: Mib | null
  /** Tasks by GPU index. */
  readonly tasks: readonly Set<ShadowTask>[]
}

/**
 * Semantics section 5 requires a back-off after a failed swap; this is the controller's
 * (engine/inputs/nodes/node-events.ts).
 */
const SWAP_BACK_OFF_MS = 30_000

export class Shadow {
  /** Pending and placed tasks. */
  readonly tasks = new Map<string, ShadowTask>()
  readonly nodes: ReadonlyMap<string, ShadowNode>
  /** Node ids by group. */
  readonly groups = new Map<string, ReadonlySet<string>>()
  /** Nodes whose latest event says that they are silent. */
  readonly silentNodes = new Set<string>()
  readonly history = new LostAttempts()
  config: ConfigFields
  readonly #observed: Observed

  constructor(observed: Observed) {
    this.#observed = observed
    this.config = observed.config
    this.nodes = new Map(
      observed.nodes.map((node) => [
        node.id,
        {
          ...node,
          overcommitPercent: null,
          reserveMib: null,

          tasks: Array.from({ length: node.gpuCount }, () => new Set()),
        },
      ]),
    )
    if (observed.start !== undefined) this.#begin(observed.start)
  }

  /** State at the start of the scenario. */
  #begin({ nodes, groups, openTasks }: StoredState): void {
    for (const { id, overcommitOverride, reserveOverrideMib } of nodes) {
      const node = this.nodes.get(id)
      if (node !== undefined)
        [node.overcommitPercent, node.reserveMib] = [overcommitOverride, reserveOverrideMib]
    }
    for (const { id, nodeIds } of groups) this.groups.set(id, new Set(nodeIds))
    for (const record of openTasks) this.#beginWith(record)
  }

  #beginWith(record: TaskRecord): void {
    const { id, submittedAt, placement, trouble } = record
    const pendingSince = trouble?.pause?.until ?? record.pendingSince
    const task: ShadowTask = {
      id,
      submittedAt,
      request: record,
      pendingSince,
      placement: null,
      backOffUntil: placement?.backOffUntil ?? 0,
    }
    this.tasks.set(id, task)
    if (placement === null) return
    this.#place(task, placement.nodeId, {
      gpus: placement.gpus,
      attempt: record.attempt,
      demand_mib: placement.demandMib,
    })
    if (task.placement !== null) {
      task.placement.residency = placement.residency
      task.placement.residualMib = placement.residualMib ?? 0
      task.placement.isUnswappable = placement.noswap === 1 && record.noswap === 0
      task.placement.residentSince = placement.residentSince
      task.placement.isStopping = placement.stopping !== null
      task.placement.idleFrom = placement.idleFrom ?? placement.residentSince
      task.placement.isEager = placement.isEager === true
    }
  }

  /** The store went back to this state. */
  setBack(stored: StoredState): void {
    const placed = [...this.tasks.values()].flatMap(({ id: taskId, placement }) =>
      placement === null ? [] : [{ taskId, ...placement }],
    )
    this.history.setBack(placed, stored)
    this.tasks.clear()
    this.groups.clear()
    this.silentNodes.clear()
    for (const node of this.nodes.values()) {
      for (const tasks of node.tasks) tasks.clear()
      node.overcommitPercent = null
      node.reserveMib = null
    }
    this.config = { ...this.#observed.config, ...stored.config?.fields }
    for (const { id, status = 'up' } of stored.nodes) if (status !== 'up') this.silentNodes.add(id)
    this.#begin(stored)
  }

  // ── figures ─────────────────────────────────────────────────────────────────

  reserveMib(node: ShadowNode): Mib {
    return node.reserveMib ?? this.config.safety_reserve_mib
  }

  /** C */
  capacityMib(node: ShadowNode): Mib {
    return Math.max(0, node.physicalMib - this.reserveMib(node))
  }

  percentOn(node: ShadowNode): Percent {
    return node.overcommitPercent ?? this.config.default_vram_overcommit_percent
  }

  /** L */
  limitMib(node: ShadowNode): Mib {
    const percent = this.percentOn(node)
    const effectiveMib =
      (node.physicalMib * (100 + percent) - ((node.physicalMib * (100 + percent)) % 100)) / 100
    return percent === 0 ? Math.min(effectiveMib, this.capacityMib(node)) : effectiveMib
  }

  /** Σ d of all placed tasks. */
  placedMib(node: ShadowNode, gpu: number): Mib {
    let mib = 0
    for (const task of node.tasks[gpu] ?? []) mib += task.placement?.demandMib ?? 0
    return mib
  }

  /** Σ d of tasks in VRAM or in a swap, new placements included, and what others have left there. */
  residentMib(node: ShadowNode, gpu: number): Mib {
    let mib = 0
    for (const { placement } of node.tasks[gpu] ?? [])
      if (placement !== null)
        mib += placement.residency === 'swapped_out' ? placement.residualMib : placement.demandMib
    return mib
  }

  /** Host memory that is free of swapped-out bytes and of bytes in a swap. */
  hostFreeMib(node: ShadowNode): Mib {
    let mib = node.hostSwapMib
    for (const task of new Set(node.tasks.flatMap((tasks) => [...tasks]))) {
      const { placement } = task
      if (placement !== null && placement.residency !== 'none' && placement.residency !== 'resident')
        mib -= movableMib(task) * placement.gpus.length
    }
    return mib
  }

  /** Tasks without target groups use nodes without groups; others use nodes of their target groups. */
  isOpenTo(node: ShadowNode, request: ObservedRequest): boolean {
    const groups = [...this.groups].filter(([, members]) => members.has(node.id)).map(([group]) => group)
    return groups.length === 0
      ? request.groups.length === 0
      : groups.some((group) => request.groups.includes(group))
  }

  /** Some node that the task may use would take it if it were empty. */
  isFeasible({ request }: ShadowTask): boolean {
    for (const node of this.nodes.values()) {
      const isLargeEnough = Math.max(1, request.vramMib) <= node.physicalMib - this.reserveMib(node)
      const room = { nodeId: node.id, gpuCount: node.gpuCount, capacityMib: this.capacityMib(node) }
      const needMib = request.gpuMode === 'exclusive' ? Infinity : Math.max(1, request.vramMib)
      const gpus = this.#usableGpus(node) - this.history.takenGpus(room, needMib)
      if (isLargeEnough && gpus >= request.gpuCount && this.isOpenTo(node, request)) return true
    }
    return false
  }

  /** GPUs that are lost for good take no task. */
  #usableGpus({ id, gpuCount }: ShadowNode): number {
    return this.#observed.faults?.usableGpus(id) ?? gpuCount
  }

  // ── events ──────────────────────────────────────────────────────────────────

  apply(event: Event): void {
    const { kind, taskId, nodeId, data, at } = event
    if (this.history.apply(event)) return
    if (taskId === null) return this.#applySettings(event)
    if (kind === 'task_submitted') {
      const request = this.#observed.requestOf(taskId) ?? requestFrom(data)
      const task: ShadowTask = {
        id: taskId,
        submittedAt: at,
        request,
        pendingSince: at,
        placement: null,
        backOffUntil: 0,
      }
      this.tasks.set(taskId, task)
      return
    }
    const task = this.tasks.get(taskId)
    if (task !== undefined) this.#applyToTask(task, event, nodeId)
  }

  #applyToTask(task: ShadowTask, { kind, data, at }: Event, nodeId: string | null): void {
    switch (kind) {
      case 'task_updated':
        task.request = this.#observed.requestOf(task.id) ?? task.request
        if (task.placement !== null && data['stopping'] === true) task.placement.isStopping = true
        if (task.placement !== null && isNamed(data['fields'], 'noswap')) task.placement.isUnswappable = false
        return
      case 'task_placed':
        return this.#place(task, nodeId, data)
      case 'task_started':
        if (task.placement !== null)
          Object.assign(task.placement, {
            ...{ residency: 'resident', residentSince: at },
            idleFrom: at - task.placement.reportedIdleMs,
          })
        return
      case 'task_returned':
        this.#unplace(task)
        task.pendingSince = at
        return
      case 'task_finished':
        this.#unplace(task)
        this.tasks.delete(task.id)
        return
      case 'task_paused':
        task.pendingSince = data['until'] as Instant
        return
      case 'task_resumed':
        task.pendingSince = at
        return
      case 'task_residency':
        if (task.placement !== null && data['residency'] === 'swapped_out')
          task.placement.residualMib = (data['residual_mib'] as Mib | undefined) ?? 0
        return changeResidency(task, data['residency'] as ShadowResidency, at)
      case 'task_became_noswap':
        if (task.placement !== null) task.placement.isUnswappable = true
        return
      case 'growth_granted':
        if (task.placement !== null) task.placement.demandMib = data['demand_mib'] as Mib
        return
      case 'swap_failed':
        task.backOffUntil = at + SWAP_BACK_OFF_MS
        return
      case 'swap_in_decided':
        if (task.placement !== null) task.placement.isEager = data['eager'] === true
        return
      case 'task_submitted':
      case 'task_unreachable':
      case 'task_reachable':
      case 'swap_decided':
      case 'growth_refused':
      case 'reserve_breached':
      case 'task_late_result':
      case 'task_held':
      case 'task_released':
      case 'swap_ordered':
      case 'node_drain':
      case 'config_changed':
      case 'node_registered':
      case 'node_status':
      case 'node_config_changed':
      case 'node_forgotten':
      case 'group_changed':
      case 'group_deleted':
      case 'requeue_freeze':
      case 'broker_absence':
      case 'node_auto_cordon':
      case 'duplicate_node':
      case 'store_behind':
      case 'recovery':
      case 'attempt_quarantined':
      case 'attempt_settled':
      case 'leader_changed':
        return
    }
  }

  #place(task: ShadowTask, nodeId: string | null, data: EventData): void {
    const node = this.nodes.get(nodeId ?? '')
    if (node === undefined) return
    const gpus = data['gpus'] as readonly number[]
    task.placement = {
      nodeId: node.id,
      gpus,
      attempt: data['attempt'] as number,
      demandMib: data['demand_mib'] as Mib,
      residualMib: 0,
      isUnswappable: false,
      residency: 'none',
      residentSince: null,
      isStopping: false,
      idleFrom: null,
      reportedIdleMs: (data['idle_ms'] ?? 0) as DurationMs,
      isEager: false,
    }
    for (const gpu of gpus) node.tasks[gpu]?.add(task)
  }

  #unplace(task: ShadowTask): void {
    if (task.placement === null) return
    const node = this.nodes.get(task.placement.nodeId)
    for (const gpu of task.placement.gpus) node?.tasks[gpu]?.delete(task)
    task.placement = null
  }

  #applySettings({ kind, nodeId, data }: Event): void {
    if (kind === 'config_changed') {
      const { revision: _revision, ...fields } = data
      this.config = { ...this.config, ...(fields as Partial<ConfigFields>) }
    } else if (kind === 'group_changed')
      this.groups.set(data['group'] as string, new Set(data['nodes'] as readonly string[]))
    else if (kind === 'group_deleted') this.groups.delete(data['group'] as string)
    else if (kind === 'node_status') {
      if (data['status'] === 'up') this.silentNodes.delete(nodeId ?? '')
      else this.silentNodes.add(nodeId ?? '')
    } else if (kind === 'node_config_changed') {
      const node = this.nodes.get(nodeId ?? '')
      if (node === undefined) return
      if ('overcommit_vram_percent' in data)
        node.overcommitPercent = data['overcommit_vram_percent'] as Percent | null
      if ('safety_reserve_mib' in data) node.reserveMib = data['safety_reserve_mib'] as Mib | null
    }
  }
}

/** Returns the VRAM that a swap-out frees on each GPU, as observed at the last swap-out. */
export function movableMib({ placement }: ShadowTask): Mib {
  return placement === null ? 0 : placement.demandMib - placement.residualMib
}

export function isNoswap({ request, placement }: ShadowTask): boolean {
  return request.noswap === 1 || placement?.isUnswappable === true
}

/** A cancelled swap-out has interrupted nothing. */
function changeResidency({ placement }: ShadowTask, to: ShadowResidency, at: Instant): void {
  if (placement === null) return
  const from = placement.residency
  placement.residency = to
  if (to !== 'resident' || from === 'swapping_out') return
  placement.residentSince = at
  if (!placement.isEager) placement.idleFrom = at
}

/**
 * A task that was submitted and ended within one instant; its groups are not in the event, and no longer
 * matter.
 */
function requestFrom(data: EventData): ObservedRequest {
  return {
    vramMib: data['vram_mib'] as Mib,
    gpuCount: data['gpus'] as number,
    gpuMode: data['mode'] as ObservedRequest['gpuMode'],
    noswap: data['noswap'] as ObservedRequest['noswap'],
    priority: data['priority'] as ObservedRequest['priority'],
    groups: [],
  }
}

function isNamed(fields: unknown, field: string): boolean {
  return Array.isArray(fields) && fields.includes(field)
}
