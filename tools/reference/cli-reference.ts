/**
 * The tables of docs/cli.md, made from the commands themselves. `node tools/reference/cli-reference.ts`
 * writes them into the file; a test holds that they are there.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Argument, Command, Option } from 'commander'
import { examplesOf, shortcutOf } from '../../cli/command/command-shape.ts'
import { kubectlProgramOf } from '../../cli/kubectl/program.ts'
import { programOf } from '../../cli/program.ts'

export const CLI_DOCS = join(import.meta.dirname, '../../docs/cli.md')
const BEGIN = '<!-- commands: made by `node tools/reference/cli-reference.ts` -->'
/** Described once, at the top of the page. */
const OF_ALL: ReadonlySet<string> = new Set(['--server', '--token-file', '--output'])
const END = '<!-- end of commands -->'

/** The page with the tables as the commands are now. */
export async function withReference(page: string): Promise<string> {
  const [before, rest] = page.split(BEGIN)
  const after = rest?.split(END)[1]
  if (before === undefined || after === undefined) throw new Error(`docs/cli.md has no ${BEGIN} … ${END}`)
  const programs = [await programOf(() => {}), kubectlProgramOf(() => {})]
  const sections = programs.flatMap((program) => leavesOf(program)).map(sectionOf)
  return `${before}${BEGIN}\n\n${sections.join('\n')}\n${END}${after}`
}

interface Leaf {
  readonly path: string
  readonly command: Command
}

/** Commands that do something, in the order of the help; one that only holds others has no examples. */
function leavesOf(command: Command, path = command.name()): readonly Leaf[] {
  if (command.commands.length === 0) return [{ path, command }]
  const below = command.commands.flatMap((child) => leavesOf(child, `${path} ${child.name()}`))
  return examplesOf(command).length === 0 ? below : [{ path, command }, ...below]
}

function sectionOf({ path, command }: Leaf): string {
  const usage = command.registeredArguments.map((argument) => ` ${termOf(argument)}`).join('')
  const longForm = shortcutOf(command)
  if (longForm !== undefined) return `### \`${path}${usage}\`\n\nThe same as \`${longForm}\`.\n`
  const rows = [
    ...command.registeredArguments.map((argument) =>
      row(`\`${termOf(argument)}\``, describeArgument(argument)),
    ),
    ...command.options
      .filter(({ long }) => !OF_ALL.has(long ?? ''))
      .map((option) => row(`\`${option.flags}\``, describeOption(option))),
  ]
  const table = rows.length === 0 ? '' : `\n| | |\n|---|---|\n${rows.join('')}`
  const examples = examplesOf(command)
  const code = examples.length === 0 ? '' : `\n\`\`\`sh\n${examples.join('\n')}\n\`\`\`\n`
  return `### \`${path}${usage}\`\n\n${sentence(command.description())}\n${table}${code}`
}

function row(left: string, right: string): string {
  return `| ${left.replaceAll('|', '\\|')} | ${right.replaceAll('|', '\\|').replaceAll('<', '&lt;')} |\n`
}

function termOf(argument: Argument): string {
  const name = `${argument.name()}${argument.variadic ? '...' : ''}`
  return argument.required ? `<${name}>` : `[${name}]`
}

function describeArgument(argument: Argument): string {
  return `${argument.description}${choicesOf(argument.argChoices)}`
}

function describeOption(option: Option): string {
  const isShown =
    option.defaultValue !== undefined &&
    !(Array.isArray(option.defaultValue) && option.defaultValue.length === 0)
  const byDefault = isShown
    ? ` (default: ${option.defaultValueDescription ?? String(option.defaultValue)})`
    : ''
  return (
    `${option.description}${choicesOf(option.argChoices)}${option.mandatory ? ' (required)' : ''}` +
    `${byDefault}`
  )
}

function choicesOf(choices: readonly string[] | undefined): string {
  return choices === undefined ? '' : `: ${choices.join(', ')}`
}

function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`
}

if (process.argv[1] === import.meta.filename)
  writeFileSync(CLI_DOCS, await withReference(readFileSync(CLI_DOCS, 'utf8')))
