/** Shared declarations of commands. The action of a command is loaded when it is called. */
import { Option, type Command } from 'commander'

export type SetExit = (code: number) => void

/** Equals the list in operator/output.ts; a test compares them. */
export const FORMATS = ['table', 'wide', 'json', 'jsonl', 'yaml'] as const

const EXAMPLES = new WeakMap<Command, readonly string[]>()

/**
 * Adds examples to the end of the help and to docs/cli.md. Each is a complete command line, with a comment
 * after `#`.
 */
export function withExamples(command: Command, ...lines: readonly string[]): Command {
  EXAMPLES.set(command, lines)
  return command.addHelpText('after', `\nExamples:\n${lines.map((line) => `  ${line}\n`).join('')}`)
}

export function examplesOf(command: Command): readonly string[] {
  return EXAMPLES.get(command) ?? []
}

/** A command that calls the controller and prints its answer. */
export function remote(command: Command): Command {
  return withServer(command).addOption(
    new Option('-o, --output <format>', 'output format').choices(FORMATS).default('table'),
  )
}

export function withServer(command: Command): Command {
  return command
    .option('--server <url>', 'URL of the controller (VENDOR_CONTROLLER_URL, else http://127.0.0.1:30080)')
    .option('--token-file <file>', 'file with the token to send (else HEADROOM_TOKEN)')
}

/** Collects an option that may be given several times. */
export function repeatable(text: string, before: readonly string[] = []): readonly string[] {
  return [...before, text]
}
