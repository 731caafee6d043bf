/** A task as the API shows it: an open one from memory, a final one from the store, in one shape. */
import { ZERO_COUNTERS, type Counters } from '../../metrics/counters.ts'
import { starvationPercent, starvedSeconds } from '../../metrics/starvation.ts'
import { endCodeOf, endSentenceOf } from '../../model/end-reason.ts'
import type { Placement, Task } from '../../model/placement.ts'
import type { Preparation } from '../../model/preparation.ts'
import { NO_TROUBLE, type StartTrouble } from '../../model/start-refusal.ts'
import type { TaskRecord } from '../../ports/store.ts'
import type { ReasonDetail, WaitExplanation } from '../../query/explain/explain.ts'
import type { Prediction } from '../../query/preview/prediction.ts'
import type { Views } from '../../query/views.ts'
import { presentInstant, presentInstantOrNull } from '../http/instant.ts'
import type { StartPart } from '../twin/forecasts.ts'
import type { PlacementPreviewBody } from './preview-schema.ts'
import type { PlacementBody, TaskBody, WaitBody } from './schema.ts'
import { memoryLimitMib } from '../../../protocol/resource-limits.ts'
import { runPolicyBodyOf } from '../../../protocol/task-body.ts'

export function presentTask(task: Task, views: Views): TaskBody {
  return { ...presentWithoutWait(task, views), wait: presentWait(views.explain(task)) }
}

/** Explaining a wait is a look at the cluster: a list of all tasks goes without. */
export function presentWithoutWait(task: Task, views: Views): TaskBody {
  return {
    ...presentSpec(task.spec),
    ...presentCourse(task),
    residency: task.placement?.residency ?? 'none',
    stopping_since: presentInstantOrNull(task.placement?.stopping?.since ?? null),
    last_node_id: task.lastNodeId,
    placement: task.placement === null ? null : presentPlacement(task.placement),
    ...presentTrouble(task.trouble),
    image_digest: task.imageDigest,
    preparing: task.preparations.map(presentPreparation),
    wait: null,
    ...presentStarvation(views.taskCounters(task)),
  }
}

/** From the store: what is final sits nowhere and waits for nothing. */
export function presentTaskRecord(record: TaskRecord): TaskBody {
  return {
    ...presentSpec(record),
    ...presentCourse(record),
    residency: 'none',
    stopping_since: null,
    last_node_id: record.lastNodeId ?? null,
    placement: null,
    ...presentTrouble({ ...NO_TROUBLE, earlyEnds: record.trouble?.earlyEnds ?? 0 }),
    image_digest: record.imageDigest ?? null,
    preparing: [],
    wait: null,
    ...presentStarvation(countersOf(record)),
  }
}

function presentStarvation(counters: Counters): Pick<TaskBody, 'starvation_percent' | 'starved_seconds'> {
  return { starvation_percent: starvationPercent(counters), starved_seconds: starvedSeconds(counters) }
}

function presentTrouble({
  refusals,
  pause,
  earlyEnds,
}: StartTrouble): Pick<TaskBody, 'start_refusals' | 'start_pause' | 'requeues'> {
  return {
    requeues: earlyEnds,
    start_refusals: refusals.map(({ nodeId, nodeName, cause, code, detail, at }) => ({
      node_id: nodeId,
      node_name: nodeName,
      cause,
      code,
      detail,
      at: presentInstant(at),
    })),
    start_pause:
      pause === null
        ? null
        : { reason: pause.reason, since: presentInstant(pause.since), until: presentInstant(pause.until) },
  }
}

function presentPreparation(preparation: Preparation): TaskBody['preparing'][number] {
  const { nodeId, nodeName, state, since, bytesDone, bytesTotal } = preparation
  return {
    node_id: nodeId,
    node_name: nodeName,
    state: state === 'prepared' ? 'prepared' : 'preparing',
    since: presentInstant(since),
    bytes_done: bytesDone,
    bytes_total: bytesTotal,
  }
}

