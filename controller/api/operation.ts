import type { FastifySchema } from 'fastify'
import { PROBLEMS, type ProblemCode } from './errors.ts'
import { closed } from './schema/fields.ts'
import { ProblemRef } from './schema/problem.ts'

/** The part of a route's schema that a client reads first. */
export interface OperationSchema extends FastifySchema {
  readonly operationId: string
  readonly summary: string
  readonly tags: readonly [Tag]
  readonly response: object
}

export type Tag = 'configuration' | 'nodes' | 'tasks' | 'groups' | 'events' | 'summary' | 'service'

/** `specification`: one of the three calls that the specification defines; everything else is an addition of this project. */
export type Origin = 'specification' | 'project'

const NO_QUERY = closed({})
const OF_EVERY_ROUTE: readonly ProblemCode[] = ['invalid_request', 'internal_error']
const OF_EVERY_BODY: readonly ProblemCode[] = ['body_too_large', 'unsupported_media_type']

/**
 * A route's schema, completed: the problems it may answer, a closed list of query parameters (a parameter that is silently ignored
 * could be a dry run that is not one), and where it comes from. The type stays that of what was given, for the handler's sake.
 */
export function operation<const S extends OperationSchema>(
  schema: S,
  problems: readonly ProblemCode[] = [],
  origin: Origin = 'project',
): S {
  const codes = [...OF_EVERY_ROUTE, ...(schema.body === undefined ? [] : OF_EVERY_BODY), ...problems]
  const responses = codes.map((code) => [PROBLEMS[code].status, problemResponse(codes, PROBLEMS[code].status)])
  return {
    ...schema,
    ...(schema.querystring === undefined ? { querystring: NO_QUERY } : {}),
    response: { ...schema.response, ...Object.fromEntries(responses) },
    ...(origin === 'project' ? { 'x-origin': 'project' } : {}),
  }
}

function problemResponse(codes: readonly ProblemCode[], status: number) {
  const ofStatus = codes.filter((code) => PROBLEMS[code].status === status)
  return {
    description: ofStatus.map((code) => `${PROBLEMS[code].title} (${code})`).join('; '),
    content: { 'application/problem+json': { schema: ProblemRef } },
  }
}
