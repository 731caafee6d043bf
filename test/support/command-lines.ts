/** Checks whether a command line in a file is valid: the command and every option exist. Nothing is run. */
import type { Command } from 'commander'
import { examplesOf } from '../../cli/command/command-shape.ts'
import { programOf } from '../../cli/program.ts'

const PROGRAM = await programOf(() => {})

/**
 * Returns null, or a short error.
 * @param isWhole false if the command is only mentioned, so required arguments may be missing
 */
export function whyNotUnderstood(args: readonly string[], isWhole = true): string | null {
  let command = PROGRAM
  let at = 0
  for (
    let next: Command | undefined;
    (next = command.commands.find((each) => each.name() === args[at])) !== undefined;
    at++
  )
    command = next
  // A command with examples does something by itself, even if it has subcommands.
  if (command.commands.length > 0 && examplesOf(command).length === 0)
    return `${args.join(' ')}: ${command.name()} has no command '${args[at] ?? ''}'`
  const rest = args.slice(at)
  let operands = 0
  for (let i = 0; i < rest.length; i++) {
    const [word, value] = (rest[i] as string).split(/=(.*)/s) as [string, string?]
    if (word === '--') {
      operands += rest.length - i - 1
      break
    }
    if (!word.startsWith('-')) {
      operands += 1
      continue
    }
    const option = command.options.find(({ short, long }) => word === short || word === long)
    if (option === undefined) return `${args.join(' ')}: ${command.name()} has no option ${word}`
    if (option.required && value === undefined && rest[++i] === undefined)
      return `${args.join(' ')}: ${word} wants a value`
  }
  if (!isWhole) return null
  const missing = command.options.find(
    (option) =>
      option.mandatory && !rest.some((word) => word === option.short || word.split('=')[0] === option.long),
  )
  if (missing !== undefined) return `${args.join(' ')}: ${missing.flags} is missing`
  const wanted = command.registeredArguments.filter(({ required }) => required).length
  return operands < wanted ? `${args.join(' ')}: ${operands} of ${wanted} arguments` : null
}
