import { Type, type Static } from 'typebox'
import { BEHIND_REASONS, PAUSE_REASONS } from '../../model/controller-status.ts'
import { MAY_BE_LEFT_OUT } from '../http/optional-body.ts'
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
} from '../http/fields-schema.ts'

const AttemptRecordSchema = Type.Object({
  name: textOrNull('Task name'),
  owner: textOrNull('As reported by the server, unverified: check it before you adopt the attempt'),
  command: Type.Unsafe<readonly string[] | null>({ type: ['array', 'null'], items: { type: 'string' } }),
})

export const AttemptSchema = Type.Object({
  task_id: Type.String(),
  attempt: count(),
  node_id: Type.String(),
  node_name: Type.String(),
  gpus: list(Type.Integer()),
  vram_mib: mib('VRAM on each GPU, accounted as noswap'),
  residency: oneOf(['none', 'resident', 'swapping_out', 'swapped_out', 'swapping_in']),
  since: instant('Start of the quarantine'),
  stopped_by: textOrNull('Caller that stopped the attempt; null: it keeps running'),
  record: objectOrNull(
    AttemptRecordSchema,
    'Record of the GPU server; null: the server does not respond, or its version keeps no record',
  ),
})
export type AttemptBody = Static<typeof AttemptSchema>
export const AttemptListSchema = Type.Object({ items: list(AttemptSchema) })
export type AttemptListBody = Static<typeof AttemptListSchema>

export const AttemptPathSchema = Type.Object({
  task_id: pathId('ID of the task'),
  // Path parameters stay strings; nothing is converted.
  attempt: Type.String({
    pattern: '^[1-9]\\d{0,9}$',
    maxLength: 10,
    'x-allowed': 'the number of an attempt',
    description: 'Number of the attempt',
  }),
})

const nodeId = Type.Optional(
  Type.String({ maxLength: 200, description: 'Required only if several nodes report this attempt' }),
)

export const AttemptChoiceSchema = closed({ node_id: nodeId }, { ...MAY_BE_LEFT_OUT })
export type AttemptChoiceBody = Static<typeof AttemptChoiceSchema>

export const AdoptionSchema = closed({
  owner: Type.Unsafe<string | null>({
    type: ['string', 'null'],
    maxLength: 200,
    description: 'Confirmed owner of the task; null: none',
  }),
  name: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 200,
      description: 'Task name; default: as recorded by the server',
    }),
  ),
  priority: Type.Optional(integer(0, 4, { description: 'Default: as recorded by the server' })),
  node_id: nodeId,
})
export type AdoptionBody = Static<typeof AdoptionSchema>

const AheadNodeSchema = Type.Object({
  node_id: Type.String(),
  name: textOrNull('Node name in its hello message; null: unknown'),
  reason: oneOf(BEHIND_REASONS),
  epoch: count('Highest epoch that the node has accepted'),
  controller: textOrNull('ID of the controller process with that epoch'),
  event_seq: count('Number of the last event that the node has reported'),
  since: instant('Time of the report'),
})

export const RecoverySchema = Type.Object({
  placements_paused: Type.Unsafe<(typeof PAUSE_REASONS)[number] | null>({
    type: ['string', 'null'],
    enum: [...PAUSE_REASONS, null],
    description: 'Why placements are paused; null: not paused',
  }),
  recovery: objectOrNull(
    Type.Object({
      reason: oneOf(['restored', 'loss_accepted']),
      since: instant('Time of the restore, or of the start with --accept-loss'),
      nodes_awaited: list(Type.String(), { description: 'IDs of known nodes that have not reported yet' }),
    }),
    'null: no recovery is in progress',
  ),
  nodes_awaited_since_start: list(Type.String(), {
    description: 'IDs of nodes that were up before the start and have not reported yet; for at most 15 s',
  }),
  nodes_heard: count('Number of nodes that have reported since the start'),
  store: Type.Object(
    {
      epoch: count('Epoch of this controller; every start and every restore increases it'),
      controller: Type.String({ description: 'ID of this controller process' }),
      event_seq: count('Number of the last event'),
    },
    { description: 'Position of the store, compared with the positions of the nodes' },
  ),
  nodes_ahead: list(AheadNodeSchema, {
    description: 'Nodes that have reported events that the store does not have (STORE_BEHIND)',
  }),
  result_unknown: list(Type.String(), {
    description: 'IDs of tasks missing on their node; they are marked as lost (result_unknown)',
  }),
  quarantined_attempts: count('Number of quarantined attempts; see GET /attempts'),
})
export type RecoveryBody = Static<typeof RecoverySchema>
