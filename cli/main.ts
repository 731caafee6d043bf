#!/usr/bin/env -S node --
/** The `headroom` command. Loads nothing heavy before the command is known. */
import './require-node.mjs'
import { EXIT_FAILED, EXIT_OK } from '../services/exit-codes.ts'
import { runCommandLine } from './run-command-line.ts'

// A reader that closes early (head, less) is not a failure.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  // Another listener has to clean up first.
  if (process.stdout.listenerCount('error') > 1) return
  if (error.code === 'EPIPE') process.exit(EXIT_OK)
  process.stderr.write(`headroom: cannot write to standard output: ${error.message}\n`)
  process.exit(EXIT_FAILED)
})

process.exitCode = await runCommandLine(process.argv.slice(2))
