/** Nodes register, report, and are compared with the controller's view of them (R6, R7). */
import { placementsOn } from '../../../state/placements-on.ts'
import type { Boot } from '../../../../protocol/message-fields.ts'
import type { Heartbeat, AttemptRef, GpuReport, Hello, TaskReport } from '../../../../protocol/messages.ts'
import { MAX_ATTEMPTS_PER_NODE } from '../../../../protocol/limits.ts'
import type { Instant } from '../../../../protocol/units.ts'
import { groupsNaming } from '../../../state/index/membership.ts'
import type { Cluster } from '../../../state/cluster.ts'
import { askForSwapIn, dropEntry } from '../../apply/lifecycle/entries.ts'
import type { LiveNode, LivePlacement } from '../../../state/facts.ts'
import { attemptKey } from '../../../state/facts.ts'
import { newLiveGpu } from '../../../state/new-facts.ts'
import {
  applyNodeWants,
  backOff,
  confirmStart,
  currentPlacement,
  endLost,
  isWantedBack,
} from './node-events.ts'
import { noteAnnounced } from './late-result.ts'
import { grantLease } from '../../../state/node-contact.ts'
import { tryRefusedAgain } from '../../apply/lifecycle/start-tries.ts'
import { setMaxAttempts, setOtherAttempts } from '../../../state/attempt-limit.ts'
import { commandsToResend } from '../../apply/node-commands.ts'
import { liftRefusalsBefore } from '../../apply/lifecycle/refusals.ts'
import { applyPreparing, dropPreparationsOn } from '../../apply/lifecycle/preparations.ts'
import { planProbe } from '../../apply/lifecycle/probes.ts'
import { isPlaceable } from '../../../policy/placement/feasible.ts'
import { refusePreparation } from './start-refusals.ts'
import { countQuarantined } from '../../../state/gpu-ledger.ts'
import { lacksHistoryOf, pauseOf } from '../../../state/placement-pause.ts'
import { endUnknown } from './result-unknown.ts'
import { fateOf, settleQuarantine } from './quarantine.ts'
import { nodeOf } from '../../../state/records.ts'
import {
  finish,
  reachAgain,
  setResidency,
  setSwappedOut,
  setWakeable,
} from '../../apply/lifecycle/transitions.ts'

/** The answer to a snapshot. */
export interface SnapshotAnswer {
  /** Attempts that the node must end. */
  readonly stop: readonly AttemptRef[]
  /** Attempts that belong to no task: they are stopped if the next snapshot names them again. */
  readonly unknown: readonly AttemptRef[]
}

/** A server introduces itself: it is registered, or recognised. */
export function applyHello(c: Cluster, hello: Hello, boot: Boot, seq: number, now: Instant): SnapshotAnswer {
  let node = c.nodes.get(hello.node_id)
  if (node === undefined) {
    node = register(c, hello, boot, now)
    c.eventLog.emit(now, 'node_registered', null, node.id, null, { name: node.name, gpus: node.gpus.length })
    tryRefusedAgain(c, 'node_joined', now)
  } else {
    if (boot.counter > node.boot.counter) beginBoot(c, node, hello, now)
    if (!hasSameGpus(node, hello.gpus)) replaceGpus(c, node, hello.gpus, now)
  }
  node.name = hello.name
  node.address = hello.address
  node.device = hello.device
  if (node.signalsWanted !== hello.signals_wanted) {
    node.signalsWanted = hello.signals_wanted
    for (const placement of placementsOn(node)) planProbe(c, placement, now)
  }
  node.hostLinkMibPerS = hello.host_link_mib_per_s ?? null
  node.taskIdentity = hello.task_identity ?? null
  setMaxAttempts(c, node, hello.max_attempts ?? MAX_ATTEMPTS_PER_NODE)
  const { features = [] } = hello
  if (node.allowExec !== hello.allow_exec || !hasSameItems(node.features, features)) {
    node.allowExec = hello.allow_exec
    node.features = features
    for (const gpu of node.gpus) c.touchGpu(gpu)
  }
  if (node.hostSwapMib !== hello.host_swap_mib) {
    node.hostSwapMib = hello.host_swap_mib
    c.applyCapacity(node)
  }
  node.boot = boot
  c.eventLog.dirtyNode(node)
  return applySnapshot(c, node, hello, seq, now)
}

function hasSameItems(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((item, i) => item === other[i])
}

export type NodeSnapshot = Pick<
  Heartbeat,
  'gpus' | 'tasks' | 'finished_unacked' | 'preparing' | 'images' | 'requests'
>

