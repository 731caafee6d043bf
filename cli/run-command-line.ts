/** Runs one command line, and turns what it throws into an exit code and a message. */
import { CommanderError, type Command } from 'commander'
import {
  EXIT_DENIED,
  EXIT_FAILED,
  EXIT_OK,
  EXIT_USAGE,
  exitCodeOf,
  isUsageError,
} from '../services/exit-codes.ts'
import type { SetExit } from './command/command-shape.ts'
import { visible } from './output/terminal-text.ts'

export type ProgramOf = (setExit: SetExit, args: readonly string[]) => Command | Promise<Command>

/** Of this process. */
export async function main(programOf: ProgramOf): Promise<void> {
  // A reader that closes early (head, less) is not a failure.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    // Another listener has to clean up first.
    if (process.stdout.listenerCount('error') > 1) return
    if (error.code === 'EPIPE') process.exit(EXIT_OK)
    process.stderr.write(`headroom: cannot write to standard output: ${error.message}\n`)
    process.exit(EXIT_FAILED)
  })
  process.exitCode = await runCommandLine(process.argv.slice(2), programOf)
}

/** @returns the exit code */
export async function runCommandLine(args: readonly string[], programOf: ProgramOf): Promise<number> {
  let exitCode = EXIT_OK
  const setExit = (code: number) => {
    exitCode = code
  }
  try {
    const program = await programOf(setExit, args)
    await program.parseAsync(args, { from: 'user' })
    return exitCode
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT_OK : EXIT_USAGE
    if (isUsageError(error)) {
      process.stderr.write(`${error.name === 'UsageError' ? 'error: ' : ''}${error.message}\n`)
      return EXIT_USAGE
    }
    return printError(error)
  }
}

/**
 * A fault at the start, of the store or of the connection has a complete message; any other error is a bug,
 * so its stack is shown.
 */
function printError(error: unknown): number {
  const code = error instanceof Error ? exitCodeOf(error) : null
  const text =
    error instanceof Error
      ? withHint(code === null ? (error.stack ?? error.message) : visible(error.message), error)
      : String(error)
  process.stderr.write(`headroom: ${text}\n`)
  return code ?? EXIT_FAILED
}

function withHint(text: string, error: Error): string {
  return error.name === 'ApiError' && exitCodeOf(error) === EXIT_DENIED
    ? `${text} The token is read from HEADROOM_TOKEN, from the file given by \`--token-file\`, or from the ` +
        'credentials saved by `headroom login`.'
    : text
}
