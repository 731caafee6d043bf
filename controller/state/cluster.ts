/** The state of the engine, and the upkeep of its indexes. Only functions of this folder change it. */
import type { Instant } from '../../protocol/units.ts'
import type { Config, Policy } from '../model/config.ts'
import { policyOf } from '../model/config.ts'
import type { Group } from '../model/group.ts'
import { byCodeUnits } from '../structures/order.ts'
import type { AheadNode, BrokerAbsence, Recovery, RequeueFreeze } from '../model/controller-status.ts'
import { BROKER_PRESENT, NOT_FROZEN } from '../model/controller-status.ts'
import type { OwnerLimits } from '../model/owner-limits.ts'
import { isNearAttemptLimit } from '../policy/placement/feasible.ts'
import { type FinalState } from '../model/task.ts'
import { type TaskSpec } from '../../protocol/task.ts'
import { type TaskState } from '../../protocol/units.ts'
import { isWaiting } from '../model/placement.ts'
import { imageToRun } from '../model/image-to-run.ts'
import { settingsOn } from '../model/vram.ts'
import { FairnessTracker } from '../metrics/fairness.ts'
import { shapeOf } from '../policy/placement/shape.ts'
import { queueClass } from '../policy/placement/queue.ts'
import type { SchedulingView } from '../policy/placement/schedule.ts'
import type { CancelTimer } from '../ports/clock.ts'
import { RecentRuns } from './activity-runs.ts'
import { rederive, setCapacity } from './gpu-ledger.ts'
import type { LiveGpu, LiveNode, LivePlacement, LiveTask, SwapTotals, PoolReservation } from './facts.ts'
import { newSwapTotals } from './new-facts.ts'
import { LeaseTracker } from './lease-tracker.ts'
import type { VictimPolicy } from '../policy/swap/victims.ts'
import { BY_RULES } from '../policy/swap/victims.ts'
import { belongsTo } from './index/membership.ts'
import { OwnerUsage } from './owner-usage.ts'
import { PendingQueue } from './index/pending-queue.ts'
import { Pool } from './index/pool.ts'
import { EpochHistory } from './epoch-history.ts'
import { EventLog } from './transaction.ts'
import { EligibilityTimers } from './index/eligibility-timers.ts'
import { StaleGpus } from './index/stale-gpus.ts'
import { SubmissionLog } from './submission-log.ts'
import { SubmissionKeys } from './submission-keys.ts'
import { EagerReturnChecks } from './eager-return-checks.ts'
import { WaitingDemand } from './index/waiting-demand.ts'

/** Known nodes that have not been heard since the start. */
export interface StartWait {
  readonly awaited: Set<string>
  cancel: CancelTimer
}

