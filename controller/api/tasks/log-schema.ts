import { Type, type Static } from 'typebox'
import { MAX_LOG_BYTES } from '../../../protocol/limits.ts'
import { closed, count, integer, oneOf } from '../http/fields-schema.ts'

const LOG_STREAMS = ['stdout', 'stderr'] as const

/** A part of the output of a task. */
export const LogSchema = Type.Object(
  {
    task_id: Type.String(),
    attempt: count('Attempt that wrote the output; always the latest attempt of the task'),
    node_id: Type.String({ description: 'Node on which the attempt ran' }),
    stream: oneOf(LOG_STREAMS),
    offset: count(
      'Position of the data in the output, in bytes. If the server no longer has the output at the ' +
        'requested offset, the position is later. If the requested offset is beyond the end, the ' +
        'position is the end, and no data is returned',
    ),
    next_offset: count('Send it as `offset` to continue'),
    data: Type.String({ description: 'Bytes, in base64' }),
    is_ended: Type.Boolean({
      description: 'true: no more output will follow; earlier parts may remain to be read',
    }),
  },
  { $id: 'Log' },
)
export type LogBody = Static<typeof LogSchema>

/** The last event of a stream, with the reason for its end. */
export interface LogEndBody {
  /** The attempt that ended. */
  readonly attempt: number
  /**
   * ended: all output was read. unavailable: the task is final and its server does not return the output.
   * superseded: a new attempt began.
   */
  readonly why: 'ended' | 'unavailable' | 'superseded'
}

const DEFAULT_MAX_BYTES = 65_536

export const LogQuerySchema = closed({
  stream: Type.Optional(oneOf(LOG_STREAMS, { default: 'stdout' })),
  offset: Type.Optional(
    integer(0, 999_999_999_999_999, {
      default: 0,
      description: 'Start at this byte; with follow, a Last-Event-ID header takes precedence',
    }),
  ),
  max_bytes: Type.Optional(
    integer(1, MAX_LOG_BYTES, {
      default: DEFAULT_MAX_BYTES,
      description: 'Maximum number of bytes per response',
    }),
  ),
  follow: Type.Optional(
    Type.Boolean({
      default: false,
      description:
        'Stream the output as `text/event-stream`. Each `output` event has `next_offset` as its `id` and ' +
        'the JSON response body as its `data`. A comment is sent every 15 s, and an `end` event follows ' +
        'the last output.',
    }),
  ),
})
export type LogQuery = Static<typeof LogQuerySchema>
export const LOG_DEFAULTS = { stream: 'stdout', offset: 0, max_bytes: DEFAULT_MAX_BYTES } as const
