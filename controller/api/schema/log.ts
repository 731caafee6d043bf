import { Type, type Static } from 'typebox'
import { MAX_LOG_BYTES } from '../../../protocol/schema.ts'
import { closed, count, integer, oneOf } from './fields.ts'

export const LOG_STREAMS = ['stdout', 'stderr'] as const

/** A piece of what a task wrote. */
export const LogSchema = Type.Object(
  {
    task_id: Type.String(),
    attempt: count('The attempt that wrote it: the latest'),
    node_id: Type.String({ description: 'Where it ran' }),
    stream: oneOf(LOG_STREAMS),
    offset: count(
      'Where data begins, in bytes; later than asked for when the server no longer keeps what was before',
    ),
    next_offset: count('Send it as offset to go on'),
    data: Type.String({ description: 'Bytes, in base64' }),
    is_ended: Type.Boolean({
      description: 'Nothing more will be written; data may still be one piece of several',
    }),
  },
  { $id: 'Log' },
)
export type LogBody = Static<typeof LogSchema>

/** The last event of a stream: why nothing follows. */
export const LogEndSchema = Type.Object({
  attempt: count('The attempt that ended'),
  /**
   * ended: all was read. unavailable: the task is final and its server does not give its output. superseded:
   * a new attempt began.
   */
  why: oneOf(['ended', 'unavailable', 'superseded']),
})
export type LogEndBody = Static<typeof LogEndSchema>

const DEFAULT_MAX_BYTES = 65_536

export const LogQuerySchema = closed({
  stream: Type.Optional(oneOf(LOG_STREAMS, { default: 'stdout' })),
  offset: Type.Optional(
    integer(0, 999_999_999_999_999, {
      default: 0,
      description: 'From this byte on; a Last-Event-ID header wins when following',
    }),
  ),
  max_bytes: Type.Optional(
    integer(1, MAX_LOG_BYTES, { default: DEFAULT_MAX_BYTES, description: 'At most so many bytes at a time' }),
  ),
  follow: Type.Optional(
    Type.Boolean({
      default: false,
      description:
        'Answers text/event-stream: `output` events whose id is next_offset, whose data is this schema; a comment every 15 s; `end` when nothing follows',
    }),
  ),
})
export type LogQuery = Static<typeof LogQuerySchema>
export const LOG_DEFAULTS = { stream: 'stdout', offset: 0, max_bytes: DEFAULT_MAX_BYTES } as const
