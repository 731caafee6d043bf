import { Type, type Static, type TUnsafe } from 'typebox'
import {
  MIN_TASK_ID_PREFIX,
  TASK_DEFAULTS,
  MAX_ENVIRONMENT_LENGTH,
  MAX_GROUPS,
  MAX_LABELS,
  MAX_STOP_GRACE_SECONDS,
  MAX_TASK_GPUS,
  MAX_VARIABLES,
  MAX_VRAM_MIB,
  VARIABLE_NAME_PATTERN,
} from '../../../protocol/limits.ts'
import { END_CODES } from '../../model/end-reason.ts'
import { PAUSE_REASONS } from '../../model/start-refusal.ts'
import { WAIT_REASONS } from '../../query/explain/explain.ts'
import {
  closed,
  count,
  countOrNull,
  DOCUMENT_ONLY,
  instant,
  instantOrNull,
  integer,
  integerOrNull,
  list,
  objectOrNull,
  oneOf,
  page,
  pathId,
  refTo,
  oneOfOrNull,
  textOrNull,
} from '../http/fields-schema.ts'
import { PARTS_CURSOR_LIMIT } from '../http/cursor.ts'
import { listFormat } from '../http/csv.ts'
import { TASK_SORTS } from './task-order.ts'
import { GroupIdSchema } from '../groups/schema.ts'
import { RUN_POLICY_REQUEST, RUN_POLICY_VIEW } from '../../../protocol/task.ts'
import {
  GPU_MODES,
  NOSWAP,
  ON_NODE_LOSS,
  PRIORITIES,
  RESIDENCIES,
  TASK_STATE_FILTERS,
  TASK_STATES,
} from '../../../protocol/units.ts'

const LINE = { pattern: '^[^\\u0000-\\u001f\\u007f]*$' }

/** Limits of the labels and groups of a task. */
export const TASK_LIMITS = { labels: MAX_LABELS, groups: MAX_GROUPS } as const

const noswap = oneOf(NOSWAP, {
  description: '0: may be swapped out and use overcommit headroom; 1: stays in physical VRAM',
})
const priority = oneOf(PRIORITIES, { description: '0 is highest (P0)' })
const vramMib = integer(1, MAX_VRAM_MIB, { description: 'Demand on each GPU, MiB' })
const groups = list(GroupIdSchema, {
  maxItems: TASK_LIMITS.groups,
  uniqueItems: true,
  description: 'Groups the task may run in; empty: the common pool',
})
const labelName = Type.String({
  minLength: 1,
  maxLength: 64,
  ...LINE,
  'x-allowed': 'a string of 1 to 64 characters on one line',
})
const ARGUMENT = { maxLength: 4096, pattern: '^[^\\u0000]*$' }
const labelValue = { type: 'string', maxLength: 256 }

/** POST /tasks. `owner` is not a field, because it comes from the token. */
export const TaskRequestSchema = closed(
  {
    name: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 200,
        ...LINE,
        'x-allowed': 'a string of 1 to 200 characters on one line',
      }),
    ),
    vram_mib: Type.Optional(
      integer(1, MAX_VRAM_MIB, {
        description: 'Demand on each GPU, MiB; optional only if gpu_mode is exclusive',
      }),
    ),
    gpu_count: Type.Optional(
      integer(1, MAX_TASK_GPUS, {
        default: TASK_DEFAULTS.gpuCount,
        description: 'Number of GPUs, all on one node; the task gets all of them or none',
      }),
    ),
    gpu_mode: Type.Optional(oneOf(GPU_MODES, { default: TASK_DEFAULTS.gpuMode })),
    noswap: Type.Optional(noswap),
    priority: Type.Optional(priority),
    groups: Type.Optional(groups),
    labels: Type.Optional(labelsOf<string>(labelValue)),
    command: Type.Optional(
      list(Type.String({ ...ARGUMENT, 'x-allowed': 'a string of 0 to 4096 characters without NUL' }), {
        [DOCUMENT_ONLY]: { prefixItems: [{ type: 'string', ...ARGUMENT, minLength: 1 }] },
        minItems: 1,
        maxItems: 256,
        'x-allowed': 'an array of 1 to 256 items',
        description: 'Command to run; without it the task is a lease that a client keeps alive',
      }),
    ),
    ...RUN_POLICY_REQUEST,
    env: Type.Optional(
      variables(
        { maxLength: MAX_ENVIRONMENT_LENGTH, pattern: '^[^\\u0000]*$' },
        'Environment variables of the command, by name. Only the owner of the task and admins can read ' +
          'the values, which are removed when the task ends',
      ),
    ),
    secrets: Type.Optional(
      variables(
        { minLength: 1, maxLength: 100 },
        'Environment variables to set from secrets of the caller: maps the name of each variable to the ' +
          'name of a secret. The values are read when the task is submitted',
      ),
    ),
  },
  {
    [DOCUMENT_ONLY]: {
      dependentRequired: { env: ['command'], secrets: ['command'] },
      anyOf: [
        { required: ['vram_mib'] },
        { properties: { gpu_mode: { const: 'exclusive' } }, required: ['gpu_mode'] },
      ],
    },
    examples: [{ name: 'train-resnet', vram_mib: 16_384, noswap: 0 }],
  },
)
export type TaskRequestBody = Static<typeof TaskRequestSchema>

