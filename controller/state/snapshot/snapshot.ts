/**
 * A snapshot is the state of a cluster between two inputs, as JSON values: enough to continue with the same
 * decisions. Checkpoints of recordings store it, and previews try a change on a cluster restored from it.
 * Indexes are rebuilt; only what says whether they must be processed is kept.
 */
import type { Instant } from '../../../protocol/units.ts'
import type { Reservation } from '../../model/placement.ts'
import type { TaskSpec } from '../../../protocol/task.ts'
import type { CancelTimer, TimerId } from '../../ports/clock.ts'
import { Cluster } from '../cluster.ts'
import type { FailedAttemptKey, LiveEntry, LiveGpu, LiveNode, LiveTask } from '../facts.ts'
import { newLiveGpu, newLivePlacement, newLiveTask } from '../new-facts.ts'
import { nodeOf } from '../records.ts'
import { GPU, NODE, PLACEMENT, TASK } from '../fields.ts'
import type { Captured, EntryNumber } from './kinds.ts'
import { captureFields, References, restoreFields } from './kinds.ts'
import type { TimerRestorer } from './parts.ts'
import { NODE_TIMERS, PARTS } from './parts.ts'

export interface Snapshot {
  /** The first `openCount` tasks are open; the others have ended and are still referenced. */
  readonly tasks: readonly Captured[]
  readonly openCount: number
  readonly nodes: readonly Captured[]
  readonly reservations: readonly Captured[]
  readonly parts: Readonly<Record<string, unknown>>
}

/** Captures the state without changing it. Values that never change in place are shared. */
export function captureCluster(c: Cluster, timerId?: (cancel: CancelTimer) => TimerId): Snapshot {
  const refs = new References(c.tasks.values(), c.nodes.values(), timerId)
  const openCount = c.tasks.size
  const nodes = refs.nodes.items.map((node) => captureNode(node, refs))
  const parts: Record<string, unknown> = {}
  for (const [name, part] of Object.entries(PARTS)) parts[name] = part.capture(c, refs)
  const reservations = refs.reservations.items.map((each) => ({ ...each, task: refs.tasks.of(taskIn(each)) }))
  // Last: the references above have added ended tasks to the list, and each may add another.
  const tasks: Captured[] = []
  for (const task of refs.tasks.items) tasks.push(captureTask(task, refs))
  return { tasks, openCount, nodes, reservations, parts }
}

/** Restores a snapshot into an empty cluster. */
export function restoreCluster(c: Cluster, snapshot: Snapshot, timers: TimerRestorer): void {
  const { tasks, nodes, reservations, openCount, parts } = snapshot
  const refs = new References(
    tasks.map(({ spec, pendingSince }) => newLiveTask(spec as TaskSpec, pendingSince as Instant)),
    nodes.map(bareNode),
  )
  for (const each of reservations)
    refs.reservations.of({ ...(each as unknown as Reservation), task: refs.task(each['task'] as number) })
  tasks.forEach(({ placement }, number) => {
    if (placement !== null) allocatePlacement(refs.task(number), placement as Captured, refs)
  })
  nodes.forEach((captured, number) => restoreQueue(refs.node(number), captured, refs))
  tasks.forEach((captured, number) => restoreTask(refs.task(number), captured, refs))
  nodes.forEach((captured, number) => {
    const node = refs.node(number)
    restoreFields(node, captured, NODE, refs)
    const gpus = captured['gpus'] as readonly Captured[]
    gpus.forEach((gpu, index) => restoreGpu(node.gpus[index] as LiveGpu, gpu, refs))
    c.addNode(node)
    if (node.collector !== null) c.collecting.add(node)
    for (const name of NODE_TIMERS)
      if (captured[name] !== null)
        node[name] = timers.wake(captured[name] as TimerId, (now) => timers.ofNode[name](c, node, now))
  })
  const context = { refs, timers, tasks, openCount }
  for (const [name, part] of Object.entries(PARTS)) part.restore(c, parts[name], context)
}

function restoreGpu(gpu: LiveGpu, captured: Captured, refs: References): void {
  restoreFields(gpu, captured, GPU, refs)
  gpu.eligible = gpu.placements.filter(({ isEligible }) => isEligible)
}

/** Returns a copy of the cluster in which nothing happens by itself and nothing is kept. */
export function forkCluster(c: Cluster, now: Instant): Cluster {
  const fork = new Cluster(c.config, now, () => NOTHING)
  fork.eventLog.isForgetful = true
  fork.eventLog.nextDecision = c.eventLog.nextDecision
  if (c.owners !== null) fork.limitOwners(c.owners.limits)
  restoreCluster(fork, captureCluster(c), NO_TIMERS)
  return fork
}

