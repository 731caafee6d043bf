import type { FastifySchema } from 'fastify'
import { ROLES, type LeastRole } from '../../model/role.ts'
import type { ProblemCode } from './errors.ts'
import { closed } from './fields-schema.ts'

/** The part of a route's schema that a client reads first. */
export interface OperationSchema extends FastifySchema {
  readonly operationId: string
  readonly summary: string
  readonly tags: readonly [Tag]
  /** The least role that may call it. */
  readonly role: LeastRole
  /**
   * A submitter may call it only for own tasks, operators and admins for all (`or_admin`: operators also only
   * for own tasks; `always`: nor admins); the path has a `task_id`.
   */
  readonly ownersOnly?: true | 'or_admin' | 'always'
  /** Clients repeat it all the time: only refusals of it are audited. */
  readonly routine?: true
  /** Header fields of successful answers, besides those of every answer. */
  readonly answerHeaders?: readonly AnswerHeader[]
  readonly response: object
}

export type AnswerHeader =
  | 'Location'
  | 'ETag'
  | 'Idempotency-Replayed'
  | 'Content-Disposition'
  | 'Content-Encoding'
  | 'Vary'
  | 'Set-Cookie'
  | 'X-Accel-Buffering'

export type Tag =
  | 'configuration'
  | 'nodes'
  | 'tasks'
  | 'groups'
  | 'decisions'
  | 'events'
  | 'summary'
  | 'simulations'
  | 'access'
  | 'service'

/**
 * `specification`: one of the three calls that the specification defines; everything else is an addition of
 * this project.
 */
export type Origin = 'specification' | 'project'

const NO_QUERY = closed({})
const OF_EVERY_ROUTE: readonly ProblemCode[] = [
  'invalid_request',
  'misdirected_request',
  'too_many_requests',
  'headers_too_large',
  'internal_error',
  'state_behind',
]
const OF_EVERY_CLOSED_ROUTE: readonly ProblemCode[] = ['unauthorized', 'forbidden']
const OF_EVERY_BODY: readonly ProblemCode[] = ['body_too_large', 'unsupported_media_type']

/**
 * A route's schema, completed: a closed list of query parameters (one that is silently ignored could be a dry
 * run that is not one), where the route comes from, and the problems it may answer, which only the OpenAPI
 * document reads. The type stays that of what was given, for the handler's sake.
 */
export function operation<const S extends OperationSchema>(
  schema: S,
  problems: readonly ProblemCode[] = [],
  origin: Origin = 'project',
): S {
  const { role, ownersOnly = false } = schema
  return {
    ...schema,
    [ROLE_OF]: role,
    ...(ownersOnly === false ? {} : { [OWNERS_ONLY]: ownersOnly }),
    ...(schema.querystring === undefined ? { querystring: NO_QUERY } : {}),
    ...(schema.answerHeaders === undefined ? {} : { [ANSWER_HEADERS_OF]: schema.answerHeaders }),
    ...(origin === 'project' ? { 'x-origin': 'project' } : {}),
    [PROBLEMS_OF]: [
      ...OF_EVERY_ROUTE,
      ...(role === 'public' ? [] : OF_EVERY_CLOSED_ROUTE),
      ...(schema.body === undefined ? [] : OF_EVERY_BODY),
      ...problems,
    ],
  }
}

/** Key of the header fields in a route's schema. The document has them in its responses. */
export const ANSWER_HEADERS_OF = 'x-answer-headers'

/** Key of the problem codes in a route's schema. */
export const PROBLEMS_OF = 'x-problems'

/** A route that reads the conditions of a request itself; all others refuse them. */
export function isConditional(schema: FastifySchema | undefined): boolean {
  return (
    (schema as { [PROBLEMS_OF]?: readonly ProblemCode[] } | undefined)?.[PROBLEMS_OF]?.includes(
      'precondition_failed',
    ) === true
  )
}

/** Key of the required role in a route's schema, and in the OpenAPI document. */
const ROLE_OF = 'x-role'
const OWNERS_ONLY = 'x-owners-only'
const ROUTINE = 'routine'

export interface Access {
  readonly role: LeastRole
  readonly ownersOnly: boolean | 'or_admin' | 'always'
}

/** @throws Error for a route that does not say who may call it: it must not be served. */
export function accessOf({
  method,
  url,
  schema,
}: {
  readonly method: unknown
  readonly url: string
  readonly schema?: object
}): Access {
  const { [ROLE_OF]: role, [OWNERS_ONLY]: ownersOnly = false } = (schema ?? {}) as {
    [ROLE_OF]?: LeastRole
    [OWNERS_ONLY]?: Access['ownersOnly']
  }
  if (role === undefined || (role !== 'public' && !ROLES.includes(role))) {
    throw new Error(`The route ${String(method)} ${url} does not define which role may call it.`)
  }
  if (ownersOnly !== false && !url.includes(':task_id'))
    throw new Error(
      `The route ${String(method)} ${url} is only for task owners, but its path has no task id.`,
    )
  return { role, ownersOnly }
}

/** Returns the required role of a route that declares one. */
export function roleOf({ schema }: { readonly schema?: object }): LeastRole | undefined {
  return (schema as { [ROLE_OF]?: LeastRole } | undefined)?.[ROLE_OF]
}

export function isRoutine({ schema }: { readonly schema?: object }): boolean {
  return (schema as { [ROUTINE]?: true } | undefined)?.[ROUTINE] === true
}

const FORWARDED = 'x-forwarded'

/** A route that forwards requests: the answering route defines their content. */
export function forwarded<S extends object>(schema: S): S {
  return Object.assign(schema, { [FORWARDED]: true })
}

const FILE_BODY = 'x-file-body'

/** A route whose body is a file of any type, which it reads itself. */
export function takesFile<S extends object>(schema: S): S {
  return Object.assign(forwarded(schema), { [FILE_BODY]: true })
}

export function isFileBody(schema: FastifySchema): boolean {
  return (schema as { [FILE_BODY]?: true })[FILE_BODY] === true
}

export function isForwarded(schema: FastifySchema | undefined): boolean {
  return (schema as { [FORWARDED]?: true } | undefined)?.[FORWARDED] === true
}

/** A route that is not an operation: a file of the page. */
export function openToAll(schema: FastifySchema | undefined): FastifySchema {
  return Object.assign({ ...schema }, { [ROLE_OF]: 'public' })
}
