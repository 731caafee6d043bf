/**
 * Catalogue of all errors of this API (RFC 9457, `application/problem+json`). Clients switch on `code`;
 * `detail` and `errors` are human-readable. `docs/rest.md` lists the same codes.
 */
import type { Refusal } from '../../model/command.ts'
import { StoreFault } from '../../ports/store.ts'
import { BODY_LIMIT_BYTES, URI_PARAMETER_LIMIT } from './limits.ts'
import type { Problem, ProblemError } from './problem-schema.ts'
import { schemaFaults, type SchemaFailure } from './schema-faults.ts'

export const PROBLEMS = {
  invalid_request: { status: 400, title: 'The request is not valid' },
  malformed_json: { status: 400, title: 'The body is not JSON' },
  malformed_request: { status: 400, title: 'The request could not be read' },
  unauthorized: { status: 401, title: 'Authentication required' },
  forbidden: { status: 403, title: 'Permission denied' },
  cross_site_request: { status: 403, title: 'Cross-site request denied' },
  not_found: { status: 404, title: 'Not found' },
  route_not_found: { status: 404, title: 'Route not found' },
  method_not_allowed: { status: 405, title: 'Method not allowed' },
  request_timeout: { status: 408, title: 'The request timed out' },
  conflict: { status: 409, title: 'Conflict with the current state' },
  events_gone: { status: 410, title: 'The events are no longer stored' },
  precondition_failed: { status: 412, title: 'The resource has changed' },
  body_too_large: { status: 413, title: 'The body is too large' },
  uri_too_long: { status: 414, title: 'The path is too long' },
  unsupported_media_type: { status: 415, title: 'Unsupported content type' },
  idempotency_key_reused: { status: 422, title: 'The idempotency key was used for another request' },
  misdirected_request: { status: 421, title: 'Unknown host name' },
  too_many_requests: { status: 429, title: 'Too many requests' },
  too_many_pending: { status: 429, title: 'Too many tasks are pending' },
  too_many_reads: { status: 429, title: 'Too many reads in progress' },
  too_many_streams: { status: 429, title: 'Too many open streams' },
  too_many_simulations: { status: 429, title: 'Too many queued simulations' },
  headers_too_large: { status: 431, title: 'The headers are too large' },
  internal_error: { status: 500, title: 'Internal error in the controller' },
  store_failed: { status: 503, title: 'The store is not available' },
  commit_unknown: { status: 503, title: 'It is unknown whether the change was stored' },
  no_leader: { status: 503, title: 'No controller is the leader' },
  state_behind: { status: 503, title: 'The state of this controller is older than the request allows' },
  uploads_full: { status: 507, title: 'The upload quota is exhausted' },
  provider_unreachable: { status: 503, title: 'The identity provider is unreachable' },
  node_unavailable: { status: 503, title: 'The GPU server does not respond' },
  logs_unavailable: { status: 503, title: 'The task output is currently not available' },
} as const satisfies Record<string, { readonly status: number; readonly title: string }>

export type ProblemCode = keyof typeof PROBLEMS

/** Delay before a client should retry, in seconds. */
const RETRY_AFTER_SECONDS = {
  too_many_pending: 5,
  store_failed: 10,
  commit_unknown: 1,
  no_leader: 1,
} as const

interface ProblemOptions {
  readonly errors?: readonly ProblemError[]
  readonly headers?: Readonly<Record<string, string>>
  readonly cause?: unknown
}

/** Thrown by routes before any change; `error-replies.ts` sends it to the client. */
export class ApiProblem extends Error {
  override readonly name = 'ApiProblem'
  readonly code: ProblemCode
  readonly errors: readonly ProblemError[]
  readonly headers: Readonly<Record<string, string>>

  constructor(code: ProblemCode, detail: string, { errors = [], headers = {}, cause }: ProblemOptions = {}) {
    super(detail, { cause })
    this.code = code
    this.errors = errors
    this.headers = headers
  }

  get status(): number {
    return PROBLEMS[this.code].status
  }
}

/** Returns the response body of a problem. */
export function presentProblem(problem: ApiProblem, requestId: string): Problem {
  const { status, title } = PROBLEMS[problem.code]
  return {
    type: `urn:headroom:problem:${problem.code}`,
    title,
    status,
    detail: problem.message,
    code: problem.code,
    errors: problem.errors,
    request_id: requestId,
  }
}

/** Reports one invalid field; `detail` states the allowed and the received value. */
export function invalidField(pointer: string, detail: string): ApiProblem {
  return invalidFields([{ pointer, detail }])
}

export function invalidFields(errors: readonly ProblemError[]): ApiProblem {
  return new ApiProblem('invalid_request', errors.map((error) => error.detail).join('; '), { errors })
}

export function notFound(
  what: 'node' | 'task' | 'group' | 'token' | 'attempt' | 'secret' | 'revision' | 'decision',
  id: string,
): ApiProblem {
  return new ApiProblem('not_found', notFoundDetail(what, id))
}

