import { Type, type Static } from 'typebox'
import { PARTS_CURSOR_LIMIT } from '../http/cursor.ts'
import { listFormat } from '../http/csv.ts'
import {
  closed,
  count,
  countOrNull,
  instant,
  instantOrNull,
  integer,
  list,
  mib,
  oneOf,
  pathId,
  textOrNull,
} from '../http/fields-schema.ts'

/** Sort orders of the list; `routes.ts` defines each. */
const OWNER_SORTS = ['lost', 'gpus', 'running', 'pending', 'name'] as const
export type OwnerSort = (typeof OWNER_SORTS)[number]

export const OwnerQuerySchema = closed({
  owner: Type.Optional(pathId('Only this owner')),
  q: Type.Optional(
    Type.String({ minLength: 1, maxLength: 200, description: 'Only owners whose name contains this text' }),
  ),
  sort: Type.Optional(
    oneOf(OWNER_SORTS, {
      default: 'lost',
      description: 'lost (GPU time that open tasks wanted and did not get); gpus; running; pending; name',
    }),
  ),
  order: Type.Optional(oneOf(['asc', 'desc'], { description: 'Default: asc for name, otherwise desc' })),
  limit: Type.Optional(integer(1, 1000, { default: 200 })),
  cursor: Type.Optional(
    Type.String({ maxLength: PARTS_CURSOR_LIMIT, description: 'next_cursor of the previous page' }),
  ),
  format: Type.Optional(listFormat),
})
export type OwnerQuery = Static<typeof OwnerQuerySchema>

const seconds = (description: string) => Type.Number({ minimum: 0, description: `${description}, s` })

const OwnerSchema = Type.Object({
  owner: textOrNull('Name of the token or user; null: tasks without an owner (no authentication required)'),
  tasks: Type.Object({
    running: count('Placed tasks, including swapped-out tasks'),
    swapped_out: count('Placed tasks that are swapped out'),
    pending: count('Pending tasks, including tasks on hold'),
    on_hold: count('Pending tasks that are on hold'),
  }),
  gpus: count('GPUs of the placed tasks, each counted once per task'),
  resident_mib: mib('Demand of the tasks that are resident or being swapped in or out, over all their GPUs'),
  out_mib: mib('Demand of the swapped-out tasks, over all their GPUs'),
  lost: Type.Object(
    {
      queue_seconds: seconds('Waiting for the first start'),
      swap_seconds: seconds('Started but not resident'),
      compute_seconds: seconds('Resident and sharing the GPU'),
      total_seconds: seconds('Sum of the three'),
    },
    { description: 'GPU time that the open tasks have wanted but not received since their submission' },
  ),
  longest_wait_since: instantOrNull(
    'Start of the longest wait among the pending tasks; null: no task is waiting',
  ),
})
export type OwnerBody = Static<typeof OwnerSchema>

export const OwnerListSchema = Type.Object(
  {
    at: instant('Time at which the figures were computed'),
    limits: Type.Object(
      {
        pending_tasks: countOrNull('Maximum number of pending tasks; null: no limit'),
        placed_gpus: countOrNull('Maximum number of GPUs of placed tasks; null: no limit'),
      },
      { description: 'Limits of each owner; tasks without an owner are not limited' },
    ),
    items: list(OwnerSchema),
    next_cursor: textOrNull('Send it as `cursor` for the next page; null on the last page'),
    total: count('Number of matches'),
  },
  {
    $id: 'OwnerList',
    description: 'Owners of open tasks: their usage, waiting tasks and unserved GPU time.',
  },
)
export type OwnerListBody = Static<typeof OwnerListSchema>
