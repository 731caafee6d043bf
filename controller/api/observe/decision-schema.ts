import { Type, type Static } from 'typebox'
import { PLACEMENT_STRATEGIES } from '../../model/config.ts'
import { CHOICE_RULES, DECISION_KINDS, DECISION_RULES, VICTIM_LEVELS } from '../../model/decision.ts'
import {
  closed,
  count,
  countOrNull,
  instant,
  integer,
  list,
  mib,
  numberOrNull,
  oneOf,
  pathId,
  refTo,
  textOrNull,
} from '../http/fields-schema.ts'

const orNull = (values: readonly string[]) => ({ type: ['string', 'null'], enum: [...values, null] })

const GpuConsideredSchema = Type.Object({
  node_id: Type.String(),
  node_name: Type.String(),
  gpu: count('GPU index'),
  key1: Type.Integer({
    description:
      'Primary score in MiB, lowest first. If the task fits now: the free VRAM. If it fits after a swap: ' +
      'the VRAM available once all moves are complete, as a negative number',
  }),
  key2: Type.Integer({
    description:
      'Tie-breaker in MiB, lowest first: remaining commit room. With the strategy `spread`, both scores ' +
      'are negative',
  }),
  chosen: Type.Boolean(),
})

const VictimConsideredSchema = Type.Object({
  task_id: Type.String(),
  task_name: textOrNull(
    'null: the decision was recorded by an earlier version, which did not store the name',
  ),
  gpu: count('The GPU with the shortfall'),
  level: oneOf(VICTIM_LEVELS, {
    description: 'Level of the victim; a level is used only when the earlier ones are exhausted',
  }),
  above_request: Type.Boolean({
    description: 'true: the task used more VRAM than it requested and therefore comes first in its level',
  }),
  last_swap_out: countOrNull(
    'swap_number of the decision that last chose the task on that GPU; null: never chosen, ranks as the ' +
      'oldest',
  ),
  mib: mib('VRAM that its swap-out frees on that GPU'),
  idle_seconds: Type.Number(),
  chosen_by: Type.Unsafe<string | null>({
    ...orNull(CHOICE_RULES),
    description:
      'Why the task was chosen: all tasks of its level were needed, or it was swapped out longest ago ' +
      'and, among equals, moves the fewest bytes; null: not chosen',
  }),
})

const OtherSchema = Type.Object({
  task_id: Type.String(),
  what: oneOf(['swap_in', 'growth', 'placement']),
  waited_seconds: Type.Number(),
})

export const DecisionSchema = Type.Object(
  {
    number: count('seq of the event that records the decision'),
    at: instant('When the decision was made'),
    kind: oneOf(DECISION_KINDS),
    rule: oneOf(DECISION_RULES, { description: 'The deciding rule' }),
    sentence: Type.String({ description: 'Human-readable explanation' }),
    task_id: Type.String({
      description: 'Task that is placed, swapped in or grows; for a swap-out, the task that preempts',
    }),
    task_name: Type.String(),
    node_id: Type.String(),
    node_name: Type.String(),
    gpus: list(count()),
    caused_by: countOrNull('seq of the event that caused the decision'),
    waited_seconds: numberOrNull('Waiting time of the task, s'),
    strategy: Type.Unsafe<string | null>({
      ...orNull(PLACEMENT_STRATEGIES),
      description: 'Placement strategy',
    }),
    gpus_considered: list(GpuConsideredSchema, {
      description: 'GPUs that admit the task, best first; at most 5 plus the chosen ones',
    }),
    gpus_more: Type.Boolean({ description: 'true: there were more GPUs, which were not evaluated' }),
    victim_ids: list(Type.String(), { description: 'Tasks that this decision swaps out' }),
    missing: list(Type.Object({ gpu: count(), mib: mib('Shortfall on the GPU') })),
    candidates: list(VictimConsideredSchema, {
      description: 'Candidate victims, chosen ones first; at most 32',
    }),
    candidates_left_out: count('Number of candidates not listed'),
    swap_number: countOrNull(
      'Number of this swap-out in the swap rounds; the same as `decision` in the event data',
    ),
    others_waiting: list(OtherSchema, {
      description: 'Other tasks waiting for VRAM on the node, in order of service; at most 8',
    }),
    others_left_out: count('Number of waiting tasks not listed'),
  },
  {
    $id: 'Decision',
    description: 'A placement, swap or growth: the candidates, their ranking and the choice.',
  },
)
export type DecisionBody = Static<typeof DecisionSchema>
export const DecisionRef = refTo<DecisionBody>('Decision')

export const DecisionPageSchema = Type.Object({
  items: list(DecisionRef),
  next_before: countOrNull('Newest first: send it as `before` for older decisions; null: no older decisions'),
  next_after: countOrNull('Oldest first: send it as `after` to continue; null for newest first'),
})
export type DecisionPage = Static<typeof DecisionPageSchema>

export const DecisionQuerySchema = closed({
  task: Type.Optional(pathId('Only decisions about this task or with this task as a victim, by ID or name')),
  node: Type.Optional(pathId('Only decisions on this node, by ID or name')),
  kind: Type.Optional(oneOf(DECISION_KINDS)),
  after: Type.Optional(
    integer(0, Number.MAX_SAFE_INTEGER, { description: 'Only decisions with a higher number, oldest first' }),
  ),
  before: Type.Optional(
    integer(1, Number.MAX_SAFE_INTEGER, { description: 'Only decisions with a lower number, newest first' }),
  ),
  limit: Type.Optional(integer(1, 200, { default: 50 })),
})
export type DecisionQueryBody = Static<typeof DecisionQuerySchema>

export const DecisionPathSchema = Type.Object({
  number: Type.String({
    pattern: '^[1-9]\\d{0,14}$',
    maxLength: 15,
    'x-allowed': 'the number of a decision',
    description: 'Decision number',
  }),
})
