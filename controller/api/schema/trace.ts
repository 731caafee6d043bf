import { Type, type Static } from 'typebox'
import { closed, count, instant, oneOf, page, pathId, textOrNull } from './fields.ts'

export const TraceSchema = Type.Object({
  name: Type.String({ description: 'Scenarios call it traces/NAME.trace.jsonl' }),
  format: Type.String({ description: 'What it was sent as' }),
  tasks: count(),
  rows: count('Of what was sent'),
  dropped: Type.Unsafe<Readonly<Record<string, number>>>({
    type: 'object',
    additionalProperties: { type: 'integer' },
    description: 'How many rows are not in it, by reason',
  }),
  bytes: count('On disk'),
  created_by: textOrNull('Who sent it'),
  created_at: instant('When'),
})
export const TracePageSchema = page(TraceSchema)
export type TraceBody = Static<typeof TraceSchema>
export type TracePage = Static<typeof TracePageSchema>
export const TracePathSchema = Type.Object({ trace: pathId('Name of the trace') })
export const TraceQuerySchema = closed({
  name: Type.String({
    pattern: '^[a-z0-9][a-z0-9_-]{0,63}$',
    description: 'What it is called; one of your own of that name is replaced',
    'x-allowed': '1 to 64 small letters, digits, dashes and underscores that begin with a letter or digit',
  }),
  format: Type.Optional(
    Type.String({
      maxLength: 40,
      description: 'What it is (docs/trace-format.md); left out: a trace of Headroom',
    }),
  ),
  activity_model: Type.Optional(
    oneOf(['always-busy', 'serving', 'training'], {
      description: 'How much of their time its tasks use the GPU, where it does not say (always-busy)',
    }),
  ),
})
