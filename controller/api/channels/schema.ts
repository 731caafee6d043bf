import { Type, type Static } from 'typebox'
import { MAX_ARGUMENT_LENGTH, MAX_ARGUMENTS, MAX_WINDOW_SIZE } from '../../../protocol/limits.ts'
import { closed, exactlyOneOf, integer, list, objectOrNull } from '../http/fields-schema.ts'

const ARGUMENT = {
  maxLength: MAX_ARGUMENT_LENGTH,
  pattern: '^[^\\u0000]*$',
  'x-allowed': 'a string without NUL',
}

const TerminalSchema = closed({
  rows: integer(0, MAX_WINDOW_SIZE),
  columns: integer(0, MAX_WINDOW_SIZE),
  kind: Type.String({
    maxLength: 64,
    pattern: '^[A-Za-z0-9._+-]*$',
    description: 'Value of TERM on the client',
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
        description: 'Command to run in the task, in addition to the command of the task',
      }),
    ),
    terminal: Type.Optional(
      objectOrNull(TerminalSchema, 'Allocates a terminal for the command; null or absent: three pipes'),
    ),
    port: Type.Optional(integer(1, 65_535, { description: 'TCP port of the task to connect to' })),
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
        'Path for one connection with `Upgrade: headroom-channel`, which the client must open within 10 ' +
        's. Keep it secret',
    }),
  },
  { $id: 'Channel' },
)
export type ChannelBody = Static<typeof ChannelSchema>
