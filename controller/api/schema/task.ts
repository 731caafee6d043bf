import { Type, type Static, type TUnsafe } from 'typebox'
import { TASK_DEFAULTS } from '../../engine/commands/commands.ts'
import { END_CODES } from '../../domain/end-reason.ts'
import { WAIT_REASONS } from '../../scheduler/explain.ts'
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
} from './fields.ts'
import { PARTS_CURSOR_LIMIT } from '../cursor.ts'
import { TASK_SORTS } from '../task-order.ts'
import { GroupIdSchema } from './group.ts'

const LINE = { pattern: '^[^\\u0000-\\u001f\\u007f]*$' }

/**
 * More than any node has: such a task is taken, and waits as one that exceeds every node, as it does in a
 * trace.
 */
const MAX_TASK_GPUS = 1024

/** The limits of what a task may carry. */
export const TASK_LIMITS = { labels: 64, groups: 32 } as const

export const TASK_STATES = [
  'pending',
  'assigned',
  'running',
  'unreachable',
  'completed',
  'failed',
  'cancelled',
  'lost',
] as const

const noswap = oneOf([0, 1], {
  description: '0: may be swapped out and use overcommit headroom; 1: stays in physical VRAM',
})
const priority = oneOf([0, 1, 2, 3, 4], { description: '0 is highest (P0)' })
const vramMib = integer(1, 16_777_216, { description: 'Demand on each GPU, MiB' })
const groups = list(GroupIdSchema, {
  maxItems: TASK_LIMITS.groups,
  uniqueItems: true,
  description: 'Groups it may run in, any of them will do; none: the common pool',
})
const labelName = Type.String({
  minLength: 1,
  maxLength: 64,
  ...LINE,
  'x-allowed': 'a text of 1 to 64 characters on one line',
})
const ARGUMENT = { maxLength: 4096, pattern: '^[^\\u0000]*$' }
const labelValue = { type: 'string', maxLength: 256 }

/** POST /tasks. `owner` is no field: it comes from the token. */
export const TaskRequestSchema = closed(
  {
    name: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 200,
        ...LINE,
        'x-allowed': 'a text of 1 to 200 characters on one line',
      }),
    ),
    vram_mib: Type.Optional(
      integer(1, 16_777_216, {
        description: 'Demand on each GPU, MiB; may be left out only when gpu_mode is exclusive',
      }),
    ),
    gpu_count: Type.Optional(
      integer(1, MAX_TASK_GPUS, {
        default: TASK_DEFAULTS.gpuCount,
        description: 'GPUs of one node, all or nothing',
      }),
    ),
    gpu_mode: Type.Optional(oneOf(['shared', 'exclusive'], { default: TASK_DEFAULTS.gpuMode })),
    noswap: Type.Optional(noswap),
    priority: Type.Optional(priority),
    groups: Type.Optional(groups),
    labels: Type.Optional(labelsOf<string>(labelValue)),
    command: Type.Optional(
      list(Type.String({ ...ARGUMENT, 'x-allowed': 'a text of 0 to 4096 characters without NUL' }), {
        [DOCUMENT_ONLY]: { prefixItems: [{ type: 'string', ...ARGUMENT, minLength: 1 }] },
        minItems: 1,
        maxItems: 256,
        'x-allowed': 'an array of 1 to 256 items',
        description: 'What the GPU server runs; without it the task is a lease that a client keeps alive',
      }),
    ),
    max_runtime_seconds: Type.Optional(
      integerOrNull(1, 31_536_000, { default: null, description: 'null: no limit' }),
    ),
    stop_grace_seconds: Type.Optional(
      integerOrNull(0, 3600, {
        default: null,
        description:
          'Between SIGTERM and SIGKILL when it is stopped, at most max_stop_grace_seconds; null: stop_grace_seconds of the cluster',
      }),
    ),
    on_node_loss: Type.Optional(oneOf(['wait', 'fail', 'requeue'], { default: TASK_DEFAULTS.onNodeLoss })),
    max_requeues: Type.Optional(
      integerOrNull(0, 1000, {
        description:
          'Requeues after attempts that ended within 10 minutes of their start; null: no limit; left out: max_requeues of the configuration',
      }),
    ),
  },
  {
    [DOCUMENT_ONLY]: {
      anyOf: [
        { required: ['vram_mib'] },
        { properties: { gpu_mode: { const: 'exclusive' } }, required: ['gpu_mode'] },
      ],
    },
    examples: [{ name: 'train-resnet', vram_mib: 16_384, noswap: 0 }],
  },
)
export type TaskRequestBody = Static<typeof TaskRequestSchema>

