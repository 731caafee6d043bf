#!/usr/bin/env node
/** The `headroom` command. Nothing heavy is loaded before it is known what is asked. */
import './require-node.mjs'
import { Command, CommanderError } from 'commander'
import { EXIT_FAILED, EXIT_OK, EXIT_USAGE, isUsageError } from './exit-codes.ts'
import { packageVersion } from './package-info.ts'
import { addSimCommands } from './sim.ts'
import { addTraceCommands } from './trace.ts'

// A reader that has seen enough (head, less) is no failure.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(EXIT_OK)
  throw error
})

process.exitCode = await main(process.argv.slice(2))

async function main(args: readonly string[]): Promise<number> {
  let exitCode = EXIT_OK
  const program = commandOf((code) => {
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
    process.stderr.write(`headroom: ${error instanceof Error ? messageOf(error) : String(error)}\n`)
    return EXIT_FAILED
  }
}

function commandOf(setExit: (code: number) => void): Command {
  const program = new Command('headroom')
    .description('Runs GPU tasks with VRAM overcommit and fair swapping, and simulates what it would do')
    .version(packageVersion(), '-V, --version')
    .exitOverride()
    .configureOutput({ outputError: (text, write) => write(onOneLine(text)) })
  program
    .command('serve')
    .description('the controller with its page, over a simulated fleet in real time')
    .action(async () => {
      const { serve } = await import('./serve.ts')
      await serve(process.env)
    })
  addTraceCommands(program, setExit)
  addSimCommands(program, setExit)
  return program
}

/** Commander puts its suggestion on a line of its own. */
function onOneLine(text: string): string {
  return `${text.trimEnd().replaceAll('\n', ' ')}\n`
}

/** A fault at the start or of the store says all there is to say; anything else is ours, and its stack says where. */
function messageOf(error: Error): string {
  return error.name === 'StoreFault' || error.name === 'StartFault' ? error.message : (error.stack ?? error.message)
}