/** Applies a snapshot of the node's tasks, newer than any before, and settles the differences. */
export function applySnapshot(
  c: Cluster,
  node: LiveNode,
  snapshot: NodeSnapshot,
  seq: number,
  now: Instant,
): SnapshotAnswer {
  const { gpus, tasks, finished_unacked: unacked } = snapshot
  node.snapshotSeq = seq
  heard(c, node, seq, now)
  // The answer carries a lease once it is durable: waits for the end of its leases count from here on (R5).
  grantLease(node.contact, c.policy.runLeaseMs, now)
  applyMemory(c, node, gpus)
  node.requests = snapshot.requests ?? null
  liftRefusalsBefore(c, node, seq)
  const stop: AttemptRef[] = []
  const unknown: AttemptRef[] = []
  const present = new Set<string>()
  for (const report of tasks) {
    const { task_id, attempt } = report
    present.add(attemptKey(task_id, attempt))
    if (currentPlacement(c, node.id, task_id, attempt) !== null) {
      reconcile(c, node, report, now)
      continue
    }
    const fate = fateOf(c, node, report, now)
    if (fate === 'stop') stop.push({ task_id, attempt })
    else if (fate === 'unknown') unknown.push({ task_id, attempt })
  }
  for (const ref of unacked) {
    present.add(attemptKey(ref.task_id, ref.attempt))
    noteOver(c, node, ref, now)
    noteAnnounced(c, node, ref, now)
  }
  setOtherAttempts(
    c,
    node,
    [...tasks, ...unacked].filter(
      ({ task_id, attempt }) => currentPlacement(c, node.id, task_id, attempt) === null,
    ),
  )
  noteUnknown(node, unknown, stop)
  if (node.quarantine.length > 0) settleQuarantine(c, node, present, now)
  settleOrDefer(c, node, present, now)
  return { stop: [...stop, ...settlePreparing(c, node, snapshot, seq, now)], unknown }
}

/** Returns the preparations that the node must end. */
function settlePreparing(
  c: Cluster,
  node: LiveNode,
  snapshot: NodeSnapshot,
  seq: number,
  now: Instant,
): readonly AttemptRef[] {
  const { stop, failed } = applyPreparing(c, node, snapshot, seq, now)
  for (const { task, report } of failed) refusePreparation(c, task, node, report, now)
  if (!isPlaceable(node)) dropPreparationsOn(c, node, now)
  return stop
}

/** Keeps what the next snapshot is compared with. */
function noteUnknown(node: LiveNode, unknown: readonly AttemptRef[], stop: readonly AttemptRef[]): void {
  if (unknown.length === 0 && stop.length === 0 && node.unknown.length === 0) return
  const noted = (isStopped: boolean) => (ref: AttemptRef) => ({
    taskId: ref.task_id,
    attempt: ref.attempt,
    isStopped,
  })
  node.unknown = [...unknown.map(noted(false)), ...stop.map(noted(true))]
}

function settleOrDefer(c: Cluster, node: LiveNode, present: ReadonlySet<string>, now: Instant): void {
  if (pauseOf(c) !== null) {
    node.deferred = { present: [...present], isAfterLoss: lacksHistoryOf(c, node.id) }
    return
  }
  node.deferred = null
  settleAbsent(c, node, present, lacksHistoryOf(c, node.id), now)
}

/**
 * An authentic message that is newer than any before: the node is up. An overtaken message says nothing about
 * the present.
 */
export function heard(c: Cluster, node: LiveNode, seq: number, now: Instant): void {
  if (seq <= node.contact.heardSeq) return
  node.contact.heardSeq = seq
  node.contact.heardAt = now
  node.lastSeenAt = now
  if (node.status !== 'up') setStatus(c, node, 'up', now)
}

export function setStatus(c: Cluster, node: LiveNode, status: LiveNode['status'], now: Instant): void {
  node.status = status
  c.eventLog.dirtyNode(node)
  node.contact.statusEvent = c.eventLog.emit(now, 'node_status', null, node.id, null, { status })
  for (const gpu of node.gpus) c.touchGpu(gpu)
  if (status !== 'up') dropPreparationsOn(c, node, now)
}

/** Compares a boot with the known one: later, the same, or contradictory (R6). */
export function bootOrder(node: LiveNode, boot: Boot): 'known' | 'later' | 'contradictory' {
  if (boot.counter > node.boot.counter) return 'later'
  return boot.counter === node.boot.counter && boot.random === node.boot.random ? 'known' : 'contradictory'
}

/**
 * A server with this identity has lost its state, or two servers have it: it is told to start a new boot.
 * Then its attempts are in doubt (R6).
 */
export function noteReset(c: Cluster, node: LiveNode): void {
  if (node.contact.wasReset) return
  node.contact.wasReset = true
  c.eventLog.dirtyNode(node)
}

