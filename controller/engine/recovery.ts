/**
 * Restores the cluster from the store at a start. Nodes count as silent until their first message; their
 * snapshot settles the rest.
 */
import type { Instant } from '../../protocol/units.ts'
import { StoreFault } from '../ports/store.ts'
import type { StoredState, TaskRecord } from '../ports/store.ts'
import { nodeNotAhead, taskNotAhead } from './clock-set-back.ts'
import type { Cluster } from '../state/cluster.ts'
import { addPlacement, countHostMemory } from '../state/gpu-ledger.ts'
import type { LiveGpu, LiveTask } from '../state/facts.ts'
import { askForSwapIn, resumeGrowth } from './apply/lifecycle/entries.ts'
import { adoptNode } from './inputs/nodes/node-registry.ts'
import { isWantedBack } from './inputs/nodes/node-events.ts'
import { DEFAULT_CONFIG } from '../model/config.ts'
import { mayQueue, movableMib } from '../model/placement.ts'
import { resumeAutoCordon } from './apply/lifecycle/auto-cordon.ts'
import { planNextTry } from './apply/lifecycle/start-tries.ts'
import { resumeDrain } from './inputs/commands/drain.ts'
import { commandsToResend } from './apply/node-commands.ts'
import { planProbe } from './apply/lifecycle/probes.ts'
import { nodeOf, placementOf, taskOf } from '../state/records.ts'
import { startRuntimeLimit } from './apply/lifecycle/runtime-limits.ts'
import { resumeMetering } from './apply/lifecycle/transitions.ts'

export function restore(c: Cluster, state: StoredState, now: Instant): void {
  if (state.config !== null) {
    // Fields that are newer than the persisted configuration have their defaults.
    c.applyConfig(
      {
        fields: { ...DEFAULT_CONFIG, ...state.config.fields },
        source: 'persisted',
        revision: state.config.revision,
      },
      now,
    )
  }
  c.nextTaskSeq = Math.max(c.nextTaskSeq, state.marks.nextTaskSeq)
  c.eventLog.nextEventSeq = Math.max(c.eventLog.nextEventSeq, state.marks.nextEventSeq)
  c.eventLog.nextDecision = Math.max(c.eventLog.nextDecision, state.marks.nextDecision)
  Object.assign(c.finished, state.finishedCounts)
  for (const group of state.groups) c.groups.set(group.id, group)
  for (const record of [...state.nodes].sort((a, b) => a.ordinal - b.ordinal)) {
    // The node may hold the configured lease, or a longer one that was configured before (R5).
    adoptNode(
      c,
      nodeOf({ ...nodeNotAhead(record, now), leaseMs: Math.max(record.leaseMs, c.policy.runLeaseMs) }, now),
    )
    c.nextNodeOrdinal = Math.max(c.nextNodeOrdinal, record.ordinal + 1)
  }
  for (const record of [...state.openTasks].sort((a, b) => a.seq - b.seq))
    restoreTask(c, taskNotAhead(record, now), now)
  for (const node of c.nodes.values()) {
    resumeDrain(c, node)
    resumeAutoCordon(c, node)
  }
  c.submissionKeys.restore(state.submissionKeys)
  c.refreshPools()
}

function restoreTask(c: Cluster, record: TaskRecord, now: Instant): void {
  const task = taskOf(record)
  c.tasks.set(task.spec.id, task)
  c.submissions.add(task, c.tasks.size)
  if (task.spec.command === null) c.leases.renew(task, now)
  if (record.placement === null) {
    c.countPending(task, 1)
    if (mayQueue(task)) c.enqueue(task, now)
    c.waiting.begin(task, now)
    planNextTry(c, task)
    return
  }
  const node = c.nodes.get(record.placement.nodeId)
  const gpus = record.placement.gpus.map((index) => node?.gpus[index])
  if (node === undefined || gpus.includes(undefined)) {
    const what =
      `the store places task ${task.spec.id} on a GPU that it does not know: ` +
      `node ${record.placement.nodeId}`
    throw new StoreFault(
      `${what}; headroom verify says what else is wrong, headroom restore brings a backup back`,
    )
  }
  restorePlacement(c, task, record, gpus as LiveGpu[], now)
}

function restorePlacement(
  c: Cluster,
  task: LiveTask,
  record: TaskRecord,
  gpus: readonly LiveGpu[],
  now: Instant,
): void {
  if (record.placement === null) return
  const placement = placementOf(task, record.placement, gpus)
  task.placement = placement
  c.enterState(task, task.state, null)
  c.countPlaced(task, 1)
  for (const gpu of gpus) {
    addPlacement(gpu, placement)
    if (placement.residency === 'swapping_out') gpu.movingOutMib += movableMib(placement)
    c.touchGpu(gpu)
  }
  countHostMemory(placement, 'none', placement.residency)
  if (placement.startedAt === null) c.waiting.begin(task, now)
  resumeMetering(placement, now)
  c.eligibilityTimers.update(c, placement, now)
  startRuntimeLimit(c, placement)
  c.eventLog.transaction.effects.push(...commandsToResend(placement, c.policy))
  if (placement.residency === 'resident') resumeGrowth(c, placement)
  else if (placement.residency === 'swapped_out') {
    if (isWantedBack(placement) || placement.heldGrowth !== null) {
      askForSwapIn(c, placement, record.placement.askedAt ?? now)
    }
    placement.swappedOutSince ??= now
    planProbe(c, placement, now)
  }
}
