/**
 * Messages between clients and the controller. The REST API has the same meaning. Every field is present; it
 * is null where REST leaves it out.
 */
import {
  count,
  flag,
  integer,
  list,
  NO_NUL,
  oneOf,
  optional,
  orNull,
  record,
  text,
  withoutDuplicates,
} from './fields.ts'
import type { Value } from './fields.ts'
import {
  MAX_ANSWER_REASON_LENGTH,
  MAX_GPUS,
  MAX_GROUPS,
  MAX_ID_LENGTH,
  MAX_LABELS,
  MAX_TASK_GPUS,
  MAX_VRAM_MIB,
} from './limits.ts'
import { commandLine, gpuIndex, id, noswap } from './message-fields.ts'
import { GPU_MODES, PRIORITIES, RESIDENCIES, TASK_STATES } from './units.ts'
import { RUN_POLICY } from './task.ts'

const taskId = id()
const name = text(1, MAX_ID_LENGTH)

const Label = record({ name: text(1, 64), value: text(0, 256, undefined, NO_NUL) })
export type Label = Value<typeof Label>

/** Requests GPU time. The same message id requests the same task; use a UUID. */
const SubmitTask = record({
  op: oneOf(['submit']),
  name: orNull(name, 'Null: the task ID'),
  vram_mib: orNull(
    integer(1, MAX_VRAM_MIB),
    'Per GPU. Null only with gpu_mode exclusive: the whole VRAM of each GPU',
  ),
  gpu_count: integer(1, MAX_TASK_GPUS, 'GPUs of one node, all or nothing'),
  gpu_mode: oneOf(GPU_MODES),
  noswap,
  priority: oneOf(PRIORITIES, '0 is highest (P0)'),
  groups: list(
    text(1, 200),
    0,
    MAX_GROUPS,
    'The task may run in any of these groups. Empty: the common pool',
  ),
  labels: list(Label, 0, MAX_LABELS),
  command: commandLine,
  ...RUN_POLICY.properties,
})
export type SubmitTask = Value<typeof SubmitTask>

/** Cancels a pending task at once; the GPU server stops a placed task. */
const CancelTask = record({
  op: oneOf(['cancel']),
  task_id: taskId,
  now: optional(flag('Skips the stop grace, also for a task that is already stopping')),
})
export type CancelTask = Value<typeof CancelTask>

const GetTask = record({ op: oneOf(['get']), task_id: taskId })
export type GetTask = Value<typeof GetTask>

/**
 * Extends a lease (a task without a command) and states whether it wants the GPU. A lease without keepalives
 * is cancelled.
 */
const KeepTask = record({
  op: oneOf(['keepalive']),
  task_id: taskId,
  busy: flag('The client wants the GPU'),
})
export type KeepTask = Value<typeof KeepTask>

export type ClientBody = SubmitTask | CancelTask | GetTask | KeepTask

/**
 * The answer to every client request: the current state of the task. A task of another owner is answered like
 * a task that does not exist.
 */
const TaskAnswer = record({
  op: oneOf(['task']),
  task_id: taskId,
  name,
  state: oneOf(TASK_STATES),
  residency: oneOf(RESIDENCIES, 'none: not on a GPU'),
  attempt: count('Number of assignments so far'),
  swap_outs: count('Number of swap-outs so far'),
  node_id: orNull(taskId, 'Node of the placement; null while the task is pending or final'),
  gpus: withoutDuplicates(list(gpuIndex(), 0, MAX_GPUS, 'GPUs of the placement')),
  exit_code: orNull(integer(-2_147_483_648, 4_294_967_295), 'Null: the task has none'),
  reason: orNull(
    text(0, MAX_ANSWER_REASON_LENGTH, undefined, NO_NUL),
    'Why the task ended, or why it waits; null when there is no reason',
  ),
  expires_in_ms: orNull(
    count(),
    'In the answer to a keepalive: time until the lease ends without another keepalive. Null: the ' +
      'lease does ' +
      'not expire, or the request was not a keepalive',
  ),
})
export type TaskAnswer = Value<typeof TaskAnswer>

export const CLIENT_BODIES = {
  submit: SubmitTask,
  cancel: CancelTask,
  get: GetTask,
  keepalive: KeepTask,
  task: TaskAnswer,
}