/** At most 60 s, because proxies often time out after a minute. */
export const wait = Type.Optional(
  Type.String({
    pattern: '^([0-5]?\\d{1,4}|60000)ms$|^([0-5]?\\d|60)s$',
    description: 'Maximum delay of the response, such as 500ms or 30s; at most 60s',
    'x-allowed': 'a duration of at most 60s, such as 500ms or 30s',
  }),
)

/** POST /tasks. */
export const SubmissionQuerySchema = closed({
  wait,
  dry_run: Type.Optional(
    Type.Boolean({
      default: false,
      description: 'Return the expected placement and victims without submitting the task',
    }),
  ),
  forecast: Type.Optional(
    Type.Boolean({
      default: false,
      description: 'With dry_run: also simulate when the task would start, which takes about two seconds',
    }),
  ),
})

/**
 * PATCH /tasks/{id}: a merge patch (RFC 7396). A null label is removed; null labels or groups are emptied.
 */
export const TaskPatchSchema = closed(
  {
    noswap: Type.Optional(noswap),
    priority: Type.Optional(priority),
    labels: Type.Optional(orNull(labelsOf<string | null>({ ...labelValue, type: ['string', 'null'] }))),
    vram_mib: Type.Optional(vramMib),
    groups: Type.Optional(orNull(groups)),
    on_node_loss: Type.Optional(oneOf(ON_NODE_LOSS)),
    stop_grace_seconds: Type.Optional(
      integerOrNull(0, MAX_STOP_GRACE_SECONDS, {
        description: 'Takes effect at the next stop',
      }),
    ),
  },
  { minProperties: 1, examples: [{ noswap: 1 }] },
)
export type TaskPatchBody = Static<typeof TaskPatchSchema>

/** Returns the same schema that also allows null. */
function orNull<T>(schema: TUnsafe<T>): TUnsafe<T | null> {
  const { type, ...rest } = schema as unknown as { readonly type: string }
  return Type.Unsafe({ ...rest, type: [type, 'null'] })
}

/** @param value the rules of each value, a text */
function variables(value: object, description: string): TUnsafe<Readonly<Record<string, string>>> {
  return Type.Unsafe({
    type: 'object',
    maxProperties: MAX_VARIABLES,
    propertyNames: { type: 'string', pattern: VARIABLE_NAME_PATTERN },
    additionalProperties: { type: 'string', ...value },
    description,
  })
}

function labelsOf<V>(value: object): TUnsafe<Readonly<Record<string, V>>> {
  return Type.Unsafe({
    type: 'object',
    maxProperties: TASK_LIMITS.labels,
    propertyNames: labelName,
    additionalProperties: value,
  })
}

const ReasonSchema = Type.Object({
  reason: oneOf(WAIT_REASONS),
  node_ids: list(Type.String(), { description: 'Affected nodes; at most 20' }),
  node_count: count('Number of affected nodes'),
  have_mib: countOrNull('VRAM available to the task on the best of these nodes'),
  need_mib: countOrNull('VRAM that the task needs'),
})

/** Why a task waits: the primary reason and secondary ones. */
export const WaitSchema = Type.Object({
  ...ReasonSchema.properties,
  sentence: Type.String({ description: 'Human-readable explanation with numbers' }),
  retry_at: instantOrNull(
    'When the earliest victim becomes eligible; null: never, or the reason does not depend on victims',
  ),
  queue_position: countOrNull('Position in the pending queue, from 1; null for a placed task'),
  served_before: countOrNull(
    'Entries ahead in the queue of its node, or of the nearest node; null: the task does not wait for VRAM',
  ),
  secondary: list(ReasonSchema),
})
export type WaitBody = Static<typeof WaitSchema>

