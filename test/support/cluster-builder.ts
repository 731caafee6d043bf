/**
 * A real cluster for tests of the engine's state: nodes report and tasks are submitted through the functions
 * that the wire and the API call, and cycles run when the test says so. Steps are data, so that fast-check
 * can shrink a sequence and print it.
 */
import fc from 'fast-check'
import type { GpuReport, Hello, NodeEvent, TaskReport } from '../../protocol/messages.ts'
import type { Instant, Mib, NoSwap, Priority, SwapMethod } from '../../protocol/units.ts'
import type { ConfigFields } from '../../controller/model/config.ts'
import { DEFAULT_CONFIG } from '../../controller/model/config.ts'
import type { Decision } from '../../controller/model/decision.ts'
import type { Effect } from '../../controller/model/effect.ts'
import type { Event } from '../../controller/model/event.ts'
import type { TaskChange } from '../../controller/model/command.ts'
import type { TaskRequest } from '../../protocol/task.ts'
import { TASK_DEFAULTS } from '../../protocol/limits.ts'
import { Cluster } from '../../controller/state/cluster.ts'
import {
  putConfig,
  putGroup,
  putNodeConfig,
} from '../../controller/engine/inputs/commands/cluster-commands.ts'
import { runCycle } from '../../controller/engine/cycle.ts'
import { drainNode, setCordon } from '../../controller/engine/inputs/commands/drain.ts'
import { explainTask } from '../../controller/query/explain/explain-task.ts'
import type { LiveGpu, LiveNode, LivePlacement, LiveTask } from '../../controller/state/facts.ts'
import { applyCommandResult, applyNodeEvent } from '../../controller/engine/inputs/nodes/node-events.ts'
import { applyHello, applySnapshot, setStatus } from '../../controller/engine/inputs/nodes/node-registry.ts'
import { holdTask, releaseTask } from '../../controller/engine/inputs/commands/holding.ts'
import { swapInTask, swapOutTask } from '../../controller/engine/inputs/commands/swap-commands.ts'
import {
  cancelTask,
  requeueTask,
  submitTask,
  updateTask,
} from '../../controller/engine/inputs/commands/task-commands.ts'
import { Transaction } from '../../controller/state/transaction.ts'
import type { WaitExplanation } from '../../controller/query/explain/explain.ts'

export interface NodeFields {
  readonly id: string
  /** Physical MiB of each GPU. */
  readonly gpus: readonly Mib[]
  readonly hostSwapMib?: Mib
  readonly signalsWanted?: boolean
  readonly allowExec?: boolean
  /** Null: a server of an earlier version, which names none. */
  readonly features?: readonly string[] | null
  readonly maxAttempts?: number
}

export type Deed = 'hold' | 'release' | 'swap-out' | 'swap-in'
const DEEDS = { hold: holdTask, release: releaseTask, 'swap-out': swapOutTask, 'swap-in': swapInTask }

/** Small figures by default: no overcommit and a reserve of 10 MiB, so that tests are readable. */
const SMALL_CONFIG: ConfigFields = { ...DEFAULT_CONFIG, safety_reserve_mib: 10 }

type Change<T> = { readonly [K in keyof T]?: T[K] }
/** An event without its address. */
type Told<E extends NodeEvent = NodeEvent> = E extends NodeEvent
  ? Omit<E, 'n' | 'task_id' | 'attempt'>
  : never

export class ClusterBuilder {
  readonly cluster: Cluster
  now: Instant = 1_000_000
  /** All events and commands so far. */
  readonly events: Event[] = []
  readonly effects: Effect[] = []
  /** Empty unless decisions are recorded. */
  readonly decisions: Decision[] = []
  #timers: { readonly at: Instant; readonly fn: (now: Instant) => void }[] = []
  readonly #lastHello = new Map<string, Hello>()
  #taskCount = 0

  constructor(config: Change<ConfigFields> = {}) {
    const fields = { ...SMALL_CONFIG, ...config }
    this.cluster = new Cluster({ fields, source: 'environment', revision: 0 }, this.now, (at, fn) => {
      const timer = { at, fn }
      this.#timers.push(timer)
      return () => {
        this.#timers = this.#timers.filter((each) => each !== timer)
      }
    })
  }

  get tasks(): LiveTask[] {
    return [...this.cluster.tasks.values()]
  }

  get gpus(): LiveGpu[] {
    return [...this.cluster.nodes.values()].flatMap((node) => [...node.gpus])
  }