export class Cluster implements SchedulingView {
  readonly nodes = new Map<string, LiveNode>()
  /** Pending and placed tasks, in submission order as long as ids are only added. */
  readonly tasks = new Map<string, LiveTask>()
  readonly submissions = new SubmissionLog()
  readonly groups = new Map<string, Group>()
  readonly pools = new Map<string, Pool>()
  readonly eventLog = new EventLog()
  readonly eligibilityTimers = new EligibilityTimers()
  readonly poolReservations = new Map<Pool, PoolReservation>()
  /** Nodes with a collector. */
  readonly collecting = new Set<LiveNode>()
  /**
   * Pending tasks that avoid some nodes for the rest of this cycle: the indexes admitted the task there, but
   * the victims did not cover it.
   */
  readonly avoiders = new Set<LiveTask>()
  /** Tasks that have not started and that some node has refused since its last snapshot. */
  readonly refusedTasks = new Set<LiveTask>()
  readonly finished: Record<FinalState, number> = { completed: 0, failed: 0, cancelled: 0, lost: 0 }
  readonly fairness = new FairnessTracker()
  readonly activity = new RecentRuns()
  readonly victimPolicy: VictimPolicy
  readonly swapTotals: SwapTotals = newSwapTotals()
  /** Grows with every change of a GPU or node that a placement could depend on. */
  changes = 0
  /** Grows with every task that joins or leaves a pending queue. */
  queueChanges = 0
  /** Value of `queueChanges` that the last cycle has processed. */
  queueChangesSeen = 0
  lastReservationPass: { readonly changes: number; readonly nextAt: Instant | null } = {
    changes: -1,
    nextAt: null,
  }
  freeze: RequeueFreeze = NOT_FROZEN
  broker: BrokerAbsence = BROKER_PRESENT
  /** Epochs that have written to the store. */
  readonly history = new EpochHistory()
  /** Nodes heard since the start, by id. Null: the node has heard of nothing that the store lacks. */
  readonly contacts = new Map<string, AheadNode | null>()
  aheadCount = 0
  /** More than half of the contacts have heard of more than the store has. */
  isStoreBehind = false
  /** Tasks with an attempt on a node that is ahead of the store. They are not placed. */
  blockedTasks: ReadonlySet<string> = NO_TASKS
  /**
   * Nodes that have heard, since the start, of something that a restore or an accepted loss has taken from
   * the store.
   */
  readonly heardOfLoss = new Set<string>()
  startWait: StartWait | null = null
  recovery: Recovery | null = null
  /** Placements were paused when the last cycle ended. */
  wasPaused = false
  /**
   * Attempts that ended for the controller before their node reported it, the newest by task: a node that
   * still names one stops it.
   */
  readonly endedUnconfirmed = new Map<string, number>()
  readonly leases = new LeaseTracker()
  readonly submissionKeys = new SubmissionKeys()
  /** Null: owners have no limits. */
  owners: OwnerUsage | null = null
  /** Timers of attempts with `max_runtime_seconds`. */
  readonly runtimeLimits = new Map<LivePlacement, CancelTimer>()
  /** Timers of pending tasks that wait after refused or short attempts. */
  readonly startTimers = new Map<LiveTask, CancelTimer>()
  /** Tasks that each node prepares, or has prepared. */
  readonly preparingOn = new Map<string, Set<LiveTask>>()
  /** Number of pending tasks by image. */
  readonly waitingImages = new Map<string, number>()
  /** Timers of swapped-out tasks whose probe has not requested their return yet. */
  readonly probes = new Map<LivePlacement, CancelTimer>()
  readonly eagerChecks = new EagerReturnChecks()
  config: Config
  policy: Policy
  nextTaskSeq = 1
  nextNodeOrdinal = 0
  pendingCount = 0
  /** Open tasks that are neither counted here nor pending are running. */
  readonly tasksIn = { assigned: 0, unreachable: 0 }
  /** Number of entries in the queues of all nodes. */
  queuedEntries = 0
  /** Runs a function at an instant, then a cycle. Set by the engine. */
  wake: (at: Instant, fn: (now: Instant) => void) => CancelTimer
  readonly waiting: WaitingDemand
  /** Counters of the GPUs of forgotten nodes: cluster totals never decrease. */
  readonly ofForgotten = { servedUs: 0, swapUs: 0, computeUs: 0 }
  readonly #queues: PendingQueue[] = []
  readonly #queueByShape = new Map<string, PendingQueue>()
  #touchedNodes: LiveNode[] = []
  /** All nodes, ordered by id. */
  readonly #byId: LiveNode[] = []
  readonly #staleGpus = new StaleGpus()
  #isBetter = false

  /** @param victimPolicy replaced only by simulations */
  constructor(
    config: Config,
    now: Instant,
    wake: (at: Instant, fn: (now: Instant) => void) => CancelTimer,
    victimPolicy = BY_RULES,
  ) {
    this.victimPolicy = victimPolicy
    this.wake = wake
    this.config = config
    this.policy = policyOf(config.fields)
    this.waiting = new WaitingDemand((task) => this.isFeasible(task), now)
  }

  /** In the order in which their first tasks arrived. */
  get queues(): readonly PendingQueue[] {
    return this.#queues
  }

  // ── pools and GPUs ──────────────────────────────────────────────────────────

  poolFor(key: string): Pool {
    let pool = this.pools.get(key)
    if (pool === undefined) {
      pool = new Pool(key, this.policy)
      this.pools.set(key, pool)
      for (const node of this.nodes.values()) if (belongsTo(node.groups, key)) this.#join(node, pool)
    }
    return pool
  }

