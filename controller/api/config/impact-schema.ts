/** Effects of a configuration change: the response of a dry run (docs/configuration.md). */
import { Type, type Static, type TUnsafe } from 'typebox'
import { closed, count, list, mib, objectOrNull } from '../http/fields-schema.ts'
import { ChangeForecastSchema } from '../twin/schema.ts'

export const DryRunQuerySchema = closed({
  dry_run: Type.Optional(
    Type.Boolean({ default: false, description: 'Return the effects of the change without applying it' }),
  ),
  forecast: Type.Optional(
    Type.Boolean({
      default: true,
      description:
        'With dry_run: also simulate the live state with and without the change (takes a few seconds)',
    }),
  ),
})

export type DryRunQuery = Static<typeof DryRunQuerySchema>

const FiguresSchema = Type.Object({
  effective_schedulable_mib: mib('Physical VRAM × (1 + overcommit percentage / 100)'),
  commit_limit_mib: mib('Total commit limit'),
  over_committed_mib: mib('VRAM committed beyond the limit; it causes no swap-outs'),
  reserve_deficit_mib: mib(
    'Resident VRAM that occupies the safety reserve; on its own it causes no swap-outs',
  ),
})

const NodeFiguresSchema = Type.Object({
  overcommit_percent: count('Effective percentage'),
  reserve_mib: mib('Effective reserve of each GPU'),
  ...FiguresSchema.properties,
})

const NodeImpactSchema = Type.Object({
  node_id: Type.String(),
  name: Type.String(),
  before: NodeFiguresSchema,
  after: NodeFiguresSchema,
})

const GpuOverSchema = Type.Object({
  node_id: Type.String(),
  gpu: count('GPU index'),
  over_committed_mib: mib('VRAM committed beyond the commit limit'),
  reserve_deficit_mib: mib('Resident VRAM that occupies the reserve'),
  task_ids: list(Type.String(), { description: 'IDs of the tasks placed on the GPU; at most 20' }),
  task_count: count('Number of tasks placed on the GPU'),
})

const StuckSchema = Type.Object({
  task_id: Type.String(),
  node_id: Type.String(),
  gpu: count('GPU with the largest shortfall'),
  need_mib: mib('VRAM that the task needs on that GPU'),
  have_mib: mib('VRAM left free by noswap tasks, foreign VRAM and the reserve'),
})

const PendingImpactSchema = Type.Object({
  would_fit: count(
    'Tasks that do not fit on any node now but would fit after the change, each considered alone; ' +
      'next_cycle takes the queue into account',
  ),
  would_fit_ids: list(Type.String(), { description: 'At most 20 IDs' }),
  infeasible: count('Tasks that could no longer be placed on any node'),
  infeasible_ids: list(Type.String(), { description: 'At most 20 IDs' }),
  looked_at: count('Number of tasks examined, in order of submission'),
  of: count('Pending tasks'),
  cut: Type.Boolean({
    description: 'The evaluation reached its time limit; the counts cover only the tasks examined',
  }),
})

const NextCycleSchema = Type.Object({
  starts: count('Pending tasks that would start immediately'),
  starts_after_swaps: count('Pending tasks that would start after other tasks are swapped out for them'),
  task_ids: list(Type.String(), {
    description:
      'IDs of the pending tasks that would start, immediately ' +
      'or after swaps, in order of submission; at most 20',
  }),
  swap_outs: count('Placed tasks that would be swapped out, for any reason'),
  swap_out_mib: mib('VRAM of these tasks on all their GPUs'),
})

const ImpactSchema = Type.Object({
  total: Type.Object(
    { before: FiguresSchema, after: FiguresSchema },
    { description: 'Totals over all GPUs' },
  ),
  nodes: list(NodeImpactSchema, {
    description: 'Nodes that would change, largest change of the limit first; at most 20',
  }),
  node_count: count('Number of nodes that would change'),
  gpus_over: list(GpuOverSchema, {
    description: 'GPUs that would be over the limit or below their reserve; at most 20',
  }),
  gpu_over_count: count('Number of these GPUs, including those not listed'),
  residency_impossible: list(StuckSchema, {
    description: 'Placed tasks that could not become resident again; at most 20',
  }),
  residency_impossible_count: count('Number of these tasks, including those not listed'),
  pending: PendingImpactSchema,
  next_cycle: objectOrNull(
    NextCycleSchema,
    'Immediate decisions, in queue order; null above 10,000 open tasks',
  ),
  forecast: objectOrNull(
    ChangeForecastSchema,
    'Simulation of the workload with and without the change; null: not simulated',
  ),
  forecast_unavailable_because: Type.Unsafe<string | null>({
    type: ['string', 'null'],
    description: 'Why forecast is null',
  }),
})
export type ImpactBody = Static<typeof ImpactSchema>

/** Fields of the response to a PUT with `dry_run`. */
export const DRY_RUN_PARTS = {
  dry_run: Type.Optional(Type.Boolean({ description: 'true: nothing was changed' })),
  impact: Type.Optional(ImpactSchema as unknown as TUnsafe<ImpactBody>),
}