  addNode({
    id,
    gpus,
    hostSwapMib = 1_000_000,
    signalsWanted = true,
    allowExec = true,
    features = null,
    maxAttempts,
  }: NodeFields): LiveNode {
    const reports = gpus.map((mib, index) => ({ index, model: 'test', physical_mib: mib, foreign_mib: 0 }))
    const hello: Hello = {
      ...{
        op: 'hello',
        node_id: id,
        name: id,
        address: '192.0.2.1',
        gpus: reports,
        host_swap_mib: hostSwapMib,
        tasks: [],
        finished_unacked: [],
      },
      ...{ signals_wanted: signalsWanted, device: 'simulated', allow_exec: allowExec },
      ...(maxAttempts === undefined ? {} : { max_attempts: maxAttempts }),
      ...(features === null ? {} : { features }),
    }
    this.#lastHello.set(id, hello)
    applyHello(this.cluster, hello, { counter: 1, random: 'r' }, 1, this.now)
    return this.node(id)
  }

  node(id: string): LiveNode {
    const node = this.cluster.nodes.get(id)
    if (node === undefined) throw new Error(`no node ${id}`)
    return node
  }

  /** Restarts its server: all state is equal, under later numbers. */
  restarted(node: LiveNode): void {
    this.heartbeat(node, {}, [], 1)
  }

  /**
   * Sends a heartbeat with the state that the controller believes, except for these arguments. `ended`:
   * already ended there, with the event on its way.
   */
  heartbeat(
    node: LiveNode,
    foreignMib: Readonly<Record<number, Mib>> = {},
    ended: readonly LiveTask[] = [],
    generationsLater = 0,
  ): void {
    const unacked = ended.map((task) => ({ task_id: task.spec.id, attempt: placementOf(task).attempt }))
    const gpus = this.#gpuReports(node, foreignMib)
    const tasks = this.#taskReports(node, ended, generationsLater)
    applySnapshot(
      this.cluster,
      node,
      { gpus, tasks, finished_unacked: unacked },
      node.snapshotSeq + 1,
      this.now,
    )
  }

  /** Its server has restarted and sends its hello, with all its attempts. */
  hello(node: LiveNode, change: Partial<Hello>): void {
    const { id, boot } = node
    const before = this.#lastHello.get(id)
    if (before === undefined) throw new Error(`node ${id} has not introduced itself here`)
    const hello: Hello = {
      ...before,
      gpus: this.#gpuReports(node, {}),
      tasks: this.#taskReports(node, [], 0),
      ...change,
    }
    this.#lastHello.set(id, hello)
    applyHello(this.cluster, hello, { counter: boot.counter + 1, random: boot.random }, 1, this.now)
  }