/** Adds a node after a (re)start of the controller or a change of groups. */
export function adoptNode(c: Cluster, node: LiveNode): void {
  c.addNode(node)
  node.groups = groupsNaming(c.groups.values(), node.id)
  c.applyCapacity(node)
  c.assignPools(node)
}

/** Two servers with one identity, both told to start a new boot, follow each other within this time. */
const DUPLICATE_WITHIN_MS = 600_000

/**
 * The server has restarted. After a reset it knows nothing about earlier attempts: they are in doubt unless
 * it reports them.
 */
function beginBoot(c: Cluster, node: LiveNode, hello: Hello, now: Instant): void {
  const { contact } = node
  contact.heardSeq = 0
  contact.eventSeq = 0
  // It prepares nothing of before.
  dropPreparationsOn(c, node, now)
  liftRefusalsBefore(c, node, Infinity)
  repeatStarts(c, node, hello)
  if (!contact.wasReset) return
  contact.wasReset = false
  if (contact.resetBootAt !== null && now - contact.resetBootAt < DUPLICATE_WITHIN_MS)
    alarmDuplicate(c, node, now)
  contact.resetBootAt = now
  contact.doubtEndsAt = Math.max(now, contact.leaseEndsAt)
  contact.doubtfulProcessesEndAt = Math.max(now, contact.processesEndAt)
  const present = new Set(hello.tasks.map((report) => `${report.task_id}/${report.attempt}`))
  for (const placement of placementsOn(node)) {
    if (present.has(`${placement.task.spec.id}/${placement.attempt}`)) continue
    placement.isInDoubt = true
    c.eventLog.dirtyTask(placement.task)
  }
}

/**
 * The earlier boot may have accepted a start, and ended before the launch: then no report of the node names
 * the attempt. Asked again, the node answers what became of it (R7).
 */
function repeatStarts(c: Cluster, node: LiveNode, { tasks }: Hello): void {
  const present = new Set(tasks.map(({ task_id, attempt }) => attemptKey(task_id, attempt)))
  for (const placement of placementsOn(node)) {
    if (placement.startedAt !== null || present.has(attemptKey(placement.task.spec.id, placement.attempt)))
      continue
    c.eventLog.transaction.effects.push(...commandsToResend(placement, c.policy))
  }
}

function alarmDuplicate(c: Cluster, node: LiveNode, now: Instant): void {
  const { contact } = node
  if (contact.duplicateAt !== null && now - contact.duplicateAt < DUPLICATE_WITHIN_MS) return
  contact.duplicateAt = now
  c.eventLog.emit(now, 'duplicate_node', null, node.id, null, {
    alarm: 'DUPLICATE_NODE',
    name: node.name,
    address: node.address,
  })
}

function register(c: Cluster, hello: Hello, boot: Boot, now: Instant): LiveNode {
  const node = nodeOf(
    {
      id: hello.node_id,
      name: hello.name,
      address: hello.address,
      ordinal: c.nextNodeOrdinal++,
      isCordoned: false,
      drain: null,
      overcommitOverride: null,
      reserveOverrideMib: null,
      device: hello.device,
      signalsWanted: hello.signals_wanted,
      allowExec: hello.allow_exec,
      features: hello.features ?? [],
      hostSwapMib: hello.host_swap_mib,
      registeredAt: now,
      lastSeenAt: now,
      bootCounter: boot.counter,
      bootRandom: boot.random,
      leaseMs: c.policy.runLeaseMs,
      wasReset: false,
      status: 'suspect',
      gpus: hello.gpus.map((gpu) => ({
        index: gpu.index,
        model: gpu.model,
        physicalMib: gpu.physical_mib,
        foreignMib: gpu.foreign_mib,
        roundNonP0: 0,
        roundP0: 0,
      })),
    },
    now,
  )
  adoptNode(c, node)
  return node
}

function hasSameGpus(node: LiveNode, gpus: readonly GpuReport[]): boolean {
  return (
    node.gpus.length === gpus.length &&
    node.gpus.every(
      (gpu, i) =>
        gpu.index === gpus[i]?.index &&
        gpu.physicalMib === gpus[i]?.physical_mib &&
        gpu.model === gpus[i]?.model,
    )
  )
}

/** Different hardware under the same identity: placements on the old GPUs are lost. */
function replaceGpus(c: Cluster, node: LiveNode, gpus: readonly GpuReport[], now: Instant): void {
  for (const gpu of node.gpus) {
    for (const placement of [...gpu.placements]) {
      finish(
        c,
        placement.task,
        { state: 'lost', code: 'gpu_replaced', exitCode: null, reason: 'its GPU was replaced' },
        now,
      )
    }
    for (const entry of [...gpu.pendingClaimants]) c.touchNode(entry.node)
  }
  c.leavePools(node)
  node.gpus = gpus.map((gpu) =>
    newLiveGpu(node, gpu.index, gpu.model, gpu.physical_mib, gpu.foreign_mib, now),
  )
  node.hostPromisedMib = 0
  node.entryReservations = []
  for (const attempt of node.quarantine) countQuarantined(node, attempt, 1)
  c.applyCapacity(node)
  c.assignPools(node)
}

