/**
 * Commands that submit and change tasks. Rules that span fields are checked here before the ledger changes.
 */
import { mayQueue, movableMib } from '../../../model/placement.ts'
import { tryAgain } from '../../apply/lifecycle/start-tries.ts'
import type { DurationMs, Instant } from '../../../../protocol/units.ts'
import { uuidV4 } from '../../../../protocol/uuid.ts'
import { admit } from '../../../model/vram.ts'
import type { FieldProblem } from '../../../model/config.ts'
import type { TaskEnd } from '../../../model/end-reason.ts'
import type { TaskRequest } from '../../../../protocol/task.ts'
import type { RandomStream } from '../../../ports/random.ts'
import type { Answer, SubmittedOnce, TaskChange, SubmissionKey } from '../../../model/command.ts'
import type { Cluster } from '../../../state/cluster.ts'
import type { LiveGpu, LivePlacement, LiveTask } from '../../../state/facts.ts'
import { newLiveTask } from '../../../state/new-facts.ts'
import { dropEntry } from '../../apply/lifecycle/entries.ts'
import { noteGivenUp } from '../../apply/lifecycle/given-up.ts'
import { setEligible } from '../../../state/index/eligibility-timers.ts'
import { forgetPreparations } from '../../apply/lifecycle/preparations.ts'
import { orderStop } from '../../apply/lifecycle/stops.ts'
import { stopGraceOf } from '../../apply/node-commands.ts'
import { finish, returnToPending, setNoswap } from '../../apply/lifecycle/transitions.ts'
import { specOfRequest } from '../../../../protocol/task-body.ts'
import { isReportAwaited } from '../../../state/placement-pause.ts'

/** Beyond this number of pending tasks submissions are refused with "try again" (R11). */
export const MAX_PENDING_TASKS = 1_000_000

export function submitTask(
  c: Cluster,
  request: TaskRequest,
  ids: RandomStream,
  now: Instant,
): Answer<LiveTask> {
  const problems = problemsOf(request)
  if (problems.length > 0) return { ok: false, refusal: { code: 'invalid', problems } }
  if (c.pendingCount >= MAX_PENDING_TASKS)
    return { ok: false, refusal: { code: 'too_many_pending', limit: MAX_PENDING_TASKS, owner: null } }
  const ownLimit = c.owners?.limits.maxPending ?? null
  if (
    ownLimit !== null &&
    request.owner !== null &&
    c.owners !== null &&
    c.owners.pendingOf(request.owner) >= ownLimit
  ) {
    return { ok: false, refusal: { code: 'too_many_pending', limit: ownLimit, owner: request.owner } }
  }
  const id = request.id ?? uuidV4(ids)
  if (c.tasks.has(id))
    return { ok: false, refusal: { code: 'conflict', detail: `task ${id} already exists` } }
  const task = newLiveTask(specOfRequest(request, id, c.nextTaskSeq++, c.policy.maxRequeues, now), now)
  c.tasks.set(id, task)
  c.submissions.add(task, c.tasks.size)
  c.countPending(task, 1)
  const { spec } = task
  c.eventLog.taskEvent(now, 'task_submitted', task, null, {
    seq: spec.seq,
    gpus: spec.gpuCount,
    vram_mib: spec.vramMib,
    mode: spec.gpuMode,
    noswap: spec.noswap,
    priority: spec.priority,
  })
  if (spec.command === null) c.leases.renew(task, now)
  c.enqueue(task, now)
  c.waiting.begin(task, now)
  return { ok: true, value: task }
}

/** A repeated submission makes one task: the key is written with it. */
export function submitOnce(
  c: Cluster,
  request: TaskRequest,
  { key, body }: SubmissionKey,
  ids: RandomStream,
  now: Instant,
): Answer<SubmittedOnce> {
  const known = c.submissionKeys.find(key, now)
  if (known !== null) {
    const { taskId } = known
    if (known.body !== body) return { ok: false, refusal: { code: 'key_reused', taskId } }
    return { ok: true, value: { taskId, isReplay: true } }
  }
  const answer = submitTask(c, request, ids, now)
  if (!answer.ok) return answer
  const { id: taskId, seq } = answer.value.spec
  c.submissionKeys.add({ seq, key, body, taskId, at: now }, c.eventLog.transaction)
  return { ok: true, value: { taskId, isReplay: false } }
}