/** Returns for example `Task "a1" not found.` */
export function notFoundDetail(what: string, id: string): string {
  return `${what.charAt(0).toUpperCase()}${what.slice(1)} ${JSON.stringify(id)} not found.`
}

/** Converts a refusal of the engine to a problem. */
export function problemOfRefusal(refusal: Refusal): ApiProblem {
  switch (refusal.code) {
    case 'invalid':
      return invalidFields(
        refusal.problems.map(({ field, detail }) => ({
          pointer: pointerTo(field),
          detail: `${field} ${detail}`.trim(),
        })),
      )
    case 'not_found':
      return notFound(refusal.what, refusal.id)
    case 'conflict':
      return new ApiProblem('conflict', refusal.detail)
    case 'key_reused':
      return new ApiProblem(
        'idempotency_key_reused',
        `This Idempotency-Key was already used with a different request body (task ${refusal.taskId}). ` +
          'Use a new key.',
      )
    case 'too_many_pending':
      return tryLater(
        'too_many_pending',
        refusal.owner === null
          ? `Too many tasks are pending (limit: ${refusal.limit}).`
          : `Too many tasks of ${refusal.owner} are pending (limit per owner: ${refusal.limit}).`,
      )
    case 'store_failed':
    case 'commit_unknown':
      return tryLater(refusal.code, refusal.detail)
  }
}

/**
 * Converts any error thrown by a request handler to a problem. Unknown errors become internal errors without
 * details.
 *
 * @param bodyLimit of the route, bytes
 */
export function problemOf(error: unknown, bodyLimit: number = BODY_LIMIT_BYTES): ApiProblem {
  if (error instanceof ApiProblem) return error
  if (error instanceof StoreFault) return tryLater('store_failed', error.message, { cause: error })
  if (isSchemaFailure(error)) return invalidFields(schemaFaults(error))
  if (isFileFault(error))
    return tryLater(
      'store_failed',
      `A file in the data folder cannot be used: ${error.code} on ${error.syscall}.`,
      { cause: error },
    )
  return (
    frameworkProblem(error, bodyLimit) ??
    new ApiProblem('internal_error', 'The controller log has details under this request_id.', {
      cause: error,
    })
  )
}

/** JSON Pointer (RFC 6901) to a field of the body; the empty pointer is the body itself. */
function pointerTo(...path: readonly string[]): string {
  return path
    .map((name) => (name === '' ? '' : `/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`))
    .join('')
}

export function tryLater(
  code: keyof typeof RETRY_AFTER_SECONDS,
  detail: string,
  { headers = {}, ...more }: ProblemOptions = {},
): ApiProblem {
  return new ApiProblem(code, detail, {
    headers: { 'retry-after': String(RETRY_AFTER_SECONDS[code]), ...headers },
    ...more,
  })
}

const FILE_FAULTS: ReadonlySet<unknown> = new Set([
  'ENOSPC',
  'EDQUOT',
  'EROFS',
  'EACCES',
  'EPERM',
  'ENOTDIR',
  'EIO',
  'EMFILE',
  'ENFILE',
])

/**
 * Returns true for file system errors that an operator can fix: a full disk, a read-only folder.
 * Scenarios, traces and simulations are files.
 */
export function isFileFault(
  error: unknown,
): error is Error & { readonly code: string; readonly syscall: string } {
  return (
    error instanceof Error &&
    'syscall' in error &&
    !('address' in error) &&
    'code' in error &&
    FILE_FAULTS.has(error.code)
  )
}

function isSchemaFailure(error: unknown): error is SchemaFailure {
  return error instanceof Error && 'validation' in error && Array.isArray(error.validation)
}

/** Errors that Fastify and its plugins raise before a route is reached. */
function frameworkProblem(error: unknown, bodyLimit: number): ApiProblem | null {
  if (!(error instanceof Error)) return null
  const { code, statusCode } = error as Error & { readonly code?: unknown; readonly statusCode?: unknown }
  switch (code) {
    case 'FST_ERR_CTP_BODY_TOO_LARGE':
      return new ApiProblem(
        'body_too_large',
        `The body is larger than the limit of ${bodyLimit} bytes (${bodyLimit / 1024} KiB).`,
      )
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
      return new ApiProblem(
        'unsupported_media_type',
        'Send the body as JSON, with the header Content-Type: application/json.',
      )
    case 'FST_ERR_MAX_PARAM_LENGTH':
      return new ApiProblem(
        'uri_too_long',
        `A path segment is longer than ${URI_PARAMETER_LIMIT} characters.`,
      )
    case 'FST_ERR_BAD_URL':
      return new ApiProblem('malformed_request', 'The path contains invalid percent-encoding.')
  }
  const isClientFault = typeof statusCode === 'number' && statusCode >= 400 && statusCode < 500
  return isClientFault ? new ApiProblem('malformed_request', error.message, { cause: error }) : null
}