const NOTHING = (): void => {}
const NO_TIMERS: TimerRestorer = {
  wake: () => NOTHING,
  ofNode: { cancelDrain: NOTHING, cancelTrial: NOTHING, cancelWake: NOTHING, cancelEager: NOTHING },
  ...{ probe: NOTHING, start: NOTHING, runtime: NOTHING, startWait: NOTHING },
}

// ── tasks and nodes ───────────────────────────────────────────────────────────

function captureTask(task: LiveTask, refs: References): Captured {
  const { placement } = task
  return {
    ...captureFields(task, TASK, refs),
    placement:
      placement === null
        ? null
        : {
            ...captureFields(placement, PLACEMENT, refs),
            gpus: placement.gpus.map((gpu) => refs.gpuNumber(gpu)),
          },
    isQueued: task.queue !== null,
    isAside: task.queue?.isSetAside(task) === true,
  }
}

function allocatePlacement(task: LiveTask, captured: Captured, refs: References): void {
  const gpus = (captured['gpus'] as (readonly [number, number])[]).map((number) => refs.gpu(number))
  task.placement = newLivePlacement(task, gpus, 0, 0)
}

function restoreTask(task: LiveTask, captured: Captured, refs: References): void {
  restoreFields(task, captured, TASK, refs)
  if (task.placement !== null)
    restoreFields(task.placement, captured['placement'] as Captured, PLACEMENT, refs)
}

function captureNode(node: LiveNode, refs: References): Captured {
  return {
    ...captureFields(node, NODE, refs),
    gpus: node.gpus.map((gpu) => captureFields(gpu, GPU, refs)),
    queue: node.queue.map(({ node: _, task, gpus, failedAttempt, ...values }) => ({
      ...values,
      task: refs.tasks.of(task),
      gpus: gpus.map(({ index }) => index),
      failedAttempt: captureFailure(task, failedAttempt, refs),
    })),
  }
}

/**
 * If the key names a collector that has left, or a task that has changed, the entry is tried again in any
 * case.
 */
function captureFailure(
  task: LiveTask,
  failedAttempt: LiveEntry['failedAttempt'],
  refs: References,
): CapturedFailure | null {
  if (failedAttempt === null || failedAttempt.spec !== task.spec) return null
  const { ledgerVersion, hostUsedMib } = failedAttempt
  const collector = refs.entryNumber(failedAttempt.collector)
  if (failedAttempt.collector !== null && collector === null) return null
  return { ledgerVersion, hostUsedMib, collector }
}

/** Returns the node with its GPUs; their other fields are restored once all objects are there. */
function bareNode(captured: Captured): LiveNode {
  const { id, boot, contact, gpus } = captured as unknown as LiveNode
  const record = { ...captured, bootCounter: boot.counter, bootRandom: boot.random, leaseMs: contact.leaseMs }
  const node = nodeOf(
    { ...(record as unknown as Parameters<typeof nodeOf>[0]), id, gpus: [], quarantine: [] },
    0,
  )
  node.gpus = gpus.map(({ index, model, physicalMib }) => newLiveGpu(node, index, model, physicalMib, 0, 0))
  return node
}

type CapturedFailure = Omit<FailedAttemptKey, 'collector' | 'spec'> & {
  readonly collector: EntryNumber | null
}
type CapturedEntry = Omit<LiveEntry, 'node' | 'task' | 'gpus' | 'failedAttempt'> & {
  readonly task: number
  readonly gpus: readonly number[]
  readonly failedAttempt: CapturedFailure | null
}

function restoreQueue(node: LiveNode, { queue }: Captured, refs: References): void {
  const entries = queue as readonly CapturedEntry[]
  node.queue = entries.map(({ task, gpus, failedAttempt: _, ...values }) => ({
    ...values,
    task: refs.task(task),
    node,
    gpus: gpus.map((index) => node.gpus[index] as LiveGpu),
    failedAttempt: null,
  }))
  entries.forEach(({ failedAttempt }, place) => {
    const entry = node.queue[place] as LiveEntry
    if (failedAttempt === null) return
    const collector = refs.entry(failedAttempt.collector)
    entry.failedAttempt = { ...failedAttempt, collector, spec: entry.task.spec }
  })
}

function taskIn({ task }: Reservation): LiveTask {
  return task as LiveTask
}
