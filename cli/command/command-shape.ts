/** Shared declarations of commands. The action of a command is loaded when it is called. */
import { Option, type Command } from 'commander'
import { OUTPUT_FORMATS } from '../output/formats.ts'

export type SetExit = (code: number) => void

type Action = (...args: never[]) => number | Promise<number>

/**
 * The action of a command: loads a module when the command is called, and ends with the exit code of one of
 * its functions. The function gets the arguments of the command, then its options.
 */
export function calls<Name extends string>(
  setExit: SetExit,
  load: () => Promise<Readonly<Record<NoInfer<Name>, Action>>>,
  name: Name,
): (...args: unknown[]) => Promise<void> {
  return async (...args) => {
    const action = (await load())[name] as (...args: unknown[]) => number | Promise<number>
    // Commander adds the command itself.
    setExit(await action(...args.slice(0, -1)))
  }
}

export const DRY_RUN = 'show the effect without changing anything'
export const MAX_ROWS = 1_000_000
export const DEFAULT_TASK_ROWS = 50
export const DEFAULT_EVENT_ROWS = 20

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

const SHORTCUTS = new WeakMap<Command, string>()

/** Marks a command as a shorter name of another, for docs/cli.md. */
export function asShortcut(command: Command, of: string): void {
  SHORTCUTS.set(command, of)
}

/** The command line that it stands for; undefined: it is not a shortcut. */
export function shortcutOf(command: Command): string | undefined {
  return SHORTCUTS.get(command)
}

/** Example: `headroom task list`. */
export function pathOf(command: Command): string {
  return command.parent === null ? command.name() : `${pathOf(command.parent)} ${command.name()}`
}

/** A command that calls the controller and prints its answer. */
export function remote(command: Command): Command {
  return withServer(command).addOption(
    new Option('-o, --output <format>', 'output format').choices(OUTPUT_FORMATS).default('table'),
  )
}

export function withServer(command: Command): Command {
  return command
    .option(
      '--server <url>',
      'URL of the controller (default: HEADROOM_URL, the current context, or http://127.0.0.1:30080)',
    )
    .option(
      '--token-file <file>',
      'file that contains the token to send (default: HEADROOM_TOKEN, or the token of the current context)',
    )
}

/** Collects an option that may be given several times. */
export function repeatable(text: string, before: readonly string[] = []): readonly string[] {
  return [...before, text]
}
