/** What a change of the configuration would do: the answer of a dry run (docs/configuration.md). */
import { Type, type Static, type TUnsafe } from 'typebox'
import { closed, count, list, mib, objectOrNull } from './fields.ts'
import { ChangeForecastSchema } from './twin.ts'

export const DryRunQuerySchema = closed({
  dry_run: Type.Optional(
    Type.Boolean({ default: false, description: 'Answer what the change would do, and change nothing' }),
  ),
  forecast: Type.Optional(
    Type.Boolean({
      default: true,
      description: 'With dry_run: whether the live state is run on with and without the change, some seconds',
    }),
  ),
})

export type DryRunQuery = Static<typeof DryRunQuerySchema>

const FiguresSchema = Type.Object({
  effective_schedulable_mib: mib('Physical VRAM × (1 + overcommit percentage / 100)'),
  commit_limit_mib: mib('What may be promised in all'),
  over_committed_mib: mib('Promised beyond the limit; nobody leaves because of it'),
  reserve_deficit_mib: mib(
    'Resident beyond what the safety reserve leaves; nobody leaves because of it alone',
  ),
})

const NodeFiguresSchema = Type.Object({
  overcommit_percent: count('The one that applies'),
  reserve_mib: mib('The one that applies, for each GPU'),
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
  gpu: count('Its index'),
  over_committed_mib: mib('Promised beyond the limit'),
  reserve_deficit_mib: mib('Resident beyond what the reserve leaves'),
  task_ids: list(Type.String(), { description: 'Tasks placed there; at most 20 are named' }),
  task_count: count('How many are placed there'),
})

const StuckSchema = Type.Object({
  task_id: Type.String(),
  node_id: Type.String(),
  gpu: count('The GPU where it would be worst off'),
  need_mib: mib('What it needs there'),
  have_mib: mib('What noswap tasks, foreign memory and the reserve would leave'),
})

const PendingImpactSchema = Type.Object({
  would_fit: count(
    'Fit somewhere then and nowhere now, each on its own: what tasks ahead of it take or reserve is not counted, see next_cycle',
  ),
  would_fit_ids: list(Type.String(), { description: 'At most 20 are named' }),
  infeasible: count('Could never be placed then, and could now'),
  infeasible_ids: list(Type.String(), { description: 'At most 20 are named' }),
  looked_at: count('How many were looked at, in order of submission'),
  of: count('How many wait'),
  cut: Type.Boolean({
    description: 'The pass took too long and was ended: the counts are about those looked at',
  }),
})

const NextCycleSchema = Type.Object({
  starts: count('Pending tasks that would get their GPUs at once'),
  starts_after_swaps: count(
    'Pending tasks for which others would begin to leave; they start when these have left',
  ),
  task_ids: list(Type.String(), { description: 'Of both, in order of submission; at most 20 are named' }),
  swap_outs: count('Placed tasks that would begin to leave, for whomever'),
  swap_out_mib: mib('What these hold on all their GPUs'),
})

export const ImpactSchema = Type.Object({
  total: Type.Object({ before: FiguresSchema, after: FiguresSchema }, { description: 'Over all GPUs' }),
  nodes: list(NodeImpactSchema, {
    description: 'Nodes that would change, the largest change of the limit first; at most 20',
  }),
  node_count: count('How many nodes would change'),
  gpus_over: list(GpuOverSchema, {
    description: 'GPUs that would be over the limit or below their reserve; at most 20',
  }),
  gpu_over_count: count('How many GPUs would be'),
  residency_impossible: list(StuckSchema, {
    description: 'Placed tasks that could not become resident again; at most 20',
  }),
  residency_impossible_count: count('How many tasks could not'),
  pending: PendingImpactSchema,
  next_cycle: objectOrNull(
    NextCycleSchema,
    'What would be decided at once, in order of the queue; null above 10,000 open tasks',
  ),
  forecast: objectOrNull(
    ChangeForecastSchema,
    'The same workload run on with and without the change; null when it was not simulated',
  ),
  forecast_unavailable_because: Type.Unsafe<string | null>({
    type: ['string', 'null'],
    description: 'Why forecast is null',
  }),
})
export type ImpactBody = Static<typeof ImpactSchema>

/** Of an answer to a PUT: there when the change was only tried. */
export const DRY_RUN_PARTS = {
  dry_run: Type.Optional(Type.Boolean({ description: 'true: nothing was changed' })),
  impact: Type.Optional(ImpactSchema as unknown as TUnsafe<ImpactBody>),
}
