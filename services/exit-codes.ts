/** Exit codes (docs/cli.md, docs/simulation-model.md). */
export const EXIT_OK = 0
/**
 * It ran without success: an assertion failed, an answer differs from the expected one, an invariant broke.
 */
export const EXIT_FAILED = 1
/**
 * The command line, or a file that it names, is invalid; the message names option, field or line. Nothing was
 * done.
 */
export const EXIT_USAGE = 2
/** No controller (`conformance`: no broker; `operator`: no API server) answers at that address. */
export const EXIT_NO_CONNECTION = 3
/** Task, node or group not found. */
export const EXIT_NOT_FOUND = 4
/** The state of the cluster does not allow it; nothing was done. */
export const EXIT_CONFLICT = 5
/** A run differs from its recorded digest, or two compared results differ. */
export const EXIT_DIGEST_MISMATCH = 6

/** Authentication required or permission denied; nothing was done. */
export const EXIT_DENIED = 7

/** The time of --timeout is over; as timeout(1). */
export const EXIT_TIMEOUT = 124

/** The command line is invalid; the message, one line, says what to change. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

/** The process cannot start; the message says why in one line. */
export class StartFault extends Error {
  override readonly name = 'StartFault'
}

/** The command failed; the message, one line, is complete. */
export class CommandFailure extends Error {
  override readonly name = 'CommandFailure'
  readonly exitCode: number

  constructor(message: string, exitCode = EXIT_FAILED) {
    super(message)
    this.exitCode = exitCode
  }
}

/** Errors that mean "change the input", by name, so that their modules need not be loaded. */
const USAGE_ERRORS: ReadonlySet<string> = new Set([
  'UsageError',
  'ScenarioError',
  'TraceError',
  'SettingsError',
  'SettingsFault',
  'RecordingError',
  'KubeConfigError',
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

/** Returns the exit code of an error whose message is complete in one line; null for all others. */
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
