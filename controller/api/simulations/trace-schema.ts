import { Type, type Static } from 'typebox'
import { closed, count, instant, oneOf, page, pathId, textOrNull } from '../http/fields-schema.ts'

export const TraceSchema = Type.Object({
  name: Type.String({ description: 'Name; scenarios refer to traces/NAME.trace.jsonl' }),
  format: Type.String({ description: 'Format of the upload' }),
  tasks: count(),
  rows: count('Number of rows in the upload'),
  dropped: Type.Unsafe<Readonly<Record<string, number>>>({
    type: 'object',
    additionalProperties: { type: 'integer' },
    description: 'Number of dropped rows, by reason',
  }),
  bytes: count('Size on disk, bytes'),
  created_by: textOrNull('User who uploaded the trace'),
  created_at: instant('Time of the upload'),
})
export const TracePageSchema = page(TraceSchema)
export type TraceBody = Static<typeof TraceSchema>
export type TracePage = Static<typeof TracePageSchema>
export const TracePathSchema = Type.Object({ trace: pathId('Name of the trace') })
export const TraceQuerySchema = closed({
  name: Type.String({
    pattern: '^[a-z0-9][a-z0-9_-]{0,63}$',
    description: 'Name of the trace; replaces your own trace with the same name',
    'x-allowed': '1 to 64 lowercase letters, digits, dashes and underscores, starting with a letter or digit',
  }),
  format: Type.Optional(
    Type.String({
      maxLength: 40,
      description: 'Format of the upload (docs/trace-format.md); default: a Headroom trace',
    }),
  ),
  activity_model: Type.Optional(
    oneOf(['always-busy', 'serving', 'training'], {
      description: 'GPU activity of tasks without activity data (default always-busy)',
    }),
  ),
})