function applyMemory(c: Cluster, node: LiveNode, gpus: readonly GpuReport[]): void {
  let isChanged = false
  for (const report of gpus) {
    const gpu = node.gpus[report.index]
    if (gpu === undefined || gpu.foreignMib === report.foreign_mib) continue
    gpu.foreignMib = report.foreign_mib
    isChanged = true
  }
  if (isChanged) c.applyCapacity(node)
}

/** Settles an attempt that both sides know: the node decides about its residency (R12). */
function reconcile(c: Cluster, node: LiveNode, report: TaskReport, now: Instant): void {
  const placement = currentPlacement(c, node.id, report.task_id, report.attempt)
  if (placement === null) return
  if (placement.isInDoubt) {
    placement.isInDoubt = false
    c.eagerChecks.add(node)
    c.eventLog.dirtyTask(placement.task)
  }
  if (placement.task.state === 'unreachable') reachAgain(c, placement, now)
  if (placement.startedAt === null && report.residency !== 'none')
    confirmStart(c, placement, report.wants_gpu, now)
  if (
    report.generation > placement.generation &&
    (report.residency === 'resident' || report.residency === 'swapped_out')
  ) {
    // The event that says why comes later, or is lost.
    if (isFailedSwap(placement, report)) backOff(c, placement, 'reported', now)
    placement.generation = report.generation
    if (report.residency === 'resident') setResidency(c, placement, report.residency, null, now)
    else setSwappedOut(c, placement, report.residual_mib ?? 0, null, now)
  }
  if (report.generation === placement.generation) {
    if (report.residency === 'swapped_out' && placement.residency === 'swapped_out')
      setSwappedOut(c, placement, report.residual_mib ?? 0, null, now)
    setWakeable(c, placement, report.wakeable === true, now)
  }
  if (report.wants_gpu !== placement.wantsGpu)
    applyNodeWants(c, placement, report.wants_gpu, report.idle_ms, now)
  if (placement.residency === 'swapped_out' && isWantedBack(placement)) askForSwapIn(c, placement, now)
}

/** The swap in progress has ended as it began. A task that wants the GPU has stayed because it woke. */
function isFailedSwap({ residency, generation }: LivePlacement, report: TaskReport): boolean {
  if (report.generation !== generation + 1) return false
  if (residency === 'swapping_in') return report.residency === 'swapped_out'
  return residency === 'swapping_out' && report.residency === 'resident' && !report.wants_gpu
}

/** The attempt has ended there: decisions before its event arrives do not count on it anymore. */
function noteOver(c: Cluster, node: LiveNode, ref: AttemptRef, now: Instant): void {
  const placement = currentPlacement(c, node.id, ref.task_id, ref.attempt)
  if (placement === null || placement.isOver) return
  placement.isOver = true
  if (placement.entry !== null) dropEntry(c, placement.entry)
  c.eligibilityTimers.update(c, placement, now)
}

/**
 * Ends attempts that were confirmed before this snapshot and are missing from it (R6). After a loss, one that
 * was to be moved may have been moved before: its task may run elsewhere.
 */
export function settleAbsent(
  c: Cluster,
  node: LiveNode,
  present: ReadonlySet<string>,
  isAfterLoss: boolean,
  now: Instant,
): void {
  for (const placement of absentFrom(node, present)) {
    const mayHaveLaterAttempt = placement.stopping === null || placement.stopping.then === 'pending'
    if (isAfterLoss && mayHaveLaterAttempt) endUnknown(c, placement, now)
    else endLost(c, placement, 'absent', 'the node no longer has it', now)
  }
}

/** Confirmed attempts that are missing from a snapshot of the node. */
export function absentFrom(node: LiveNode, present: ReadonlySet<string>): readonly LivePlacement[] {
  return [...placementsOn(node)].filter(
    (placement) =>
      !placement.isInDoubt &&
      isConfirmedBefore(placement, node) &&
      !present.has(attemptKey(placement.task.spec.id, placement.attempt)),
  )
}

function isConfirmedBefore({ startedAt, confirmed }: LivePlacement, node: LiveNode): boolean {
  if (startedAt === null || confirmed === null) return false
  return confirmed.bootCounter < node.boot.counter || confirmed.seq < node.snapshotSeq
}