  #gpuReports(node: LiveNode, foreignMib: Readonly<Record<number, Mib>>): GpuReport[] {
    return node.gpus.map(({ index, model, physicalMib, foreignMib: before }) => ({
      index,
      model,
      physical_mib: physicalMib,
      foreign_mib: foreignMib[index] ?? before,
    }))
  }

  #taskReports(node: LiveNode, ended: readonly LiveTask[], generationsLater: number): TaskReport[] {
    const placements = new Set(node.gpus.flatMap((gpu) => gpu.placements))
    const living = [...placements].filter(({ task }) => !ended.includes(task))
    return living.map((placement) => ({
      task_id: placement.task.spec.id,
      attempt: placement.attempt,
      residency: placement.residency,
      generation: placement.generation + generationsLater,
      gpus: placement.gpus.map((gpu) => gpu.index),
      vram_mib: placement.demandMib,
      wants_gpu: placement.wantsGpu,
      idle_ms: placement.wantsGpu ? 0 : this.now - placement.idleSince,
      ...(placement.isWakeable ? { wakeable: true } : {}),
    }))
  }

  silence(node: LiveNode): void {
    setStatus(this.cluster, node, 'suspect', this.now)
  }

  cordon(node: LiveNode, isCordoned: boolean): void {
    setCordon(this.cluster, node.id, isCordoned, this.now)
  }

  configureNode(
    node: LiveNode,
    change: { overcommitPercent?: number | null; reserveMib?: Mib | null },
  ): void {
    putNodeConfig(this.cluster, node.id, change, this.now)
  }

  group(id: string, nodeIds: readonly string[]): void {
    putGroup(this.cluster, { id, description: '', nodeIds }, false, this.now)
  }

  configure(change: Change<ConfigFields>): void {
    putConfig(this.cluster, change, null, this.now)
  }

  submit(request: Change<TaskRequest> = {}): LiveTask {
    this.#taskCount += 1
    const whole: TaskRequest = {
      ...TASK_DEFAULTS,
      id: `t${this.#taskCount}`,
      name: null,
      vramMib: 10,
      groups: [],
      labels: {},
      owner: null,
      command: null,
      maxRuntimeSeconds: null,
      ...request,
    }
    const answer = submitTask(this.cluster, whole, () => 0.5, this.now)
    if (!answer.ok) throw new Error(JSON.stringify(answer.refusal))
    return answer.value
  }

  /** Starts the task and swaps it out as an operator. */
  submitSwappedOut(request: Change<TaskRequest> = {}): LiveTask {
    const task = this.submit(request)
    this.settle()
    this.byHand(task, 'swap-out')
    this.cycle()
    this.swapped(task)
    return task
  }

  /** Returns whether the change was accepted. */
  update(task: LiveTask, change: TaskChange): boolean {
    return updateTask(this.cluster, task.spec.id, change, this.now).ok
  }

  /** Performs an action of an operator. Returns the reason of a refusal, or null. */
  byHand(task: LiveTask, deed: Deed): string | null {
    const answer = DEEDS[deed](this.cluster, task.spec.id, this.now)
    if (answer.ok) return null
    return answer.refusal.code === 'conflict' ? answer.refusal.detail : answer.refusal.code
  }

  drain(node: LiveNode, moveAfterMs: number | null): void {
    drainNode(this.cluster, node.id, moveAfterMs, 'a test', this.now)
  }

  cancel(task: LiveTask): void {
    cancelTask(this.cluster, task.spec.id, 'a test', this.now)
  }

  started(task: LiveTask, wantsGpu = false): void {
    this.#tell(task, { kind: 'started', wants_gpu: wantsGpu })
  }

  wants(task: LiveTask, wantsGpu: boolean, idleMs = 0): void {
    this.#tell(task, wantsGpu ? { kind: 'gpu_wanted', idle_ms: 0 } : { kind: 'gpu_used', idle_ms: idleMs })
  }

  wantsToGrow(task: LiveTask, mib: Mib): void {
    this.#tell(task, { kind: 'allocation_wanted', mib })
  }

  /** Returns the reason of a refusal, or null when the stop is sent to its server. */
  requeue(task: LiveTask): string | null {
    const answer = requeueTask(this.cluster, task.spec.id, false, 'a test', this.now)
    if (answer.ok) return null
    return answer.refusal.code === 'conflict' ? answer.refusal.detail : answer.refusal.code
  }

  /** Ended as ordered. */
  stopped(task: LiveTask): void {
    this.#tell(task, { kind: 'finished', outcome: 'stopped', exit_code: null, detail: null })
  }

  finished(task: LiveTask): void {
    this.#tell(task, { kind: 'finished', outcome: 'completed', exit_code: 0, detail: null })
  }

  /** Ends a swap in progress, successfully or with a return to the previous residency. */
  swapped(task: LiveTask, isFailed = false, isWakeable = false, residualMib = 0, by?: SwapMethod): void {
    const { residency, generation } = placementOf(task)
    if (residency !== 'swapping_out' && residency !== 'swapping_in') return
    const isOut = (residency === 'swapping_out') !== isFailed
    const because = isFailed ? 'copy_failed' : null
    this.#tell(task, {
      kind: 'residency',
      residency: isOut ? 'swapped_out' : 'resident',
      generation: generation + 1,
      because,
      ...(isWakeable ? { wakeable: true } : {}),
      ...(residualMib > 0 ? { residual_mib: residualMib } : {}),
      ...(by === undefined ? {} : { swap_method: by }),
    })
  }

  /** The device lacks space for the ordered swap. */
  refuse(task: LiveTask, command: 'start' | 'swap_in' = 'start'): void {
    const { node, attempt } = placementOf(task)
    const result = {
      op: 'result' as const,
      task_id: task.spec.id,
      attempt,
      outcome: 'refused' as const,
      reason: 'no_vram' as const,
    }
    applyCommandResult(
      this.cluster,
      node.id,
      command,
      { ...result, residency: 'none', generation: 0 },
      node.snapshotSeq,
      this.now,
    )
  }

  #tell(task: LiveTask, event: Told): void {
    const { node, attempt } = placementOf(task)
    applyNodeEvent(
      this.cluster,
      node.id,
      { ...event, n: 0, task_id: task.spec.id, attempt } as NodeEvent,
      this.now,
    )
  }

  /** Runs one cycle; returns the events since the last one. */
  cycle(): readonly Event[] {
    runCycle(this.cluster, this.now)
    const { transaction } = this.cluster.eventLog
    for (const task of transaction.dirtyTasks) task.isDirty = false
    for (const node of transaction.dirtyNodes) node.isDirty = false
    this.cluster.eventLog.transaction = new Transaction()
    this.events.push(...transaction.events)
    this.effects.push(...transaction.effects)
    this.decisions.push(...transaction.decisions)
    return transaction.events
  }

  /** Advances time: the engine's own timers fire, each followed by a cycle; nothing else is decided. */
  advance(ms: number): void {
    const until = this.now + ms
    for (;;) {
      const due = this.#timers.filter((timer) => timer.at <= until).sort((a, b) => a.at - b.at)[0]
      if (due === undefined) break
      this.#timers = this.#timers.filter((timer) => timer !== due)
      this.now = Math.max(this.now, due.at)
      due.fn(this.now)
      this.cycle()
    }
    this.now = until
  }

  /** The nodes carry out all commands: every placed task starts, every swap ends. */
  settle(): void {
    for (let round = 0; round < 100; round++) {
      this.cycle()
      const busy = this.tasks.filter(
        ({ placement }) => placement !== null && (placement.startedAt === null || isMoving(placement)),
      )
      if (busy.length === 0) return
      for (const task of busy) {
        if (task.placement?.startedAt === null) this.started(task)
        else this.swapped(task)
      }
    }
    throw new Error('the cluster does not settle')
  }

  explain(task: LiveTask): WaitExplanation | null {
    return explainTask(this.cluster, task, this.now)
  }
}