export function presentPlacement(placement: Placement): PlacementBody {
  const memory = placement.task.spec.limits?.memoryMib ?? null
  return {
    node_id: placement.node.id,
    node_name: placement.node.name,
    gpus: placement.gpus.map((gpu) => gpu.index),
    demand_mib: placement.demandMib,
    residual_mib: placement.residualMib,
    memory_mib: memory,
    memory_limit_mib: memoryLimitMib(
      memory,
      placement.node.device,
      placement.demandMib,
      placement.gpus.length,
    ),
    wants_gpu: placement.wantsGpu,
    can_signal:
      placement.node.signalsWanted || placement.isWakeable === true || placement.task.spec.command === null,
    idle_since: presentInstant(placement.idleSince),
    assigned_at: presentInstant(placement.assignedAt),
    started_at: presentInstantOrNull(placement.startedAt),
  }
}

/** Presents the request of a task. */
function presentSpec(spec: Task['spec'] | TaskRecord) {
  return {
    id: spec.id,
    seq: spec.seq,
    name: spec.name,
    vram_mib: spec.vramMib === 0 ? null : spec.vramMib,
    gpu_count: spec.gpuCount,
    gpu_mode: spec.gpuMode,
    noswap: spec.noswap,
    priority: spec.priority,
    groups: spec.groups,
    labels: spec.labels,
    owner: spec.owner,
    command: spec.command,
    ...runPolicyBodyOf(spec),
    env_names: [...(spec.environment?.names ?? [])],
    secrets: spec.environment?.secrets ?? {},
    submitted_at: presentInstant(spec.submittedAt),
  }
}

type Course = Pick<
  TaskRecord,
  | 'state'
  | 'isHeld'
  | 'attempt'
  | 'swapOuts'
  | 'pendingSince'
  | 'firstStartedAt'
  | 'finishedAt'
  | 'exitCode'
  | 'endCode'
  | 'endReason'
>

/** Presents the course of a task. */
function presentCourse(course: Course) {
  return {
    state: course.state,
    held: course.isHeld,
    attempt: course.attempt,
    swap_outs: course.swapOuts,
    pending_since: presentInstant(course.pendingSince),
    first_started_at: presentInstantOrNull(course.firstStartedAt),
    finished_at: presentInstantOrNull(course.finishedAt),
    exit_code: course.exitCode,
    end_code: endCodeOf(course),
    end_reason: endSentenceOf(course),
  }
}

function countersOf(record: TaskRecord): Counters {
  const [demand, served, queue, swap, compute] = record.counters
  return { ...ZERO_COUNTERS, demand, served, queue, swap, compute }
}

export function presentPrediction({
  when,
  node,
  gpus,
  demandMib,
  victims,
  wait,
}: Prediction): Omit<PlacementPreviewBody, keyof StartPart> {
  return {
    dry_run: true,
    starts: when ?? 'later',
    placement:
      node === null
        ? null
        : {
            node_id: node.id,
            node_name: node.name,
            gpus: gpus.map((gpu) => gpu.index),
            demand_mib: demandMib,
          },
    victims: victims.map(({ task: { spec }, gpu, mib }) => ({
      task_id: spec.id,
      name: spec.name,
      owner: spec.owner,
      priority: spec.priority,
      gpu,
      mib,
    })),
    wait: presentWait(wait),
  }
}

function presentWait(explanation: WaitExplanation | null): WaitBody | null {
  if (explanation === null) return null
  return {
    ...presentReason(explanation.primary),
    sentence: explanation.sentence,
    retry_at: presentInstantOrNull(explanation.retryAt),
    queue_position: explanation.queuePosition,
    served_before: explanation.servedBefore,
    secondary: explanation.secondary.map(presentReason),
  }
}

function presentReason(detail: ReasonDetail): WaitBody['secondary'][number] {
  return {
    reason: detail.reason,
    node_ids: detail.nodeIds,
    node_count: detail.nodeCount,
    have_mib: detail.haveMib,
    need_mib: detail.needMib,
  }
}
