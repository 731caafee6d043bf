import { Type, type Static } from 'typebox'
import { PARTS_CURSOR_LIMIT } from '../http/cursor.ts'
import { listFormat } from '../http/csv.ts'
import {
  closed,
  count,
  instant,
  integer,
  list,
  numberOrNull,
  oneOf,
  pathId,
  textOrNull,
} from '../http/fields-schema.ts'

/** Sort orders of a list of GPUs; `gpu-list.ts` defines each. */
const GPU_SORTS = [
  'registered',
  'name',
  'utilization',
  'used',
  'out',
  'swap_outs',
  'copy',
  'starvation',
  'lost',
] as const
export type GpuSort = (typeof GPU_SORTS)[number]

/** Maximum number of GPUs in one answer. */
const MAX_GPUS = 10_000

export const GpuQuerySchema = closed({
  node: Type.Optional(pathId('Only GPUs of this node, by ID or name')),
  group: Type.Optional(pathId('Only GPUs of nodes in this group; 400 if the group does not exist')),
  sort: Type.Optional(
    oneOf(GPU_SORTS, {
      default: 'registered',
      description:
        'registered (node, then index); name (of the node, then index); utilization; used (share of ' +
        'physical VRAM); out (demand of swapped-out tasks); swap_outs, copy, starvation and lost (in the ' +
        'last hour)',
    }),
  ),
  order: Type.Optional(
    oneOf(['asc', 'desc'], { description: 'Default: asc for registered and name, otherwise desc' }),
  ),
  limit: Type.Optional(integer(1, MAX_GPUS, { default: 1000 })),
  cursor: Type.Optional(
    Type.String({ maxLength: PARTS_CURSOR_LIMIT, description: 'next_cursor of the previous page' }),
  ),
  format: Type.Optional(listFormat),
})
export type GpuQuery = Static<typeof GpuQuerySchema>

const numbers = (description: string) => list(count(), { description })
const unknowns = (description: string) => list(numberOrNull('null: unknown'), { description })

const RangeSchema = Type.Object({ from: instant('Start'), to: instant('End') })

/** All columns have the same length: one entry for each GPU. */
const GpuColumnsSchema = Type.Object(
  {
    node: numbers('Position of its node in `nodes`'),
    index: numbers('Index on its node'),
    model: numbers('Position of its model in `models`'),
    tasks: numbers('Tasks placed on the GPU, resident or not'),
    physical_mib: numbers('Physical VRAM, MiB'),
    used_mib: numbers('Resident plus foreign VRAM, MiB'),
    resident_mib: numbers('Used by tasks that are resident or being swapped in or out, MiB'),
    out_mib: numbers('Demand of the swapped-out tasks, MiB'),
    utilization_percent: unknowns('Share of the last minute with at least one running kernel, rounded'),
    starvation_percent: unknowns('(demand − served) / demand over the last hour, rounded'),
    swap_outs: unknowns('Swap-outs that ended in the last hour'),
    copy_seconds: unknowns('Total duration of the swap-out and swap-in copies that ended in the last hour'),
    lost_seconds: unknowns('GPU time that its tasks wanted but did not get in the last hour'),
  },
  { description: 'One entry for each GPU of the page, in order' },
)
export type GpuColumns = Static<typeof GpuColumnsSchema>

export const GpuListSchema = Type.Object(
  {
    at: instant('Time of the response'),
    minute: { ...RangeSchema, description: 'Range of utilization_percent' },
    hour: {
      ...RangeSchema,
      description: 'Range of the hourly values; starts up to one interval of the series earlier',
    },
    nodes: list(
      Type.Object({
        node_id: Type.String(),
        name: Type.String(),
        status: oneOf(['up', 'suspect', 'unreachable']),
        cordoned: Type.Boolean(),
      }),
      { description: 'Nodes of these GPUs' },
    ),
    models: list(Type.String(), { description: 'Models of these GPUs' }),
    columns: GpuColumnsSchema,
    next_cursor: textOrNull('Send it as `cursor` for the next page; null on the last page'),
    total: count('Number of matches'),
  },
  { $id: 'GpuList', description: 'GPUs with their VRAM and their values for the last minute and hour.' },
)
export type GpuListBody = Static<typeof GpuListSchema>
