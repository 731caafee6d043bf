/**
 * The messages of `client-messages.ts` as tables. The ranges equal those of REST
 * (controller/api/schema/task.ts); a test compares them.
 */
import type {
  CancelTask,
  ClientBody,
  GetTask,
  KeepTask,
  Label,
  SubmitTask,
  TaskAnswer,
  WireTaskState,
} from './client-messages.ts'
import type { GpuMode, NoSwap, OnNodeLoss, Priority, WireResidency } from './units.ts'
import { every, flag, integer, list, oneOf, optional, orNull, record, text } from './schema-field.ts'
import type { RecordField } from './schema-field.ts'

const MAX_GPUS = 16
/**
 * More GPUs than any node has: such a task is accepted, and waits with EXCEEDS_NODE_GPU_COUNT, as it does in
 * a trace.
 */
const MAX_TASK_GPUS = 1024
const MAX_VRAM_MIB = 16_777_216
const MAX_GROUPS = 32
const MAX_LABELS = 64
const MAX_ARGUMENTS = 256
const MAX_ARGUMENT_LENGTH = 4096
const MAX_STOP_GRACE_SECONDS = 3_600
const MAX_RUNTIME_SECONDS = 31_536_000
const MAX_REQUEUES = 1000
const MAX_COUNT = 2_251_799_813_685_248
/** Length of the reason in an answer; a longer one is cut. */
export const MAX_ANSWER_REASON_LENGTH = 1000

const taskId = text(1, 200)
const name = text(1, 200)
const count = integer(0, MAX_COUNT)

const submit = record<SubmitTask>({
  op: oneOf('submit'),
  name: orNull(name),
  vram_mib: orNull(integer(1, MAX_VRAM_MIB)),
  gpu_count: integer(1, MAX_TASK_GPUS),
  gpu_mode: every<GpuMode>()('shared', 'exclusive'),
  noswap: every<NoSwap>()(0, 1),
  priority: every<Priority>()(0, 1, 2, 3, 4),
  groups: list(text(1, 200), 0, MAX_GROUPS),
  labels: list(record<Label>({ name: text(1, 64), value: text(0, 256, 'no_nul') }), 0, MAX_LABELS),
  command: orNull(list(text(0, MAX_ARGUMENT_LENGTH, 'no_nul'), 1, MAX_ARGUMENTS)),
  max_runtime_seconds: orNull(integer(1, MAX_RUNTIME_SECONDS)),
  on_node_loss: every<OnNodeLoss>()('wait', 'fail', 'requeue'),
  max_requeues: optional(orNull(integer(0, MAX_REQUEUES))),
  stop_grace_seconds: optional(orNull(integer(0, MAX_STOP_GRACE_SECONDS))),
})

const task = record<TaskAnswer>({
  op: oneOf('task'),
  task_id: taskId,
  name,
  state: every<WireTaskState>()(
    'pending',
    'assigned',
    'running',
    'unreachable',
    'completed',
    'failed',
    'cancelled',
    'lost',
  ),
  residency: every<WireResidency>()('none', 'resident', 'swapping_out', 'swapped_out', 'swapping_in'),
  attempt: count,
  swap_outs: count,
  node_id: orNull(taskId),
  gpus: list(integer(0, MAX_GPUS - 1), 0, MAX_GPUS, 'no_duplicates'),
  exit_code: orNull(integer(-2_147_483_648, 4_294_967_295)),
  reason: orNull(text(0, MAX_ANSWER_REASON_LENGTH, 'no_nul')),
  expires_in_ms: orNull(count),
})

type Tables = {
  readonly [O in (ClientBody | TaskAnswer)['op']]: RecordField<Extract<ClientBody | TaskAnswer, { op: O }>>
}

export const CLIENT_BODIES = {
  submit,
  cancel: record<CancelTask>({ op: oneOf('cancel'), task_id: taskId, now: optional(flag) }),
  get: record<GetTask>({ op: oneOf('get'), task_id: taskId }),
  keepalive: record<KeepTask>({ op: oneOf('keepalive'), task_id: taskId, busy: flag }),
  task,
} satisfies Tables
