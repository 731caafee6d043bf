import { Type, type Static } from 'typebox'
import {
  closed,
  count,
  exactlyOneOf,
  instant,
  integer,
  list,
  numberOrNull,
  oneOf,
  textOrNull,
} from '../http/fields-schema.ts'
import { MAY_BE_LEFT_OUT } from '../http/optional-body.ts'

const MAX_STEPS = 10_000
const MAX_SECONDS = 315_360_000
const MAX_NAME = 200

const SnapshotSchema = Type.Object({
  id: Type.String(),
  name: Type.String(),
  virtual_seconds: Type.Number(),
  events: count(),
  state_hash: Type.String(),
})

export const SessionSchema = Type.Object({
  started_at: instant('Virtual time at the start'),
  now: instant('Current virtual time'),
  virtual_seconds: Type.Number({ description: 'Virtual time since the start' }),
  ends_after_seconds: numberOrNull('Virtual time at which the session stops; null: never'),
  is_paused: Type.Boolean(),
  speed: numberOrNull('Virtual seconds per real second while running; null: as fast as possible'),
  is_seeking: Type.Boolean({ description: 'A seek is in progress' }),
  events: count(
    'Processed entries of the event queue: messages, timers, arrivals, decision cycles. A step processes ' +
      'one more',
  ),
  last_seq: count('seq of the newest event in its log'),
  inputs: count('Requests that changed state'),
  inputs_ahead: count(
    'Inputs that are in the future after a seek back; they are replayed at their time, or discarded if a ' +
      'new input comes first',
  ),
  state_hash: Type.String({
    description: 'Equal for sessions that reached the same point through the same inputs',
  }),
  snapshots: list(SnapshotSchema),
})
export type SessionBody = Static<typeof SessionSchema>

export const SPEED = Type.Unsafe<number | null>({
  type: ['number', 'null'],
  exclusiveMinimum: 0,
  maximum: 1_000_000,
  description: 'Virtual seconds per real second; null: as fast as possible',
  'x-allowed': 'a number above 0 up to 1000000, or null',
})

export const StepBodySchema = closed(
  {
    count: Type.Optional(
      integer(1, MAX_STEPS, { default: 1, description: 'Number of event queue entries to process' }),
    ),
  },
  { ...MAY_BE_LEFT_OUT, examples: [{ count: 1 }] },
)
export const SpeedBodySchema = closed({ speed: SPEED }, { examples: [{ speed: 60 }, { speed: null }] })
export const SeekBodySchema = closed(
  {
    virtual_seconds: Type.Optional(
      Type.Number({
        minimum: 0,
        maximum: MAX_SECONDS,
        description: 'Virtual time since the start, earlier or later than now, to the millisecond',
        'x-allowed': `a number from 0 to ${MAX_SECONDS}`,
      }),
    ),
    snapshot: Type.Optional(
      Type.String({
        maxLength: MAX_NAME,
        description: 'Instead of a time: the ID of a snapshot of the session',
      }),
    ),
  },
  { ...exactlyOneOf('virtual_seconds', 'snapshot'), examples: [{ virtual_seconds: 1800 }] },
)
export const SnapshotBodySchema = closed(
  { name: Type.Optional(Type.String({ minLength: 1, maxLength: MAX_NAME })) },
  { ...MAY_BE_LEFT_OUT, examples: [{ name: 'before the change' }] },
)
export const ForkBodySchema = closed(
  {
    snapshot: Type.Optional(
      Type.String({
        maxLength: MAX_NAME,
        description: 'ID of a snapshot of the session; default: the current state',
      }),
    ),
  },
  { ...MAY_BE_LEFT_OUT, examples: [{}] },
)

export const ForwardedSchema = Type.Unsafe<unknown>({
  description: 'The same as for this route of the live cluster',
})

export const FaultBodySchema = closed(
  {
    fault: Type.Unsafe<Readonly<Record<string, unknown>>>({
      type: 'object',
      additionalProperties: true,
      description:
        'Same format as an entry of `faults` in a scenario (docs/scenario-format.md), without `at`: the ' +
        'fault begins immediately',
    }),
    is_hidden: Type.Optional(
      Type.Boolean({
        default: false,
        description: 'Hides the fault from roles below `admin`; requires the role `admin`',
      }),
    ),
  },
  { examples: [{ fault: { drop: 'all', probability: 0.05, for: '10m' } }] },
)

export const FaultListSchema = Type.Object({
  items: list(
    Type.Object({
      virtual_seconds: Type.Number({
        description: 'Virtual time from the start of the session to the start of the fault',
      }),
      is_hidden: Type.Boolean(),
      origin: oneOf(['scenario', 'injected']),
      by: textOrNull('User who injected the fault'),
      fault: Type.Unsafe<object>({
        type: 'object',
        additionalProperties: true,
        description: '`kind` and its parameters',
      }),
    }),
  ),
})