/** Starvation = (demand − served) / demand, and its three parts (docs/glossary.md). */
export const StarvationSchema = Type.Object({
  total: Type.Number(),
  queue: Type.Number({ description: 'Not started' }),
  swap: Type.Number({ description: 'Started, not resident' }),
  compute: Type.Number({ description: 'Resident, sharing; an estimate on real GPUs' }),
})

export const PlacementSchema = Type.Object({
  node_id: Type.String(),
  node_name: Type.String(),
  gpus: list(count()),
  demand_mib: count('Demand on each GPU, MiB: as declared, or increased by a later growth'),
  residual_mib: count(
    'VRAM that the task keeps on each GPU while it is swapped out, MiB, as last measured; 0 with the ' +
      'swap method driver',
  ),
  memory_mib: countOrNull('Requested host memory limit'),
  memory_limit_mib: countOrNull(
    'Host memory limit that the node enforces: memory_mib, plus the VRAM of the task on all its GPUs if ' +
      'a swap-out copies that VRAM into the process',
  ),
  wants_gpu: Type.Boolean(),
  can_signal: Type.Boolean({
    description:
      'true: the task can signal wants_gpu while it is swapped out; false: wants_gpu is then unknown',
  }),
  idle_since: instant('Time of the last GPU use, or of the last start or swap-in, whichever is later'),
  assigned_at: instant('Time of placement'),
  started_at: instantOrNull('Time of the start on the GPU server in this attempt'),
})

export const TaskSchema = Type.Object(
  {
    id: Type.String(),
    seq: count('Order of submission'),
    name: Type.String(),
    state: oneOf(TASK_STATES),
    residency: oneOf(RESIDENCIES, {
      description: 'none: not on a GPU',
    }),
    held: Type.Boolean({ description: 'true: an operator has put the task on hold' }),
    vram_mib: countOrNull('Demand on each GPU; null: an exclusive task that takes whole GPUs'),
    gpu_count: count(),
    gpu_mode: oneOf(GPU_MODES),
    noswap: oneOf(NOSWAP),
    priority: oneOf(PRIORITIES),
    groups: list(Type.String()),
    labels: Type.Unsafe<Readonly<Record<string, string>>>({
      type: 'object',
      additionalProperties: { type: 'string' },
    }),
    owner: textOrNull('Owner, from the token'),
    command: Type.Unsafe<readonly string[] | null>({
      type: ['array', 'null'],
      items: { type: 'string' },
      description: 'null: a lease',
    }),
    ...RUN_POLICY_VIEW,
    env_names: list(Type.String(), { description: 'Names of the environment variables of the task' }),
    secrets: Type.Unsafe<Readonly<Record<string, string>>>({
      type: 'object',
      additionalProperties: { type: 'string' },
      description: 'Names of the secrets of the task, by environment variable',
    }),
    requeues: count('Requeues after attempts that ended within 10 minutes; limited by max_requeues'),
    attempt: count('Number of assignments so far'),
    swap_outs: count(),
    submitted_at: instant('Time of submission'),
    pending_since: instant(
      'Start of the wait in the queue; for a placed or completed task, start of its last wait',
    ),
    first_started_at: instantOrNull('First start'),
    finished_at: instantOrNull('End'),
    exit_code: countOrNull('Exit code of the command'),
    end_code: oneOfOrNull(END_CODES, 'End code, see docs/events.md; null until the task ends'),
    end_reason: textOrNull('End reason in words; null until the task ends'),
    stopping_since: instantOrNull(
      'Start of the stop; its VRAM counts until its end is reported; null: not being stopped',
    ),
    last_node_id: textOrNull(
      'Node of the last attempt; null: never placed, or ended before this was recorded',
    ),
    placement: objectOrNull(
      PlacementSchema,
      'Current placement; null while the task is pending or completed',
    ),
    start_refusals: list(
      Type.Object({
        node_id: Type.String(),
        node_name: Type.String(),
        cause: oneOf(['host', 'task', 'passing'], {
          description: 'host: the node cannot start any task; task: it cannot start this task',
        }),
        code: Type.String(),
        detail: Type.String({ description: 'Message from the node' }),
        at: instant('Time of the refusal'),
      }),
      { description: 'Nodes that could not start the task and are excluded for now' },
    ),
    preparing: list(
      Type.Object({
        node_id: Type.String(),
        node_name: Type.String(),
        state: oneOf(['preparing', 'prepared']),
        since: instant('When the node was asked to prepare'),
        bytes_done: count('Bytes received so far'),
        bytes_total: countOrNull('Total number of bytes to receive; null: unknown'),
      }),
      {
        description:
          'Nodes that receive the image and files of the task before it starts, or that already have them',
      },
    ),
    image_digest: textOrNull('Digest of the image that the task runs, also after a requeue; null: unknown'),
    start_pause: objectOrNull(
      Type.Object({
        reason: oneOf(PAUSE_REASONS),
        since: instant('Start of the pause'),
        until: instant('When the task can be placed again'),
      }),
      'Set while the task waits after refused or short attempts, or for the result of an earlier attempt ' +
        'that a node has announced; a release ends it',
    ),
    wait: objectOrNull(WaitSchema, 'Why the task waits; null: it does not wait'),
    starvation_percent: StarvationSchema,
    starved_seconds: Type.Number({
      minimum: 0,
      description: 'Unserved GPU time so far: demand − served, s',
    }),
  },
  { $id: 'Task', description: 'A request for GPUs, with its state, placement and wait reason.' },
)
export type TaskBody = Static<typeof TaskSchema>
export type PlacementBody = Static<typeof PlacementSchema>
export const TaskRef = refTo<TaskBody>('Task')

