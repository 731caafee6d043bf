#!/usr/bin/env node
/** The `headroom` command. Nothing heavy is loaded before it is known what is asked. */
import './require-node.mjs'
import { CommanderError } from 'commander'
import { EXIT_DENIED, EXIT_FAILED, EXIT_OK, EXIT_USAGE, exitCodeOf, isUsageError } from './exit-codes.ts'
import { programOf } from './program.ts'
import { visible } from './terminal-text.ts'

// A reader that has seen enough (head, less) is no failure.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  // Who listens as well has something to put in order first.
  if (process.stdout.listenerCount('error') > 1) return
  if (error.code === 'EPIPE') process.exit(EXIT_OK)
  process.stderr.write(`headroom: standard output cannot be written to: ${error.message}\n`)
  process.exit(EXIT_FAILED)
})

process.exitCode = await main(process.argv.slice(2))

async function main(args: readonly string[]): Promise<number> {
  let exitCode = EXIT_OK
  const program = programOf((code) => {
    exitCode = code
  })
  try {
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
 * A fault at the start, of the store or of the connection says all there is to say; anything else is ours,
 * and its stack says where.
 */
function printError(error: unknown): number {
  const code = error instanceof Error ? exitCodeOf(error) : null
  const text =
    error instanceof Error
      ? withHint(code === null ? (error.stack ?? error.message) : visible(error.message), code)
      : String(error)
  process.stderr.write(`headroom: ${text}\n`)
  return code ?? EXIT_FAILED
}

function withHint(text: string, code: number | null): string {
  return code === EXIT_DENIED
    ? `${text} The token is what HEADROOM_TOKEN holds, or the file of --token-file.`
    : text
}