export function placementOf(task: LiveTask): LivePlacement {
  if (task.placement === null) throw new Error(`task ${task.spec.id} is not placed`)
  return task.placement
}

function isMoving(placement: LivePlacement): boolean {
  return placement.residency === 'swapping_out' || placement.residency === 'swapping_in'
}

/**
 * One step. `pick` chooses among existing items, modulo their number; without items the step has no effect.
 */
export type Step =
  | {
      readonly do: 'submit'
      readonly mib: Mib
      readonly gpus: number
      readonly kind: 0 | 1 | 2
      readonly priority: Priority
      readonly inGroup: boolean
    }
  | { readonly do: 'cycle' }
  | { readonly do: 'advance'; readonly seconds: number }
  | { readonly do: 'start'; readonly pick: number; readonly wants: boolean }
  | { readonly do: 'start-all' }
  | { readonly do: 'refuse' | 'finish' | 'cancel'; readonly pick: number }
  | { readonly do: 'wants'; readonly pick: number; readonly wants: boolean; readonly idleSeconds: number }
  | { readonly do: 'swapped'; readonly pick: number; readonly fails: boolean }
  | { readonly do: 'swapped-all' }
  | { readonly do: 'grow'; readonly pick: number; readonly byMib: Mib }
  | { readonly do: 'noswap'; readonly pick: number; readonly noswap: NoSwap }
  | { readonly do: 'priority'; readonly pick: number; readonly priority: Priority }
  | { readonly do: 'demand'; readonly pick: number; readonly mib: Mib }
  | { readonly do: 'by-hand'; readonly pick: number; readonly deed: Deed }
  | { readonly do: 'percent' | 'reserve'; readonly value: number }
  | { readonly do: 'node-percent' | 'node-reserve'; readonly pick: number; readonly value: number | null }
  | { readonly do: 'foreign'; readonly pick: number; readonly gpu: number; readonly mib: Mib }
  | { readonly do: 'cordon' | 'silence' | 'regroup'; readonly pick: number; readonly on: boolean }

const pick = fc.nat(15)
const mib = fc.integer({ min: 1, max: 100 })
const priority = fc.integer({ min: 0, max: 4 }) as fc.Arbitrary<Priority>
const percent = fc.constantFrom(0, 20, 50, 300)
const reserve = fc.constantFrom(0, 10, 40)

const submitArb: fc.Arbitrary<Step> = fc.record({
  do: fc.constant('submit' as const),
  mib,
  gpus: fc.constantFrom(1, 1, 1, 2, 3),
  kind: fc.constantFrom(0, 0, 0, 1, 2),
  priority,
  inGroup: fc.constantFrom(false, false, false, true),
})

