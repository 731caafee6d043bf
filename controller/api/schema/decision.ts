import { Type, type Static } from 'typebox'
import { PLACEMENT_STRATEGIES } from '../../domain/config.ts'
import { CHOICE_RULES, DECISION_KINDS, DECISION_RULES, VICTIM_LEVELS } from '../../domain/decision.ts'
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
} from './fields.ts'

const orNull = (values: readonly string[]) => ({ type: ['string', 'null'], enum: [...values, null] })

const GpuConsideredSchema = Type.Object({
  node_id: Type.String(),
  node_name: Type.String(),
  gpu: count('Its index'),
  key1: Type.Integer({
    description:
      'MiB; the least comes first. Fits now: what is free there. After a swap: minus what is free for it once all that moves has left',
  }),
  key2: Type.Integer({
    description: 'MiB; the least comes first where key1 is equal: commit room left (spread: both negative)',
  }),
  chosen: Type.Boolean(),
})

const VictimConsideredSchema = Type.Object({
  task_id: Type.String(),
  task_name: textOrNull('null: decided by an earlier version, which did not keep it'),
  gpu: count('The GPU that was short'),
  level: oneOf(VICTIM_LEVELS, { description: 'Levels are used up in this order' }),
  last_swap_out: countOrNull(
    'swap_number of the decision that last chose it there; null: none did, which counts as the oldest',
  ),
  mib: mib('What its leaving frees there'),
  idle_seconds: Type.Number(),
  chosen_by: Type.Unsafe<string | null>({
    ...orNull(CHOICE_RULES),
    description:
      'Its whole level was needed, or it is among those longest not swapped that move the fewest bytes; null: it stays',
  }),
})

const OtherSchema = Type.Object({
  task_id: Type.String(),
  what: oneOf(['swap_in', 'growth', 'placement']),
  waited_seconds: Type.Number(),
})

export const DecisionSchema = Type.Object(
  {
    number: count('seq of the event that tells it'),
    at: instant('When it was decided'),
    kind: oneOf(DECISION_KINDS),
    rule: oneOf(DECISION_RULES, { description: 'What decided' }),
    sentence: Type.String({ description: 'Who, where and why, for people' }),
    task_id: Type.String({
      description: 'Who is placed, returns or grows; of a swap-out, for whom others leave',
    }),
    task_name: Type.String(),
    node_id: Type.String(),
    node_name: Type.String(),
    gpus: list(count()),
    caused_by: countOrNull('seq of the event that led to it'),
    waited_seconds: numberOrNull('How long it had been waited for'),
    strategy: Type.Unsafe<string | null>({ ...orNull(PLACEMENT_STRATEGIES), description: 'Of a placement' }),
    gpus_considered: list(GpuConsideredSchema, {
      description: 'GPUs that admitted the task, best first; at most 5 and the chosen',
    }),
    gpus_more: Type.Boolean({ description: 'There were more; nobody looked at them' }),
    victim_ids: list(Type.String(), { description: 'Who leaves' }),
    missing: list(Type.Object({ gpu: count(), mib: mib('Missing there') })),
    candidates: list(VictimConsideredSchema, {
      description: 'Who might have left, those that do first; at most 32',
    }),
    candidates_left_out: count('How many more there were'),
    swap_number: countOrNull('By which rounds remember a swap-out: decision in the data of its event'),
    others_waiting: list(OtherSchema, {
      description: 'Who else waits for bytes there, first served first; at most 8',
    }),
    others_left_out: count('How many more there were'),
  },
  {
    $id: 'Decision',
    description: 'A placement, swap or growth: what was looked at, in which order, and what was chosen.',
  },
)
export type DecisionBody = Static<typeof DecisionSchema>
export const DecisionRef = refTo<DecisionBody>('Decision')

export const DecisionPageSchema = Type.Object({
  items: list(DecisionRef),
  next_before: countOrNull('Newest first: send it as before for older ones; null: there are none'),
  next_after: countOrNull('Oldest first: send it as after to go on; null when they were asked newest first'),
})
export type DecisionPage = Static<typeof DecisionPageSchema>

export const DecisionQuerySchema = closed({
  task: Type.Optional(pathId('About this task, by id or name, or it leaves by it')),
  node: Type.Optional(pathId('On this node, by id or name')),
  kind: Type.Optional(oneOf(DECISION_KINDS)),
  after: Type.Optional(
    integer(0, Number.MAX_SAFE_INTEGER, { description: 'Only higher numbers, oldest first' }),
  ),
  before: Type.Optional(
    integer(1, Number.MAX_SAFE_INTEGER, { description: 'Only lower numbers, newest first' }),
  ),
  limit: Type.Optional(integer(1, 200, { default: 50 })),
})
export type DecisionQueryBody = Static<typeof DecisionQuerySchema>

export const DecisionPathSchema = Type.Object({
  number: Type.String({
    pattern: '^[1-9]\\d{0,14}$',
    maxLength: 15,
    'x-allowed': 'the number of a decision',
    description: 'Its number',
  }),
})
