import { Type, type Static } from 'typebox'
import { NOT_READY } from '../../ports/handover.ts'
import {
  closed,
  count,
  countOrNull,
  list,
  objectOrNull,
  oneOfOrNull,
  textOrNull,
} from '../http/fields-schema.ts'
import { ID_LIMIT } from '../http/limits.ts'
import { MAY_BE_LEFT_OUT } from '../http/optional-body.ts'

const StandbySchema = Type.Object({
  name: Type.String({ description: 'CONTROLLER_NAME' }),
  url: Type.String({ description: 'CONTROLLER_ADVERTISED_URL' }),
  version: Type.String({ description: 'Software version' }),
  may_lead: Type.Boolean({ description: 'CONTROLLER_MAY_LEAD' }),
  seen_ms_ago: count('Time since the standby was last seen, ms; it reports every second'),
  lag_ms: countOrNull(
    'Lag behind the leader when the standby was last seen, ms; null: it has not loaded ' + 'the state yet',
  ),
  not_ready: oneOfOrNull(NOT_READY, 'Why the standby cannot take over; null: it can take over'),
})

export const LeaderSchema = Type.Object(
  {
    leader: objectOrNull(
      Type.Object({
        name: Type.String({ description: 'CONTROLLER_NAME' }),
        url: textOrNull(
          'CONTROLLER_ADVERTISED_URL; null: the controller uses SQLite or is becoming the leader',
        ),
      }),
      'The leader; null: no leader',
    ),
    epoch: count('Number of the current term; it increases with every term'),
    standbys: list(StandbySchema, { description: 'Controllers seen in the last 10 seconds, by name' }),
  },
  {
    $id: 'Leader',
    description: 'The controllers that use the store: the leader, and the standbys that can take over.',
  },
)
export type LeaderBody = Static<typeof LeaderSchema>

export const ResignBodySchema = closed(
  {
    to: Type.Optional(
      Type.Unsafe<string | null>({
        type: ['string', 'null'],
        minLength: 1,
        maxLength: ID_LIMIT,
        default: null,
        description: 'Name of the next leader; null: any standby',
      }),
    ),
  },
  { ...MAY_BE_LEFT_OUT, examples: [{ to: 'head-2' }] },
)
