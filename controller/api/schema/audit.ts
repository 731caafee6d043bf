import { Type, type Static } from 'typebox'
import { closed, count, countOrNull, instant, integer, moment, oneOf, page, textOrNull } from './fields.ts'

const OUTCOMES = ['accepted', 'refused', 'failed'] as const
const outcome = oneOf(OUTCOMES, {
  description: 'failed: it was let in, and the controller could not carry it out',
})

export const AuditEntrySchema = Type.Object({
  seq: count('1, 2, 3, …'),
  at: instant('When it was let in or refused'),
  actor: textOrNull(
    'Name of the token; of a message, the node or client it names; null: nobody had to say, or nobody known',
  ),
  role: textOrNull('Role of the token'),
  token_id: textOrNull('Id of the token; admin-token-file for the one that the environment names'),
  address: textOrNull('Where it came from'),
  request_id: textOrNull('As in the answer and in the log'),
  action: Type.String({ description: 'operationId of the route, or message' }),
  target: Type.String({ description: 'Method and path, without a query; of a message, why it was refused' }),
  outcome,
  status: countOrNull('Of what was not accepted'),
  code: textOrNull('Of what was not accepted'),
  left_out: count('So many refusals from the same source were left out before this one'),
})
export type AuditEntryBody = Static<typeof AuditEntrySchema>

const text = (description: string) => Type.String({ minLength: 1, maxLength: 200, description })

export const AuditPageSchema = page(AuditEntrySchema)
export type AuditPage = Static<typeof AuditPageSchema>
export const AuditQuerySchema = closed({
  actor: Type.Optional(text('Only of this name')),
  action: Type.Optional(text('Only this operation')),
  target: Type.Optional(text('Part of the target')),
  outcome: Type.Optional(outcome),
  since: Type.Optional(moment('From then on')),
  until: Type.Optional(moment('Before then')),
  cursor: Type.Optional(Type.String({ maxLength: 100 })),
  limit: Type.Optional(integer(1, 200, { default: 50 })),
})
export type AuditQueryBody = Static<typeof AuditQuerySchema>