export function updateTask(c: Cluster, id: string, change: TaskChange, now: Instant): Answer<LiveTask> {
  const task = c.tasks.get(id)
  if (task === undefined) return { ok: false, refusal: { code: 'not_found', what: 'task', id } }
  const isPlaced = task.placement !== null
  const { vramMib, groups, onNodeLoss } = change
  if (isPlaced && (vramMib !== undefined || groups !== undefined || onNodeLoss !== undefined)) {
    return conflict(
      `vram_mib, groups and on_node_loss can be changed only while the task is pending; it is ${task.state}`,
    )
  }
  if (task.placement !== null && change.noswap === 1 && task.placement.noswap === 0) {
    const refusal = noswapRefusal(c, task.placement)
    if (refusal !== null) return conflict(refusal)
  }
  applyChange(c, task, change, now)
  c.eventLog.taskEvent(now, 'task_updated', task, task.placement?.node.id ?? null, {
    fields: Object.keys(change),
  })
  return { ok: true, value: task }
}

/** @param isNow skips the grace period, also for a task that is already stopping with one */
export function cancelTask(
  c: Cluster,
  id: string,
  by: string,
  now: Instant,
  isNow = false,
): Answer<LiveTask> {
  const task = c.tasks.get(id)
  if (task === undefined) return { ok: false, refusal: { code: 'not_found', what: 'task', id } }
  const { placement } = task
  const cancelled = (reason: string): TaskEnd => ({
    state: 'cancelled',
    code: 'cancelled',
    exitCode: null,
    reason,
  })
  if (placement === null) finish(c, task, cancelled(`cancelled by ${by}`), now)
  else if (task.state === 'unreachable')
    finish(c, task, cancelled(`cancelled by ${by} while its server was unreachable`), now)
  else if (placement.stopping?.then !== 'cancelled') {
    const graceMs = isNow ? 0 : stopGraceOf(task, c.policy)
    orderStop(
      c,
      placement,
      { then: 'cancelled', reason: `cancelled by ${by}`, endReason: null, code: 'cancelled', graceMs },
      now,
    )
  } else if (isNow && (placement.stopping.graceMs ?? 0) > 0)
    orderStop(c, placement, { ...placement.stopping, graceMs: 0 }, now)
  return { ok: true, value: task }
}

/** An operator takes an attempt back (R5). */
export function requeueTask(
  c: Cluster,
  id: string,
  confirmFenced: boolean,
  by: string,
  now: Instant,
): Answer<LiveTask> {
  const task = c.tasks.get(id)
  if (task === undefined) return { ok: false, refusal: { code: 'not_found', what: 'task', id } }
  const { placement } = task
  if (placement === null) return conflict(`task ${id} is already pending`)
  if (placement.stopping !== null && placement.stopping.then !== 'pending') {
    return conflict(`task ${id} is being stopped: ${placement.stopping.reason}`)
  }
  const pendingAgain = { then: 'pending', reason: `requeued by ${by}`, endReason: null } as const
  if (!confirmFenced) orderStop(c, placement, { ...pendingAgain, graceMs: stopGraceOf(task, c.policy) }, now)
  else if (task.state === 'unreachable') {
    noteGivenUp(placement)
    returnToPending(c, placement, `requeued by ${by}, fenced`, now)
  } else
    return conflict(
      `task ${id} is ${task.state}: its server can still confirm that it has ended; omit confirm_fenced`,
    )
  return { ok: true, value: task }
}

