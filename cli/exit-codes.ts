/** What the exit code says (docs/simulation-model.md, "Commands"). */
export const EXIT_OK = 0
/** It ran and did not succeed: an assertion does not hold, an answer is not the expected one, an invariant broke. */
export const EXIT_FAILED = 1
/** The command line or a file it names cannot be used; the message names option, field or line. Nothing was done. */
export const EXIT_USAGE = 2
/** A run came out other than its recorded digest says. */
export const EXIT_DIGEST_MISMATCH = 6

/** What was asked cannot be done, and the message, one line, says what to change. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

/** Errors that mean "change the input"; by name, so that nothing heavy is loaded to recognise them. */
const USAGE_ERRORS: ReadonlySet<string> = new Set(['UsageError', 'ScenarioError', 'TraceError', 'SettingsError'])

export function isUsageError(error: unknown): error is Error {
  return error instanceof Error && USAGE_ERRORS.has(error.name)
}
