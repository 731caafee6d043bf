/**
 * Errors between a program and the controller. Distinguish them by class (or, across copies of this module,
 * by `name`).
 */
import type { ProblemError } from '../../controller/api/http/problem-schema.ts'

/** The controller answered with a problem document (RFC 9457). Nothing was changed. */
export class ApiError extends Error {
  override readonly name = 'ApiError'
  readonly status: number
  /** Machine-readable; docs/rest.md lists the codes. */
  readonly code: string
  readonly detail: string
  /** The invalid fields, each by its JSON Pointer. */
  readonly errors: readonly ProblemError[]
  /** The request ID in the controller's log; null when the answer had none. */
  readonly requestId: string | null
  /** Requested wait before the next attempt; null when absent. */
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

/** The controller could not be reached, the connection broke, or no answer arrived in time. See `cause`. */
export class ConnectionError extends Error {
  override readonly name = 'ConnectionError'
  /** The request was never sent, so it is safe to retry. */
  readonly isUnsent: boolean

  constructor(message: string, isUnsent: boolean, cause?: unknown) {
    super(message, { cause })
    this.isUnsent = isUnsent
  }
}

/** The answer is not from a controller of this version: usually another server on that address. */
export class UnexpectedAnswer extends Error {
  override readonly name = 'UnexpectedAnswer'
}

/** The settings file of the client cannot be used; the message names it. */
export class SettingsFault extends Error {
  override readonly name = 'SettingsFault'
}

/** True for temporary errors: a broken connection, a restarting or overloaded controller. */
export function isPassing(error: unknown): error is Error {
  return (
    error instanceof ConnectionError ||
    (error instanceof ApiError && (error.status === 429 || error.status === 503))
  )
}