const lifeArb: fc.Arbitrary<Step> = fc.oneof(
  fc.constant({ do: 'start-all' } as const),
  fc.constant({ do: 'swapped-all' } as const),
  fc.record({ do: fc.constant('start' as const), pick, wants: fc.boolean() }),
  fc.record({ do: fc.constantFrom('refuse' as const, 'finish' as const, 'cancel' as const), pick }),
  fc.record({
    do: fc.constant('wants' as const),
    pick,
    wants: fc.boolean(),
    idleSeconds: fc.constantFrom(0, 400),
  }),
  fc.record({
    do: fc.constant('wants' as const),
    pick,
    wants: fc.boolean(),
    idleSeconds: fc.constantFrom(0, 400),
  }),
  fc.record({ do: fc.constant('swapped' as const), pick, fails: fc.boolean() }),
  fc.record({ do: fc.constant('grow' as const), pick, byMib: fc.integer({ min: 1, max: 30 }) }),
  fc.record({ do: fc.constant('noswap' as const), pick, noswap: fc.constantFrom(0 as const, 1 as const) }),
  fc.record({ do: fc.constant('priority' as const), pick, priority }),
  fc.record({ do: fc.constant('demand' as const), pick, mib }),
  fc.record({
    do: fc.constant('by-hand' as const),
    pick,
    deed: fc.constantFrom<Deed>('hold', 'release', 'swap-out', 'swap-in'),
  }),
)

const fleetArb: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ do: fc.constant('percent' as const), value: percent }),
  fc.record({ do: fc.constant('reserve' as const), value: reserve }),
  fc.record({ do: fc.constant('node-percent' as const), pick, value: fc.option(percent) }),
  fc.record({ do: fc.constant('node-reserve' as const), pick, value: fc.option(reserve) }),
  fc.record({ do: fc.constant('foreign' as const), pick, gpu: fc.nat(2), mib: fc.constantFrom(0, 5, 40) }),
  fc.record({
    do: fc.constantFrom('cordon' as const, 'silence' as const, 'regroup' as const),
    pick,
    on: fc.boolean(),
  }),
)

const timeArb: fc.Arbitrary<Step> = fc.oneof(
  fc.constant({ do: 'cycle' } as const),
  fc.record({ do: fc.constant('advance' as const), seconds: fc.constantFrom(1, 60, 310, 700) }),
)

/** A sequence in which task steps are more frequent than fleet changes. */
export function stepsArb(maxLength: number): fc.Arbitrary<Step[]> {
  const step = fc.oneof(
    { weight: 5, arbitrary: submitArb },
    { weight: 8, arbitrary: lifeArb },
    { weight: 1, arbitrary: fleetArb },
    { weight: 4, arbitrary: timeArb },
  )
  return fc.array(step, { maxLength, size: 'max' })
}

export interface FleetShape {
  readonly nodes: readonly NodeFields[]
  readonly config: Change<ConfigFields>
}

/** One to three nodes of one to three small GPUs, with little or much host memory, under some policy. */
export const fleetShapeArb: fc.Arbitrary<FleetShape> = fc.record({
  nodes: fc
    .array(
      fc.record({
        gpus: fc.array(fc.constantFrom(50, 100, 120), { minLength: 1, maxLength: 3 }),
        hostSwapMib: fc.constantFrom(60, 200, 5000),
      }),
      {
        minLength: 1,
        maxLength: 3,
      },
    )
    .map((nodes) => nodes.map((fields, index) => ({ ...fields, id: `n${index}` }))),
  config: fc.record({
    default_vram_overcommit_percent: percent,
    placement_strategy: fc.constantFrom('best_fit' as const, 'spread' as const, 'fifo' as const),
    max_tasks_per_gpu: fc.constantFrom(2, 3, 64),
    max_residency_seconds: fc.constantFrom(null, null, 120),
    queue_aging_seconds: fc.constantFrom(null, null, 200),
  }),
})

export function buildFleet({ nodes, config }: FleetShape): ClusterBuilder {
  const builder = new ClusterBuilder(config)
  builder.group('g', [])
  for (const node of nodes) builder.addNode(node)
  builder.cycle()
  return builder
}

