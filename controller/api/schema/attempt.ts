import { Type, type Static } from 'typebox'
import { BEHIND_REASONS } from '../../engine/epoch-history.ts'
import { PAUSE_REASONS } from '../../engine/node/placement-pause.ts'
import { MAY_BE_LEFT_OUT } from '../optional-body.ts'
import {
  closed,
  count,
  instant,
  integer,
  list,
  mib,
  objectOrNull,
  oneOf,
  pathId,
  textOrNull,
} from './fields.ts'

const AttemptRecordSchema = Type.Object({
  name: textOrNull('Of the task'),
  owner: textOrNull('As the server tells it: a hint, confirm it'),
  command: Type.Unsafe<readonly string[] | null>({ type: ['array', 'null'], items: { type: 'string' } }),
})

export const AttemptSchema = Type.Object({
  task_id: Type.String(),
  attempt: count(),
  node_id: Type.String(),
  node_name: Type.String(),
  gpus: list(Type.Integer()),
  vram_mib: mib('On each GPU, counted as noswap'),
  residency: oneOf(['none', 'resident', 'swapping_out', 'swapped_out', 'swapping_in']),
  since: instant('In quarantine'),
  stopped_by: textOrNull('Who ordered it to be stopped; null: it keeps running'),
  record: objectOrNull(
    AttemptRecordSchema,
    'What its server recorded; null: the server does not answer, or is older than the record',
  ),
})
export type AttemptBody = Static<typeof AttemptSchema>
export const AttemptListSchema = Type.Object({ items: list(AttemptSchema) })
export type AttemptListBody = Static<typeof AttemptListSchema>

export const AttemptPathSchema = Type.Object({
  task_id: pathId('Id of the task'),
  // A path is text, and nothing is converted.
  attempt: Type.String({
    pattern: '^[1-9]\\d{0,9}$',
    maxLength: 10,
    'x-allowed': 'the number of an attempt',
    description: 'Number of the attempt',
  }),
})

const nodeId = Type.Optional(
  Type.String({ maxLength: 200, description: 'Needed only when several nodes name this attempt' }),
)

export const AttemptChoiceSchema = closed({ node_id: nodeId }, { ...MAY_BE_LEFT_OUT })
export type AttemptChoiceBody = Static<typeof AttemptChoiceSchema>

export const AdoptionSchema = closed({
  owner: Type.Unsafe<string | null>({
    type: ['string', 'null'],
    maxLength: 200,
    description: 'Owner of the task, as you confirm it; null: none',
  }),
  name: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 200,
      description: 'Of the task; left out: as the server recorded it',
    }),
  ),
  priority: Type.Optional(integer(0, 4, { description: 'Left out: as the server recorded it' })),
  node_id: nodeId,
})
export type AdoptionBody = Static<typeof AdoptionSchema>

const AheadNodeSchema = Type.Object({
  node_id: Type.String(),
  name: textOrNull('As its hello says; null: not known'),
  reason: oneOf(BEHIND_REASONS),
  epoch: count('The highest that it has obeyed'),
  controller: textOrNull('Process of that controller'),
  event_seq: count('The last event that it has heard of'),
  since: instant('Heard'),
})

export const RecoverySchema = Type.Object({
  placements_paused: Type.Unsafe<(typeof PAUSE_REASONS)[number] | null>({
    type: ['string', 'null'],
    enum: [...PAUSE_REASONS, null],
    description: 'Why nothing is placed; null: tasks are placed',
  }),
  recovery: objectOrNull(
    Type.Object({
      reason: oneOf(['restored', 'loss_accepted']),
      since: instant('The restore, or the accepted loss'),
      nodes_awaited: list(Type.String(), { description: 'Ids of known nodes that have not spoken' }),
    }),
    'null: no recovery is on',
  ),
  nodes_awaited_since_start: list(Type.String(), {
    description: 'Ids of nodes that were up before the start and have not spoken; at most 15 s',
  }),
  nodes_heard: count('Nodes that were heard since the start'),
  store: Type.Object(
    {
      epoch: count('Of this controller: each start, restore and accepted loss raises it'),
      controller: Type.String({ description: 'Process of this controller' }),
      event_seq: count('The last event'),
    },
    { description: 'The mark of the store, with which the marks of nodes are compared' },
  ),
  nodes_ahead: list(AheadNodeSchema, {
    description: 'Nodes that have heard of more than the store has: STORE_BEHIND',
  }),
  result_unknown: list(Type.String(), {
    description: 'Ids of tasks that their node no longer has: they end as lost, result_unknown',
  }),
  quarantined_attempts: count('GET /attempts lists them'),
})
export type RecoveryBody = Static<typeof RecoverySchema>
