/**
 * What can go wrong between a program and the controller. Each is told apart by its class (or, across copies
 * of this module, its `name`).
 */
import type { ProblemError } from '../../controller/api/schema/problem.ts'

/** The controller answered with a problem document (RFC 9457). Nothing has changed. */
export class ApiError extends Error {
  override readonly name = 'ApiError'
  readonly status: number
  /** For programs; the list is in docs/rest.md. */
  readonly code: string
  readonly detail: string
  /** The fields that are wrong, each by its JSON Pointer. */
  readonly errors: readonly ProblemError[]
  /** Stands in the controller's log as well; null when the answer had none. */
  readonly requestId: string | null
  /** How long the controller asks to wait before the next try; null when it says nothing. */
  readonly retryAfterSeconds: number | null

  constructor(problem: {
    readonly status: number
    readonly code: string
    readonly detail: string
    readonly errors: readonly ProblemError[]
    readonly requestId: string | null
    readonly retryAfterSeconds: number | null
  }) {
    super(problem.detail)
    this.status = problem.status
    this.code = problem.code
    this.detail = problem.detail
    this.errors = problem.errors
    this.requestId = problem.requestId
    this.retryAfterSeconds = problem.retryAfterSeconds
  }
}

/**
 * The controller could not be reached, or the connection broke, or no answer came in time. `cause` has more.
 */
export class ConnectionError extends Error {
  override readonly name = 'ConnectionError'
  /** The request never left this program: asking again cannot do anything twice. */
  readonly isUnsent: boolean

  constructor(message: string, isUnsent: boolean, cause?: unknown) {
    super(message, { cause })
    this.isUnsent = isUnsent
  }
}

/**
 * Something answered, and it does not speak as a controller of this version does: most often another server
 * on that address.
 */
export class UnexpectedAnswer extends Error {
  override readonly name = 'UnexpectedAnswer'
}

/**
 * It goes away by itself: a broken connection, a controller that restarts, a server that is full for the
 * moment.
 */
export function isPassing(error: unknown): error is Error {
  return (
    error instanceof ConnectionError ||
    (error instanceof ApiError && (error.status === 429 || error.status === 503))
  )
}
