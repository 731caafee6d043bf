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
} from './fields.ts'
import { MAY_BE_LEFT_OUT } from '../optional-body.ts'

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
  started_at: instant('What the virtual clock said at the start'),
  now: instant('What it says'),
  virtual_seconds: Type.Number({ description: 'Virtual time since the start' }),
  ends_after_seconds: numberOrNull('It stops by itself then; null: never'),
  is_paused: Type.Boolean(),
  speed: numberOrNull('Virtual time per real time while it goes on; null: as fast as it can'),
  is_seeking: Type.Boolean({ description: 'On its way to where a seek has sent it' }),
  events: count(
    'Entries of the event queue that were taken: messages, timers, arrivals, cycles of decisions. A step takes one more',
  ),
  last_seq: count('Seq of the newest event in its log'),
  inputs: count('Requests that have changed something'),
  inputs_ahead: count(
    'Those that lie ahead since it went back: they are done again when time comes to them, and forgotten when another comes before',
  ),
  state_hash: Type.String({ description: 'Equal when it has come to the same point in the same way' }),
  snapshots: list(SnapshotSchema),
})
export type SessionBody = Static<typeof SessionSchema>

export const SPEED = Type.Unsafe<number | null>({
  type: ['number', 'null'],
  exclusiveMinimum: 0,
  maximum: 1_000_000,
  description: 'Virtual time per real time; null: as fast as it can',
  'x-allowed': 'a number above 0 up to 1000000, or null',
})

export const StepBodySchema = closed(
  { count: Type.Optional(integer(1, MAX_STEPS, { default: 1, description: 'Entries of the event queue' })) },
  { ...MAY_BE_LEFT_OUT, examples: [{ count: 1 }] },
)
export const SpeedBodySchema = closed({ speed: SPEED }, { examples: [{ speed: 60 }, { speed: null }] })
export const SeekBodySchema = closed(
  {
    virtual_seconds: Type.Optional(
      Type.Number({
        minimum: 0,
        maximum: MAX_SECONDS,
        description: 'Virtual time since the start, back or forth, to the millisecond',
        'x-allowed': `a number from 0 to ${MAX_SECONDS}`,
      }),
    ),
    snapshot: Type.Optional(
      Type.String({
        maxLength: MAX_NAME,
        description: 'Or the id of one of its snapshots, with what had been done then',
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
      Type.String({ maxLength: MAX_NAME, description: 'Id of one of its snapshots; left out: where it is' }),
    ),
  },
  { ...MAY_BE_LEFT_OUT, examples: [{}] },
)

export const ForwardedSchema = Type.Unsafe<unknown>({
  description: 'As the same route of the production interface',
})

export const FaultBodySchema = closed(
  {
    fault: Type.Unsafe<Readonly<Record<string, unknown>>>({
      type: 'object',
      additionalProperties: true,
      description:
        'As an entry of `faults` in a scenario (docs/scenario-format.md), without `at`: it begins now',
    }),
    is_hidden: Type.Optional(
      Type.Boolean({
        default: false,
        description: 'No role below admin can read of it; takes the role admin',
      }),
    ),
  },
  { examples: [{ fault: { drop: 'all', probability: 0.05, for: '10m' } }] },
)

export const FaultListSchema = Type.Object({
  items: list(
    Type.Object({
      virtual_seconds: Type.Number({ description: 'When it begins, since the start' }),
      is_hidden: Type.Boolean(),
      origin: oneOf(['scenario', 'injected']),
      by: textOrNull('Who injected it'),
      fault: Type.Unsafe<object>({
        type: 'object',
        additionalProperties: true,
        description: '`kind` and its figures',
      }),
    }),
  ),
})
