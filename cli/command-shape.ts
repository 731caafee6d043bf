/** What the commands share: how they are declared. What one does is loaded when it is called. */
import { Option, type Command } from 'commander'

export type SetExit = (code: number) => void

/** As in operator/output.ts; a test holds them equal. */
export const FORMATS = ['table', 'wide', 'json', 'jsonl', 'yaml'] as const

const EXAMPLES = new WeakMap<Command, readonly string[]>()

/**
 * Shown at the end of the help, and in docs/cli.md. Each is a whole command line, a comment behind it in `#`.
 */
export function withExamples(command: Command, ...lines: readonly string[]): Command {
  EXAMPLES.set(command, lines)
  return command.addHelpText('after', `\nExamples:\n${lines.map((line) => `  ${line}\n`).join('')}`)
}

export function examplesOf(command: Command): readonly string[] {
  return EXAMPLES.get(command) ?? []
}

/** A command that asks the controller and prints what it says. */
export function remote(command: Command): Command {
  return withServer(command).addOption(
    new Option('-o, --output <format>', 'how it is printed').choices(FORMATS).default('table'),
  )
}

export function withServer(command: Command): Command {
  return command
    .option('--server <url>', 'the controller (VENDOR_CONTROLLER_URL, or else http://127.0.0.1:30080)')
    .option('--token-file <file>', 'holds the token that is sent (else HEADROOM_TOKEN)')
}

/** An option that may be given several times. */
export function repeatable(text: string, before: readonly string[] = []): readonly string[] {
  return [...before, text]
}