/** At most 60 s: what stands between client and server often gives up after a minute. */
const wait = Type.Optional(
  Type.String({
    pattern: '^([0-5]?\\d{1,4}|60000)ms$|^([0-5]?\\d|60)s$',
    description: 'Answer when that has happened, or so much time is over: 500ms, 30s, at most 60s',
    'x-allowed': 'a time of at most 60s, such as 500ms or 30s',
  }),
)

/** POST /tasks. */
export const SubmissionQuerySchema = closed({
  wait,
  dry_run: Type.Optional(
    Type.Boolean({
      default: false,
      description: 'Answer where it would go and who would leave for it, and submit nothing',
    }),
  ),
})

/**
 * PATCH /tasks/{id}: a merge patch (RFC 7396). A label that is null goes away; labels or groups that are null
 * are emptied.
 */
export const TaskPatchSchema = closed(
  {
    noswap: Type.Optional(noswap),
    priority: Type.Optional(priority),
    labels: Type.Optional(orNull(labelsOf<string | null>({ ...labelValue, type: ['string', 'null'] }))),
    vram_mib: Type.Optional(vramMib),
    groups: Type.Optional(orNull(groups)),
    on_node_loss: Type.Optional(oneOf(['wait', 'fail', 'requeue'])),
    stop_grace_seconds: Type.Optional(
      integerOrNull(0, 3600, { description: 'From its next stop on; a stop in progress keeps its grace' }),
    ),
  },
  { minProperties: 1, examples: [{ noswap: 1 }] },
)
export type TaskPatchBody = Static<typeof TaskPatchSchema>

/** The same schema, null allowed too. */
function orNull<T>(schema: TUnsafe<T>): TUnsafe<T | null> {
  const { type, ...rest } = schema as unknown as { readonly type: string }
  return Type.Unsafe({ ...rest, type: [type, 'null'] })
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
  node_ids: list(Type.String(), { description: 'Nodes it concerns; at most 20 are named' }),
  node_count: count('How many nodes it concerns'),
  have_mib: countOrNull('What the task could have on the best of these nodes'),
  need_mib: countOrNull('What it needs'),
})

