/** Nodes come, speak, and are compared with what the controller believes of them (R6, R7). */
import type { AttemptRef, Boot, GpuReport, Hello, TaskReport } from '../../protocol/messages.ts'
import type { Instant } from '../../protocol/units.ts'
import { groupsNaming } from './cluster.ts'
import type { Cluster } from './cluster.ts'
import { askForSwapIn } from './entries.ts'
import type { LiveNode } from './live.ts'
import { newLiveGpu } from './live.ts'
import { applyWants, currentPlacement } from './node-events.ts'
import { nodeOf } from './records.ts'
import { finish, returnToPending, setResidency, started } from './transitions.ts'

/** A server introduces itself: registered, or known again. Answers the attempts it must end. */
export function applyHello(c: Cluster, hello: Hello, boot: Boot, seq: number, now: Instant): readonly AttemptRef[] {
  let node = c.nodes.get(hello.node_id)
  if (node === undefined) {
    node = register(c, hello, boot, now)
    c.recorder.emit(now, 'node_registered', null, node.id, null, { name: node.name, gpus: node.gpus.length })
  } else if (!hasSameGpus(node, hello.gpus)) {
    replaceGpus(c, node, hello.gpus, now)
  }
  node.name = hello.name
  node.address = hello.address
  if (node.hostSwapMib !== hello.host_swap_mib) {
    node.hostSwapMib = hello.host_swap_mib
    c.applyCapacity(node)
  }
  node.boot = boot
  c.recorder.dirtyNode(node)
  return applySnapshot(c, node, hello.gpus, hello.tasks, hello.finished_unacked, seq, now)
}

/** A snapshot of the node's tasks, newer than any before: differences are settled. Answers the attempts it must end. */
export function applySnapshot(
  c: Cluster,
  node: LiveNode,
  gpus: readonly GpuReport[],
  tasks: readonly TaskReport[],
  unacked: readonly AttemptRef[],
  seq: number,
  now: Instant,
): readonly AttemptRef[] {
  node.snapshotSeq = seq
  heard(c, node, now)
  applyMemory(c, node, gpus)
  forgetRefusals(c, node)
  const stop: AttemptRef[] = []
  const present = new Set<string>()
  for (const report of tasks) {
    present.add(`${report.task_id}/${report.attempt}`)
    if (currentPlacement(c, node.id, report.task_id, report.attempt) === null) {
      stop.push({ task_id: report.task_id, attempt: report.attempt })
    } else reconcile(c, node, report, now)
  }
  for (const ref of unacked) present.add(`${ref.task_id}/${ref.attempt}`)
  settleAbsent(c, node, present, now)
  return stop
}

/** Any authentic word of a node: it is up. */
export function heard(c: Cluster, node: LiveNode, now: Instant): void {
  node.lastSeenAt = now
  if (node.status === 'up') return
  setStatus(c, node, 'up', now)
}

export function setStatus(c: Cluster, node: LiveNode, status: LiveNode['status'], now: Instant): void {
  node.status = status
  c.recorder.emit(now, 'node_status', null, node.id, null, { status })
  for (const gpu of node.gpus) c.touchGpu(gpu)
}

/** After a (re)start of the controller or a change of groups. */
export function adoptNode(c: Cluster, node: LiveNode): void {
  c.addNode(node)
  node.groups = groupsNaming(c.groups.values(), node.id)
  c.applyCapacity(node)
  c.assignPools(node)
}

function register(c: Cluster, hello: Hello, boot: Boot, now: Instant): LiveNode {
  const node = nodeOf(
    {
      id: hello.node_id,
      name: hello.name,
      address: hello.address,
      ordinal: c.nextNodeOrdinal++,
      isCordoned: false,
      overcommitOverride: null,
      reserveOverrideMib: null,
      hostSwapMib: hello.host_swap_mib,
      registeredAt: now,
      lastSeenAt: now,
      bootCounter: boot.counter,
      bootRandom: boot.random,
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
    node.gpus.every((gpu, i) => gpu.index === gpus[i]?.index && gpu.physicalMib === gpus[i]?.physical_mib && gpu.model === gpus[i]?.model)
  )
}

/** Other hardware under the same identity: what was placed there is gone with it. */
function replaceGpus(c: Cluster, node: LiveNode, gpus: readonly GpuReport[], now: Instant): void {
  for (const gpu of node.gpus) {
    for (const placement of [...gpu.placements]) finish(c, placement.task, 'lost', null, 'its GPU was replaced', now)
    for (const entry of [...gpu.claims]) c.touchNode(entry.node)
  }
  c.leavePools(node)
  node.gpus = gpus.map((gpu) => newLiveGpu(node, gpu.index, gpu.model, gpu.physical_mib, gpu.foreign_mib, now))
  node.hostPromisedMib = 0
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

/** A later snapshot than the refusal: the node is a choice again (R3). */
function forgetRefusals(c: Cluster, node: LiveNode): void {
  for (const task of c.refusedTasks) {
    if (task.refusedBy === null || !task.refusedBy.has(node.id) || task.refusedBy.get(node.id) === node.snapshotSeq) continue
    const left = new Map(task.refusedBy)
    left.delete(node.id)
    task.refusedBy = left.size === 0 ? null : left
    if (task.refusedBy === null) c.refusedTasks.delete(task)
    if (task.queue !== null) task.queue.add(task)
  }
}

/** One attempt that both sides know: the node has the last word on where its bytes are (R12). */
function reconcile(c: Cluster, node: LiveNode, report: TaskReport, now: Instant): void {
  const placement = currentPlacement(c, node.id, report.task_id, report.attempt)
  if (placement === null) return
  if (placement.task.state === 'unreachable') placement.task.state = placement.startedAt === null ? 'assigned' : 'running'
  if (placement.startedAt === null && report.residency !== 'none') started(c, placement, report.wants_gpu, now)
  if (report.generation > placement.generation && (report.residency === 'resident' || report.residency === 'swapped_out')) {
    placement.generation = report.generation
    setResidency(c, placement, report.residency, null, now)
  }
  if (report.wants_gpu !== placement.wantsGpu) applyWants(c, placement, report.wants_gpu, report.idle_ms, now)
  if (placement.residency === 'swapped_out' && placement.wantsGpu) askForSwapIn(c, placement, now)
}

/** Confirmed attempts that the snapshot does not hold are over. */
function settleAbsent(c: Cluster, node: LiveNode, present: ReadonlySet<string>, now: Instant): void {
  const gone = new Set<LiveNode['gpus'][number]['placements'][number]>()
  for (const gpu of node.gpus) {
    for (const placement of gpu.placements) {
      const isConfirmed = placement.startedAt !== null && placement.startedAt < now
      if (isConfirmed && !present.has(`${placement.task.spec.id}/${placement.attempt}`)) gone.add(placement)
    }
  }
  for (const placement of gone) {
    if (placement.task.spec.onNodeLoss === 'requeue') returnToPending(c, placement, 'absent', now)
    else finish(c, placement.task, 'lost', null, 'the node no longer has it', now)
  }
}