export function problemsOf(request: TaskRequest): FieldProblem[] {
  const problems: FieldProblem[] = []
  if (request.vramMib === null && request.gpuMode === 'shared') {
    problems.push({ field: 'vram_mib', detail: 'is required unless gpu_mode is exclusive' })
  }
  if (request.vramMib !== null && request.vramMib <= 0)
    problems.push({ field: 'vram_mib', detail: 'must be at least 1' })
  if (request.gpuCount < 1) problems.push({ field: 'gpu_count', detail: 'must be at least 1' })
  return problems
}

/**
 * Returns why a placed task cannot become noswap; null if it can (semantics 1, "Changes while tasks run").
 */
function noswapRefusal(c: Cluster, placement: LivePlacement): string | null {
  const { node } = placement
  // The store may lack that the task was swapped out.
  if (isReportAwaited(c, node.id))
    return `${node.name} has not reported since the controller started; noswap can be set once it has`
  if (placement.residency === 'none') return 'the task is being started; noswap can be set once it runs'
  if (placement.residency !== 'resident')
    return `the task is ${placement.residency}; noswap can be set only while it is resident`
  for (const gpu of placement.gpus) {
    const verdict = admit(withoutIt(gpu, placement), placement.demandMib, 1)
    if (verdict !== 'FITS')
      return `as noswap it would not fit GPU ${gpu.index} of ${gpu.node.name}: ${verdict}`
  }
  return null
}

/** Returns the GPU as it would be without this swappable, resident placement. */
function withoutIt(gpu: LiveGpu, placement: LivePlacement): Parameters<typeof admit>[0] {
  let largest = 0
  for (const other of gpu.placements) {
    if (other !== placement && other.noswap === 0 && movableMib(other) > largest) largest = movableMib(other)
  }
  for (const claim of gpu.pendingClaimants)
    if (claim.task.spec.noswap === 0 && claim.needMib > largest) largest = claim.needMib
  return {
    physicalMib: gpu.physicalMib,
    reserveMib: gpu.reserveMib,
    capacityMib: gpu.capacityMib,
    limitMib: gpu.limitMib,
    noswapMib: gpu.noswapMib - placement.residualMib,
    swappableMib: gpu.swappableMib - movableMib(placement),
    freeMib: gpu.freeMib + placement.demandMib,
    largestSwappableMib: largest,
  }
}

function applyChange(c: Cluster, task: LiveTask, change: TaskChange, now: Instant): void {
  const { placement } = task
  // Removed from the eligible bytes first: its class and its ledger column change together.
  if (placement?.isEligible === true) setEligible(c, placement, false)
  if (task.placementEntry !== null) dropEntry(c, task.placementEntry)
  c.dequeue(task)
  c.waiting.end(task, now)
  const { spec } = task
  task.spec = {
    ...spec,
    noswap: change.noswap ?? spec.noswap,
    priority: change.priority ?? spec.priority,
    labels: change.labels ?? spec.labels,
    vramMib: change.vramMib ?? spec.vramMib,
    groups: change.groups ?? spec.groups,
    onNodeLoss: change.onNodeLoss ?? spec.onNodeLoss,
    ...(change.stopGraceSeconds === undefined ? {} : { stopGraceMs: msOrNull(change.stopGraceSeconds) }),
  }
  if (placement === null) {
    if (change.groups !== undefined) forgetPreparations(c, task)
    if (mayQueue(task)) c.enqueue(task, now)
    c.waiting.begin(task, now)
    tryAgain(c, task, 'task_changed', false, now)
    return
  }
  c.eligibilityTimers.update(c, placement, now)
  c.touchNode(placement.node)
  for (const gpu of placement.gpus) gpu.ledgerVersion += 1
  if (change.noswap !== undefined) setNoswap(c, placement, change.noswap, now)
  if (placement.startedAt === null) c.waiting.begin(task, now)
}

function conflict(detail: string): Answer<never> {
  return { ok: false, refusal: { code: 'conflict', detail } }
}

function msOrNull(seconds: number | null): DurationMs | null {
  return seconds === null ? null : seconds * 1000
}
