/** What the exit code says (docs/cli.md, docs/simulation-model.md). */
export const EXIT_OK = 0
/**
 * It ran and did not succeed: an assertion does not hold, an answer is not the expected one, an invariant
 * broke.
 */
export const EXIT_FAILED = 1
/**
 * The command line or a file it names cannot be used; the message names option, field or line. Nothing was
 * done.
 */
export const EXIT_USAGE = 2
/** No controller (`conformance`: no broker) answers at that address. */
export const EXIT_NO_CONNECTION = 3
/** There is no such task, node or group. */
export const EXIT_NOT_FOUND = 4
/** The state of the cluster does not allow it; nothing was done. */
export const EXIT_CONFLICT = 5
/** A run came out other than its recorded digest says; two results that were compared are not the same. */
export const EXIT_DIGEST_MISMATCH = 6

/** The controller does not know who asks, or he may not do it; nothing was done. */
export const EXIT_DENIED = 7

/** What was asked cannot be done, and the message, one line, says what to change. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

/** It cannot start, and the message says why in one line. */
export class StartFault extends Error {
  override readonly name = 'StartFault'
}

/** It did not succeed, and the message, one line, says all there is to say. */
export class CommandFailure extends Error {
  override readonly name = 'CommandFailure'
  readonly exitCode: number

  constructor(message: string, exitCode = EXIT_FAILED) {
    super(message)
    this.exitCode = exitCode
  }
}

/** Errors that mean "change the input"; by name, so that nothing heavy is loaded to recognise them. */
const USAGE_ERRORS: ReadonlySet<string> = new Set([
  'UsageError',
  'ScenarioError',
  'TraceError',
  'SettingsError',
  'RecordingError',
])

export function isUsageError(error: unknown): error is Error {
  return error instanceof Error && USAGE_ERRORS.has(error.name)
}

const CODES_OF_PROBLEMS: Readonly<Record<string, number>> = {
  invalid_request: EXIT_USAGE,
  unauthorized: EXIT_DENIED,
  forbidden: EXIT_DENIED,
  not_found: EXIT_NOT_FOUND,
  conflict: EXIT_CONFLICT,
  precondition_failed: EXIT_CONFLICT,
}

/** The exit code of an error whose message is complete in one line; null for all others. */
export function exitCodeOf(error: Error): number | null {
  switch (error.name) {
    case 'CommandFailure':
      return (error as CommandFailure).exitCode
    case 'ConnectionError':
    case 'UnexpectedAnswer':
      return EXIT_NO_CONNECTION
    case 'ApiError':
      return CODES_OF_PROBLEMS[(error as Error & { readonly code: string }).code] ?? EXIT_FAILED
    case 'StoreFault':
    case 'StartFault':
    case 'SubmissionRefused':
      return EXIT_FAILED
    default:
      return null
  }
}
