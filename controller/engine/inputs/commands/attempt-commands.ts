/**
 * Decisions of an administrator after a loss: ending the recovery, and settling attempts that the store does
 * not know.
 */
import type { Instant } from '../../../../protocol/units.ts'
import type { QuarantinedAttempt } from '../../../model/node.ts'
import { isAttempt } from '../../../model/node.ts'
import type { RandomStream } from '../../../ports/random.ts'
import type { Cluster } from '../../../state/cluster.ts'
import type { LiveNode, LiveTask } from '../../../state/facts.ts'
import { emitSettled, release, stopQuarantined } from '../nodes/quarantine.ts'
import { endRecovery } from '../nodes/recovery-mode.ts'
import { takeReported } from '../nodes/reported-attempt.ts'
import type { Adoption, Answer, AttemptName } from '../../../model/command.ts'
import { submitTask } from './task-commands.ts'
import { limitsIn } from '../../../../protocol/resource-limits.ts'
import { DEFAULT_RUN_POLICY } from '../../../../protocol/task.ts'
import { surroundingsIn } from '../../../../protocol/task-body.ts'

export function finishRecovery(c: Cluster, by: string, now: Instant): Answer<null> {
  if (c.recovery !== null) endRecovery(c, by, now)
  return { ok: true, value: null }
}

export function adoptAttempt(
  c: Cluster,
  adoption: Adoption,
  by: string,
  ids: RandomStream,
  now: Instant,
): Answer<LiveTask> {
  const found = find(c, adoption)
  if (!found.ok) return found
  const { node, quarantined } = found.value
  if (quarantined.stoppedBy !== null)
    return conflict(`attempt ${nameOf(adoption)} is being stopped: stopped by ${quarantined.stoppedBy}`)
  if (quarantined.gpus.some((index) => node.gpus[index] === undefined)) {
    return conflict(`attempt ${nameOf(adoption)} is on a GPU that node ${node.name} no longer has: stop it`)
  }
  const known = c.tasks.get(adoption.taskId)
  if (known !== undefined && known.state !== 'pending') {
    return conflict(
      `task ${adoption.taskId} has attempt ${known.attempt}: cancel it first, or stop this attempt`,
    )
  }
  const task: Answer<LiveTask> =
    known === undefined
      ? submitTask(c, requestOf(adoption, quarantined), ids, now)
      : { ok: true, value: known }
  if (!task.ok) return task
  // Released first, so that its VRAM is not counted twice.
  release(c, node, quarantined)
  takeReported(c, node, task.value, quarantined, now)
  emitSettled(c, node, { task_id: adoption.taskId, attempt: adoption.attempt }, { how: 'adopted', by }, now)
  return task
}

export function stopAttempt(c: Cluster, name: AttemptName, by: string, now: Instant): Answer<null> {
  const found = find(c, name)
  if (!found.ok) return found
  stopQuarantined(c, found.value.node, found.value.quarantined, by, now)
  return { ok: true, value: null }
}

interface Found {
  readonly node: LiveNode
  readonly quarantined: QuarantinedAttempt
}

function find(c: Cluster, name: AttemptName): Answer<Found> {
  const node = c.nodes.get(name.nodeId)
  const quarantined = node?.quarantine.find((one) => isAttempt(one, name.taskId, name.attempt))
  if (node === undefined || quarantined === undefined)
    return { ok: false, refusal: { code: 'not_found', what: 'attempt', id: nameOf(name) } }
  return { ok: true, value: { node, quarantined } }
}

function nameOf({ taskId, attempt }: AttemptName): string {
  return `${taskId}/${attempt}`
}

function requestOf(
  adoption: Adoption,
  { gpus, vramMib }: QuarantinedAttempt,
): Parameters<typeof submitTask>[1] {
  const { taskId, name, owner, command, gpuMode, noswap, priority, onNodeLoss } = adoption
  return {
    ...{ ...DEFAULT_RUN_POLICY, id: taskId, name, owner, command, gpuMode, noswap, priority, onNodeLoss },
    ...surroundingsIn(adoption),
    ...limitsIn(adoption.limits),
    ...{ vramMib, gpuCount: gpus.length, groups: [], labels: {} },
  }
}

function conflict(detail: string): Answer<never> {
  return { ok: false, refusal: { code: 'conflict', detail } }
}
