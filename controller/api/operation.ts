import type { FastifySchema } from 'fastify'
import type { ProblemCode } from './errors.ts'
import { closed } from './schema/fields.ts'

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
 * A route's schema, completed: a closed list of query parameters (one that is silently ignored could be a dry run that is not one),
 * where the route comes from, and the problems it may answer, which only the OpenAPI document reads. The type stays that of what was
 * given, for the handler's sake.
 */
export function operation<const S extends OperationSchema>(
  schema: S,
  problems: readonly ProblemCode[] = [],
  origin: Origin = 'project',
): S {
  return {
    ...schema,
    ...(schema.querystring === undefined ? { querystring: NO_QUERY } : {}),
    ...(origin === 'project' ? { 'x-origin': 'project' } : {}),
    [PROBLEMS_OF]: [...OF_EVERY_ROUTE, ...(schema.body === undefined ? [] : OF_EVERY_BODY), ...problems],
  }
}

/** Where the codes stand in a route's schema. */
export const PROBLEMS_OF = 'x-problems'