export const TaskPageSchema = page(TaskRef)
export type TaskPage = Static<typeof TaskPageSchema>
export const TaskPathSchema = Type.Object({ task_id: pathId('ID of the task') })

/** DELETE /tasks/{task_id}. */
export const CancelQuerySchema = closed({
  now: Type.Optional(
    Type.Boolean({
      default: false,
      description: 'Send SIGKILL immediately, even to a task that is already being stopped',
    }),
  ),
})

/** GET /tasks/{task_id}. */
export const WaitingQuerySchema = closed({
  wait,
  until: Type.Optional(
    oneOf(['started', 'finished'], { default: 'finished', description: 'Event to wait for' }),
  ),
})

export type WaitingQuery = Static<typeof WaitingQuerySchema>

/**
 * GET /tasks. `running` and `completed` are the lists of the specification, which contain several states.
 */
export const TaskQuerySchema = closed({
  state: Type.Optional(
    oneOf(TASK_STATE_FILTERS, {
      default: 'all',
      description:
        'A list (running, pending, completed, succeeded: exit code 0, failed: failed or lost, all) or an ' +
        'exact state',
    }),
  ),
  priority: Type.Optional(priority),
  node: Type.Optional(
    pathId('Only tasks on this node, by ID or name; for completed tasks, the node of the last attempt'),
  ),
  group: Type.Optional(pathId('Only tasks that may run in this group; 400 if the group is unknown')),
  owner: Type.Optional(pathId('Only tasks of this owner')),
  without_owner: Type.Optional(
    Type.Boolean({
      default: false,
      description:
        'true: only tasks that were submitted without authentication; cannot be combined with `owner`',
    }),
  ),
  label: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 321,
      description: 'Only tasks with this label: a name (team), or a name and value (team=vision)',
    }),
  ),
  q: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 200,
      description:
        'Only tasks whose name contains this text, or whose ID starts with it ' +
        `(${MIN_TASK_ID_PREFIX} or more characters)`,
    }),
  ),
  reason: Type.Optional(
    oneOf(WAIT_REASONS, {
      description:
        'Only tasks with this wait.reason. The controller evaluates up to 1000 tasks per page, for up to ' +
        '250 ms, so a page may be empty and still have a next_cursor',
    }),
  ),
  sort: Type.Optional(
    oneOf(TASK_SORTS, {
      default: 'newest',
      description:
        'newest and oldest: by submission. Only for open tasks: priority (P0 first, then oldest), name, ' +
        'and starved_seconds (highest first; values change, so pages may repeat or miss a task)',
    }),
  ),
  limit: Type.Optional(
    integer(1, 200, { default: 50, description: 'Maximum number of tasks; a page may have fewer' }),
  ),
  cursor: Type.Optional(
    Type.String({ maxLength: PARTS_CURSOR_LIMIT, description: 'next_cursor of the previous page' }),
  ),
  format: Type.Optional(listFormat),
})
export type TaskQuery = Static<typeof TaskQuerySchema>
