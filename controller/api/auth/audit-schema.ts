import { Type, type Static } from 'typebox'
import {
  closed,
  count,
  countOrNull,
  instant,
  integer,
  moment,
  oneOf,
  page,
  textOrNull,
} from '../http/fields-schema.ts'

const OUTCOMES = ['accepted', 'refused', 'failed'] as const
const outcome = oneOf(OUTCOMES, {
  description: 'failed: the request was accepted, but the controller could not carry it out',
})

const AuditEntrySchema = Type.Object({
  seq: count('1, 2, 3, …'),
  at: instant('When the request was accepted or refused'),
  actor: textOrNull(
    'Name of the token; for a message, the node or client that it names; null: unknown, or no token required',
  ),
  role: textOrNull('Role of the token'),
  token_id: textOrNull('ID of the token; admin-token-file for the token named in the environment'),
  address: textOrNull('Source address'),
  request_id: textOrNull('ID of the request, as in the response and in the controller log'),
  action: Type.String({
    description: 'operationId of the route; `message` for a message from a node or client',
  }),
  target: Type.String({
    description: 'Method and path, without the query; for a message, why it was refused',
  }),
  outcome,
  status: countOrNull('HTTP status; null if accepted'),
  code: textOrNull('Error code; null if accepted'),
  left_out: count('Number of refusals from the same source that were omitted before this entry'),
})
export type AuditEntryBody = Static<typeof AuditEntrySchema>

const text = (description: string) => Type.String({ minLength: 1, maxLength: 200, description })

export const AuditPageSchema = page(AuditEntrySchema)
export type AuditPage = Static<typeof AuditPageSchema>
export const AuditQuerySchema = closed({
  actor: Type.Optional(text('Only entries by this actor')),
  action: Type.Optional(text('Only entries with this action')),
  target: Type.Optional(text('Only entries whose target contains this text')),
  outcome: Type.Optional(outcome),
  since: Type.Optional(moment('Only entries at or after this time')),
  until: Type.Optional(moment('Only entries before this time')),
  cursor: Type.Optional(Type.String({ maxLength: 100 })),
  limit: Type.Optional(integer(1, 200, { default: 50 })),
})
export type AuditQueryBody = Static<typeof AuditQuerySchema>
