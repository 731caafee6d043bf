import { Type, type Static } from 'typebox'
import { MAX_ARGUMENT_LENGTH, MAX_ARGUMENTS, MAX_WINDOW_SIZE } from '../../../protocol/limits.ts'
import { closed, exactlyOneOf, integer, list, objectOrNull } from '../http/fields-schema.ts'

const ARGUMENT = {
  maxLength: MAX_ARGUMENT_LENGTH,
  pattern: '^[^\\u0000]*$',
  'x-allowed': 'a text without NUL',
}

const TerminalSchema = closed({
  rows: integer(0, MAX_WINDOW_SIZE),
  columns: integer(0, MAX_WINDOW_SIZE),
  kind: Type.String({
    maxLength: 64,
    pattern: '^[A-Za-z0-9._+-]*$',
    description: 'TERM of the client',
    'x-allowed': 'letters, digits, and . _ + -',
  }),
})

/** POST /tasks/{task_id}/channels. */
export const ChannelRequestSchema = closed(
  {
    command: Type.Optional(
      list(Type.String(ARGUMENT), {
        minItems: 1,
        maxItems: MAX_ARGUMENTS,
        description: 'Command to run in the task, in addition to its own',
      }),
    ),
    terminal: Type.Optional(
      objectOrNull(TerminalSchema, 'Allocates a terminal for the command; null or absent: three pipes'),
    ),
    port: Type.Optional(integer(1, 65_535, { description: 'Connects to this TCP port of the task' })),
  },
  { ...exactlyOneOf('command', 'port'), examples: [{ command: ['nvidia-smi'] }, { port: 8888 }] },
)
export type ChannelRequestBody = Static<typeof ChannelRequestSchema>

export const ChannelSchema = Type.Object(
  {
    task_id: Type.String(),
    attempt: Type.Integer({ minimum: 1 }),
    node_id: Type.String(),
    node_name: Type.String(),
    path: Type.String({
      description:
        'Path to which the client connects within 10 s, once, with `Upgrade: headroom-channel`. Keep it ' +
        'secret',
    }),
  },
  { $id: 'Channel' },
)
export type ChannelBody = Static<typeof ChannelSchema>