/** Applies one step; a step without an applicable item has no effect. */
export function applyStep(b: ClusterBuilder, step: Step): void {
  switch (step.do) {
    case 'submit':
      b.submit({
        vramMib: step.mib,
        gpuCount: step.gpus,
        noswap: step.kind === 1 ? 1 : 0,
        gpuMode: step.kind === 2 ? 'exclusive' : 'shared',
        priority: step.priority,
        groups: step.inGroup ? ['g'] : [],
      })
      return
    case 'cycle':
      b.cycle()
      return
    case 'advance':
      return b.advance(step.seconds * 1000)
    case 'start-all':
      for (const task of b.tasks) if (task.placement?.startedAt === null) b.started(task)
      return
    case 'swapped-all':
      for (const task of b.tasks) if (task.placement !== null) b.swapped(task)
      return
    case 'percent':
      return b.configure({ default_vram_overcommit_percent: step.value })
    case 'reserve':
      return b.configure({ safety_reserve_mib: step.value })
    case 'node-percent':
    case 'node-reserve':
    case 'foreign':
    case 'cordon':
    case 'silence':
    case 'regroup':
      return applyToNode(b, step)
    case 'start':
    case 'refuse':
    case 'finish':
    case 'cancel':
    case 'wants':
    case 'swapped':
    case 'grow':
    case 'noswap':
    case 'priority':
    case 'demand':
    case 'by-hand':
      return applyToTask(b, step)
  }
}

function applyToNode(
  b: ClusterBuilder,
  step: Extract<Step, { do: 'node-percent' | 'node-reserve' | 'foreign' | 'cordon' | 'silence' | 'regroup' }>,
): void {
  const node = chosen([...b.cluster.nodes.values()], step.pick)
  if (node === null) return
  switch (step.do) {
    case 'node-percent':
      return b.configureNode(node, { overcommitPercent: step.value })
    case 'node-reserve':
      return b.configureNode(node, { reserveMib: step.value })
    case 'foreign':
      return b.heartbeat(node, { [step.gpu]: step.mib })
    case 'cordon':
      return b.cordon(node, step.on)
    case 'silence':
      if (step.on) b.silence(node)
      else b.heartbeat(node)
      return
    case 'regroup': {
      const others = (b.cluster.groups.get('g')?.nodeIds ?? []).filter((id) => id !== node.id)
      return b.group('g', step.on ? [...others, node.id] : others)
    }
  }
}

type TaskStep = Extract<
  Step,
  {
    do:
      | 'start'
      | 'refuse'
      | 'finish'
      | 'cancel'
      | 'wants'
      | 'swapped'
      | 'grow'
      | 'noswap'
      | 'priority'
      | 'demand'
      | 'by-hand'
  }
>

function applyToTask(b: ClusterBuilder, step: TaskStep): void {
  const isPlaced = ({ placement }: LiveTask) => placement !== null
  const isStarted = ({ placement }: LiveTask) => placement !== null && placement.startedAt !== null
  const isAssigned = ({ placement }: LiveTask) => placement?.startedAt === null
  const among = (filter: (task: LiveTask) => boolean, use: (task: LiveTask) => void) => {
    const task = chosen(b.tasks.filter(filter), step.pick)
    if (task !== null) use(task)
  }
  switch (step.do) {
    case 'start':
      return among(isAssigned, (task) => b.started(task, step.wants))
    case 'refuse':
      return among(isAssigned, (task) => b.refuse(task))
    case 'finish':
      return among(isPlaced, (task) => b.finished(task))
    case 'cancel':
      return among(
        () => true,
        (task) => b.cancel(task),
      )
    case 'wants':
      return among(isStarted, (task) => b.wants(task, step.wants, step.idleSeconds * 1000))
    case 'swapped':
      return among(isStarted, (task) => b.swapped(task, step.fails))
    case 'grow':
      return among(
        (task) => task.placement?.residency === 'resident',
        (task) => b.wantsToGrow(task, placementOf(task).demandMib + step.byMib),
      )
    case 'noswap':
      return among(
        () => true,
        (task) => void b.update(task, { noswap: step.noswap }),
      )
    case 'priority':
      return among(
        () => true,
        (task) => void b.update(task, { priority: step.priority }),
      )
    case 'demand':
      return among(
        (task) => !isPlaced(task),
        (task) => void b.update(task, { vramMib: step.mib }),
      )
    case 'by-hand':
      return among(
        () => true,
        (task) => void b.byHand(task, step.deed),
      )
  }
}

function chosen<T>(items: readonly T[], number: number): T | null {
  return items[number % items.length] ?? null
}
