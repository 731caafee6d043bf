import { Type, type Static } from 'typebox'
import { list, refTo } from './fields-schema.ts'

const ProblemErrorSchema = Type.Object({
  pointer: Type.String({
    description:
      'JSON Pointer to the field; for a query or path parameter, a slash and its name; empty for the ' +
      'whole body',
  }),
  detail: Type.String({ description: 'What is wrong: the allowed values and the received value' }),
})

/** RFC 9457, with the extension members `code`, `errors` and `request_id`. */
export const ProblemSchema = Type.Object(
  {
    type: Type.String({ description: 'urn:headroom:problem: followed by the code' }),
    title: Type.String(),
    status: Type.Integer(),
    detail: Type.String(),
    code: Type.String({ description: 'Machine-readable code, listed in docs/rest.md' }),
    errors: list(ProblemErrorSchema),
    request_id: Type.String({
      description: 'ID of the request, also in the X-Request-Id header and in the controller log',
    }),
  },
  { $id: 'Problem', description: 'An error response. The request has changed nothing.' },
)

export type ProblemError = Static<typeof ProblemErrorSchema>
export type Problem = Static<typeof ProblemSchema>
export const ProblemRef = refTo<Problem>('Problem')
