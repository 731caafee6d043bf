import { Type, type Static } from 'typebox'
import { list, refTo } from './fields.ts'

export const ProblemErrorSchema = Type.Object({
  pointer: Type.String({
    description:
      'JSON Pointer to the field; of a query or path parameter, its name after a slash; empty for the whole body',
  }),
  detail: Type.String({ description: 'What is allowed, and what was sent' }),
})

/** RFC 9457, with the members `code`, `errors` and `request_id` of our own. */
export const ProblemSchema = Type.Object(
  {
    type: Type.String({ description: 'urn:headroom:problem: and the code' }),
    title: Type.String(),
    status: Type.Integer(),
    detail: Type.String(),
    code: Type.String({ description: 'For programs: the list is in docs/rest.md' }),
    errors: list(ProblemErrorSchema),
    request_id: Type.String({ description: 'Also in the X-Request-Id header and in the log' }),
  },
  { $id: 'Problem', description: 'Why a request was not carried out. Nothing has changed.' },
)

export type ProblemError = Static<typeof ProblemErrorSchema>
export type Problem = Static<typeof ProblemSchema>
export const ProblemRef = refTo<Problem>('Problem')
