/** The response of a dry run: the placement of a task. */
import { Type, type Static } from 'typebox'
import { count, list, mib, objectOrNull, oneOf, refTo, textOrNull } from '../http/fields-schema.ts'
import { StartForecastSchema } from '../twin/schema.ts'
import { WaitSchema } from './schema.ts'
import { PRIORITIES } from '../../../protocol/units.ts'

/** POST /tasks?dry_run=true. */
export const PlacementPreviewSchema = Type.Object(
  {
    dry_run: Type.Boolean({ description: 'true: nothing was submitted' }),
    starts: oneOf(['now', 'after_swap', 'later'], {
      description: 'now; after_swap: once the victims are swapped out; later: see wait',
    }),
    placement: objectOrNull(
      Type.Object({
        node_id: Type.String(),
        node_name: Type.String(),
        gpus: list(count()),
        demand_mib: count('Demand on each GPU'),
      }),
      'Expected placement; null: the task would wait',
    ),
    victims: list(
      Type.Object({
        task_id: Type.String(),
        name: Type.String(),
        owner: Type.Unsafe<string | null>({ type: ['string', 'null'] }),
        priority: oneOf(PRIORITIES),
        gpu: count('GPU whose shortfall led to this choice'),
        mib: mib('VRAM freed on each of its GPUs'),
      }),
      { description: 'Tasks that would be swapped out for this one' },
    ),
    wait: objectOrNull(WaitSchema, 'Why the task would wait; null: it would not wait'),
    forecast: objectOrNull(
      StartForecastSchema,
      'When the task would start; null: see ' + 'forecast_unavailable_because',
    ),
    forecast_unavailable_because: textOrNull('Why there is no forecast'),
  },
  {
    $id: 'PlacementPreview',
    description: 'Effects that submitting the task now would have. Nothing was submitted.',
  },
)
export type PlacementPreviewBody = Static<typeof PlacementPreviewSchema>
export const PlacementPreviewRef = refTo<PlacementPreviewBody>('PlacementPreview')