/** Why a task waits: the first reason that holds, and the others. */
export const WaitSchema = Type.Object({
  ...ReasonSchema.properties,
  sentence: Type.String({ description: 'The same for people, with the numbers' }),
  retry_at: instantOrNull(
    'When the earliest victim becomes eligible; null when none ever will, or for other reasons',
  ),
  queue_position: countOrNull('Place in the pending queue, from 1; null for a placed task'),
  served_before: countOrNull(
    'Entries of the queue of its node that are served before it; of a pending task, on the node where it comes nearest; null: it waits for VRAM of no node',
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
export type Starvation = Static<typeof StarvationSchema>

export const PlacementSchema = Type.Object({
  node_id: Type.String(),
  node_name: Type.String(),
  gpus: list(count()),
  demand_mib: count('On each GPU: declared, or what it grew to'),
  wants_gpu: Type.Boolean(),
  can_signal: Type.Boolean({
    description:
      'It can say that it wants the GPU while it is swapped out; false: what wants_gpu says then is not known',
  }),
  idle_since: instant('The later of its last GPU use and its last start or swap-in'),
  assigned_at: instant('Placed'),
  started_at: instantOrNull('Started by the GPU server in this attempt'),
})

export const TaskSchema = Type.Object(
  {
    id: Type.String(),
    seq: count('Order of submission'),
    name: Type.String(),
    state: oneOf(TASK_STATES),
    residency: oneOf(['none', 'resident', 'swapping_out', 'swapped_out', 'swapping_in'], {
      description: 'none: not on a GPU',
    }),
    held: Type.Boolean({ description: 'An operator holds it back' }),
    vram_mib: countOrNull('Demand on each GPU; null: an exclusive task that takes all a GPU has'),
    gpu_count: count(),
    gpu_mode: oneOf(['shared', 'exclusive']),
    noswap: oneOf([0, 1]),
    priority: oneOf([0, 1, 2, 3, 4]),
    groups: list(Type.String()),
    labels: Type.Unsafe<Readonly<Record<string, string>>>({
      type: 'object',
      additionalProperties: { type: 'string' },
    }),
    owner: textOrNull('From the token'),
    command: Type.Unsafe<readonly string[] | null>({
      type: ['array', 'null'],
      items: { type: 'string' },
      description: 'null: a lease',
    }),
    max_runtime_seconds: countOrNull('null: no limit'),
    stop_grace_seconds: countOrNull('As it was asked for; null: stop_grace_seconds of the cluster'),
    on_node_loss: oneOf(['wait', 'fail', 'requeue']),
    max_requeues: countOrNull(
      'Requeues after attempts that ended within 10 minutes of their start; null: no limit',
    ),
    requeues: count('Such requeues so far'),
    attempt: count('How often it was assigned'),
    swap_outs: count(),
    submitted_at: instant('Accepted'),
    pending_since: instant('Since when it waits in the queue; of a placed or final task, of its last wait'),
    first_started_at: instantOrNull('First start'),
    finished_at: instantOrNull('End'),
    exit_code: countOrNull('Of its command'),
    end_code: oneOfOrNull(END_CODES, 'Why it ended: a code of docs/events.md; null while it has not ended'),
    end_reason: textOrNull('The same in words, of the node or of the code; null while it has not ended'),
    stopping_since: instantOrNull(
      'Since when it is being stopped: its VRAM counts until its server says that it has ended; null: it is not',
    ),
    last_node_id: textOrNull(
      'The node of its last attempt; null when it was never placed, or ended before this was kept',
    ),
    placement: objectOrNull(PlacementSchema, 'Where it sits; null while it is pending or final'),
    start_refusals: list(
      Type.Object({
        node_id: Type.String(),
        node_name: Type.String(),
        cause: oneOf(['host', 'task', 'passing'], {
          description: 'host: the node can start no task; task: it cannot start this one',
        }),
        code: Type.String(),
        detail: Type.String({ description: "The node's own words" }),
        at: instant('Refused'),
      }),
      { description: 'Nodes that could not start it and are no choice for it now' },
    ),
    start_pause: objectOrNull(
      Type.Object({
        reason: oneOf(['START_REFUSED', 'REQUEUE_DELAY']),
        since: instant('Begun'),
        until: instant('From then on it may be placed again'),
      }),
      'Set while it waits after refused or short attempts; releasing it ends that',
    ),
    wait: objectOrNull(WaitSchema, 'Why it waits; null when it does not'),
    starvation_percent: StarvationSchema,
    starved_seconds: Type.Number({
      minimum: 0,
      description: 'GPU time wanted and not given so far: demand − served, s',
    }),
  },
  { $id: 'Task', description: 'A request for GPUs, with its state, place and reason to wait.' },
)
export type TaskBody = Static<typeof TaskSchema>
export type PlacementBody = Static<typeof PlacementSchema>
export const TaskRef = refTo<TaskBody>('Task')

export const TaskPageSchema = page(TaskRef)
export type TaskPage = Static<typeof TaskPageSchema>
export const TaskPathSchema = Type.Object({ task_id: pathId('Id of the task') })

/** DELETE /tasks/{task_id}. */
export const CancelQuerySchema = closed({
  now: Type.Optional(
    Type.Boolean({
      default: false,
      description: 'SIGKILL at once, without the stop grace, also of a task that is being stopped',
    }),
  ),
})

/** GET /tasks/{task_id}. */
export const WaitingQuerySchema = closed({
  wait,
  until: Type.Optional(
    oneOf(['started', 'finished'], { default: 'finished', description: 'What wait is for' }),
  ),
})

export const TASK_STATE_FILTERS = [
  'all',
  'pending',
  'running',
  'completed',
  'assigned',
  'unreachable',
  'failed',
  'cancelled',
  'lost',
] as const

/**
 * GET /tasks. `running` and `completed` are the lists of the specification, which hold several exact states.
 */
export const TaskQuerySchema = closed({
  state: Type.Optional(
    oneOf(TASK_STATE_FILTERS, {
      default: 'all',
      description: 'A list (running, pending, completed, all) or an exact state',
    }),
  ),
  priority: Type.Optional(priority),
  node: Type.Optional(pathId('Placed on this node, by id or name; of a final task: in its last attempt')),
  group: Type.Optional(pathId('May run in this group; 400 when there is no such group and no task names it')),
  owner: Type.Optional(pathId('Submitted by')),
  label: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 321,
      description: 'A label, by its name (team) or with its value (team=vision)',
    }),
  ),
  q: Type.Optional(
    Type.String({ minLength: 1, maxLength: 200, description: 'Part of the name, or the whole id' }),
  ),
  reason: Type.Optional(
    oneOf(WAIT_REASONS, {
      description:
        'Waits for this first (wait.reason). At most 1000 tasks are explained for a page, and for 250 ms: it may hold few tasks, or none, and still have a next_cursor',
    }),
  ),
  sort: Type.Optional(
    oneOf(TASK_SORTS, {
      default: 'newest',
      description:
        'newest and oldest by submission; for open tasks only: priority (P0 first, then oldest), name, and starved_seconds (most first; the figures move, so a task may come twice or be missed between two pages)',
    }),
  ),
  limit: Type.Optional(
    integer(1, 200, { default: 50, description: 'At most so many; a page may hold fewer' }),
  ),
  cursor: Type.Optional(
    Type.String({ maxLength: PARTS_CURSOR_LIMIT, description: 'next_cursor of the page before' }),
  ),
})
export type TaskQuery = Static<typeof TaskQuerySchema>