  /** Removes a pool that no queue uses. */
  dropPool(key: string): void {
    const pool = this.pools.get(key)
    if (pool === undefined) return
    for (const node of [...pool.nodes.keys()]) {
      pool.removeNode(node)
      node.pools.splice(node.pools.indexOf(pool), 1)
    }
    this.pools.delete(key)
  }

  /** Adds a node. Ranks of later nodes move up; the order of the others, and with it all indexes, stays. */
  addNode(node: LiveNode): void {
    this.nodes.set(node.id, node)
    let low = 0
    let high = this.#byId.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if (byCodeUnits((this.#byId[middle] as LiveNode).id, node.id) < 0) low = middle + 1
      else high = middle
    }
    this.#byId.splice(low, 0, node)
    for (let rank = low; rank < this.#byId.length; rank++) (this.#byId[rank] as LiveNode).rank = rank
  }

  /** Removes a node that has no placements. */
  removeNode(node: LiveNode): void {
    this.leavePools(node)
    for (const { meter } of node.gpus) {
      this.ofForgotten.servedUs += meter.servedUs
      this.ofForgotten.swapUs += meter.swapUs
      this.ofForgotten.computeUs += meter.computeUs
    }
    this.nodes.delete(node.id)
    this.eagerChecks.forget(node)
    this.#byId.splice(node.rank, 1)
    for (let rank = node.rank; rank < this.#byId.length; rank++) (this.#byId[rank] as LiveNode).rank = rank
  }

  /** Updates the pools of a node after its groups or its existence changed. */
  assignPools(node: LiveNode): void {
    for (const pool of [...node.pools]) {
      if (belongsTo(node.groups, pool.key)) continue
      pool.removeNode(node)
      node.pools.splice(node.pools.indexOf(pool), 1)
    }
    for (const pool of this.pools.values())
      if (!node.pools.includes(pool) && belongsTo(node.groups, pool.key)) this.#join(node, pool)
    this.touchNode(node)
    this.eagerChecks.add(node)
    this.waiting.isFeasibilityStale = true
  }

  leavePools(node: LiveNode): void {
    for (const pool of node.pools) pool.removeNode(node)
    node.pools.length = 0
    this.waiting.isFeasibilityStale = true
  }

  /**
   * Call after the ledger of a GPU changed: updates its derived figures, its pools' indexes and its node's
   * queue. Tasks may fit that did not before.
   */
  touchGpu(gpu: LiveGpu): void {
    this.gpuLostRoom(gpu)
    this.#isBetter = true
    this.touchNode(gpu.node)
    this.eagerChecks.add(gpu.node)
  }

  /** As `touchGpu`, for changes that cannot make anything newly admissible. */
  gpuLostRoom(gpu: LiveGpu): void {
    gpu.ledgerVersion += 1
    this.changes += 1
    rederive(gpu)
    this.#staleGpus.markLedger(gpu)
    // Sibling GPUs share the host memory promised to this GPU, and the number of attempts that the server
    // holds.
    if (gpu.node.isHostTight || isNearAttemptLimit(gpu.node))
      for (const sibling of gpu.node.gpus) this.#staleGpus.markLedger(sibling)
  }

  /** Call after the eligible bytes of the GPU changed. */
  eligibleBytesChanged(gpu: LiveGpu, isMore: boolean): void {
    gpu.ledgerVersion += 1
    this.changes += 1
    this.#staleGpus.markEligibleBytes(gpu)
    if (!isMore) return
    this.#isBetter = true
    this.touchNode(gpu.node)
  }

  /** Marks the node's queue for the next cycle, if it has entries or state left over from earlier ones. */
  touchNode(node: LiveNode): void {
    this.changes += 1
    if (node.isTouched || (node.queue.length === 0 && node.wakeAt === null && !node.hasEntryReservations))
      return
    node.isTouched = true
    this.#touchedNodes.push(node)
  }

  takeTouchedNodes(): readonly LiveNode[] {
    if (this.#touchedNodes.length === 0) return NO_NODES
    const touched = this.#touchedNodes
    this.#touchedNodes = []
    for (const node of touched) node.isTouched = false
    return touched
  }

  hasTouchedNodes(): boolean {
    return this.#touchedNodes.length > 0
  }

  hasWaitingTasks(): boolean {
    return this.pendingCount > 0 || this.queuedEntries > 0
  }

  /** Returns true if anything has changed since the last cycle that the next cycle must process. */
  hasWork(): boolean {
    return !this.eagerChecks.isEmpty || this.hasPlacingWork()
  }

  /** As above, without eager returns. */
  hasPlacingWork(): boolean {
    return (
      this.#touchedNodes.length > 0 ||
      this.queueChanges !== this.queueChangesSeen ||
      this.waiting.isFeasibilityStale ||
      (this.#isBetter && this.pendingCount > 0)
    )
  }

  /** Call when the cycle has processed everything. */
  settle(): void {
    this.#isBetter = false
    this.queueChangesSeen = this.queueChanges
  }

  /** Updates the pools of changed GPUs. Skipped while no task is pending. */
  refreshPools(): void {
    if (this.#staleGpus.size > 0 && this.pendingCount > 0) this.deriveFigures()
  }

  /** Updates the pools of changed GPUs unconditionally. */
  deriveFigures(): void {
    this.#staleGpus.refreshPools()
  }

  /** Applies the policy, override and reserve to every GPU of a node. */
  applyCapacity(node: LiveNode): void {
    const { overcommitPercent, reserveMib } = settingsOn(node, this.policy)
    let promisable = 0
    for (const gpu of node.gpus) {
      setCapacity(gpu, overcommitPercent, reserveMib)
      promisable += gpu.limitMib
    }
    node.isHostTight = promisable > node.hostSwapMib
    for (const gpu of node.gpus) this.touchGpu(gpu)
  }

  /** Applies a new configuration: recomputes every figure and order that depends on it. */
  applyConfig(config: Config, now: Instant): void {
    this.config = config
    this.policy = policyOf(config.fields)
    this.queueChanges += 1
    for (const pool of this.pools.values()) pool.rebuild(this.policy)
    for (const node of this.nodes.values()) this.applyCapacity(node)
    this.refreshPools()
    this.eligibilityTimers.rebuild(this, now)
    for (const queue of this.#queues) {
      for (const task of [...queue.tasks()]) this.requeue(task, now)
    }
    this.waiting.isFeasibilityStale = true
  }

  // ── the pending queue ───────────────────────────────────────────────────────

  queueFor(spec: TaskSpec): PendingQueue {
    const shape = shapeOf(spec)
    const owner = (this.owners?.limits.maxPlacedGpus ?? null) === null ? null : spec.owner
    const key = owner === null ? shape.key : `${shape.key}\u0000${owner}`
    let queue = this.#queueByShape.get(key)
    if (queue === undefined) {
      const room = owner === null ? null : () => this.owners?.roomOf(owner) ?? Infinity
      queue = new PendingQueue(shape, this.poolFor(shape.poolKey), owner, room)
      this.#queueByShape.set(key, queue)
      this.#queues.push(queue)
    }
    return queue
  }

  /** Enables limits of owners. Call before any task exists. */
  limitOwners(limits: OwnerLimits): void {
    if (limits.maxPending !== null || limits.maxPlacedGpus !== null) this.owners = new OwnerUsage(limits)
  }

  /** Call at every change of a task's state; for a task restored from the store, `before` is null. */
  enterState(task: LiveTask, state: TaskState, before: TaskState | null = task.state): void {
    if (before === 'assigned' || before === 'unreachable') this.tasksIn[before] -= 1
    task.state = state
    if (state === 'assigned' || state === 'unreachable') this.tasksIn[state] += 1
  }

  /** Counts a task that becomes pending (1) or no longer is (-1). */
  countPending(task: LiveTask, by: 1 | -1): void {
    this.pendingCount += by
    this.owners?.countPending(task, by)
    const image = imageToRun(task)
    if (image === null) return
    const waiting = (this.waitingImages.get(image) ?? 0) + by
    if (waiting === 0) this.waitingImages.delete(image)
    else this.waitingImages.set(image, waiting)
  }

  /** Counts a task that the node begins (1) or ceases (-1) to prepare; others may be prepared there then. */
  countPreparation(task: LiveTask, nodeId: string, by: 1 | -1): void {
    const tasks = this.preparingOn.get(nodeId) ?? new Set()
    if (by === 1) this.preparingOn.set(nodeId, tasks.add(task))
    else if (tasks.delete(task) && tasks.size === 0) this.preparingOn.delete(nodeId)
    const node = this.nodes.get(nodeId)
    if (node === undefined) return
    node.preparationCount = tasks.size
    if (by === -1) this.queueChanges += 1
  }

  /**
   * Counts a task that gets (1) or loses (-1) its GPUs. This may block or unblock other tasks of its owner.
   */
  countPlaced(task: LiveTask, by: 1 | -1): void {
    if (this.owners === null) return
    this.owners.countPlaced(task, by)
    this.queueChanges += 1
    this.eagerChecks.allLeft()
  }

  /**
   * Adds the task to its pending queue. It must be neither on hold nor paused after refused or short
   * attempts.
   */
  enqueue(task: LiveTask, now: Instant): void {
    if (this.blockedTasks.has(task.spec.id)) return
    task.queueClass = queueClass(task, this.policy, now)
    this.queueFor(task.spec).add(task)
    if (task.waitCountedFrom !== null && !this.isFeasible(task)) {
      this.waiting.end(task, now)
      task.isFeasible = false
    }
    this.queueChanges += 1
  }

  dequeue(task: LiveTask): void {
    if (task.queue === null) return
    task.queue.remove(task)
    this.queueChanges += 1
    this.eagerChecks.left(task)
  }

  /** Call after its class, shape or demand changed. */
  requeue(task: LiveTask, now: Instant): void {
    this.dequeue(task)
    this.enqueue(task, now)
  }

  /** Returns true if the task may queue and some node of its pool, empty and up, could take it. */
  isFeasible(task: LiveTask): boolean {
    if (!isWaiting(task)) return false
    const shape = shapeOf(task.spec)
    return Math.max(1, task.spec.vramMib) <= this.poolFor(shape.poolKey).largestEverMib(shape)
  }

  // ── checkpoints ──────────────────────────────────────────────────────────────

  /** State of the cluster that is private to it. */
  get indexState(): IndexState {
    return {
      queueSettledAt: this.waiting.settledAt,
      isBetter: this.#isBetter,
      isFeasibilityStale: this.waiting.isFeasibilityStale,
      touchedNodes: this.#touchedNodes,
      staleGpus: this.#staleGpus.all(),
    }
  }

  /** Restores captured index state. */
  restoreIndexState({
    queueSettledAt,
    isBetter,
    isFeasibilityStale,
    touchedNodes,
    staleGpus,
  }: IndexState): void {
    this.waiting.settledAt = queueSettledAt
    this.#isBetter = isBetter
    this.waiting.isFeasibilityStale = isFeasibilityStale
    this.#touchedNodes = [...touchedNodes]
    for (const node of touchedNodes) node.isTouched = true
    for (const gpu of staleGpus) this.#staleGpus.markLedger(gpu)
  }

  #join(node: LiveNode, pool: Pool): void {
    pool.addNode(node)
    node.pools.push(pool)
  }
}

const NO_NODES: readonly LiveNode[] = []
const NO_TASKS: ReadonlySet<string> = new Set()

/** Flags of a cluster, and the nodes and GPUs that the next cycle must process. */
export interface IndexState {
  readonly queueSettledAt: Instant
  readonly isBetter: boolean
  readonly isFeasibilityStale: boolean
  readonly touchedNodes: readonly LiveNode[]
  readonly staleGpus: readonly LiveGpu[]
}

/** Returns the tasks with an attempt on a node that is ahead of the store. */
export function blockedTasksIn(contacts: Cluster['contacts']): ReadonlySet<string> {
  return new Set([...contacts.values()].flatMap((ahead) => ahead?.taskIds ?? []))
}
