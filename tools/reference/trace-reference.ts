/**
 * The tables of docs/trace-format.md and the JSON Schema of a line, generated from the validation rules and
 * the importers. `node tools/reference/trace-reference.ts` writes both; a test fails if they are out of date.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { COMMON_REASONS, type Importer } from '../../simulator/trace/import/importer.ts'
import { IMPORTERS } from '../../simulator/trace/formats/importers.ts'
import { traceHeaderRule, traceLineJsonSchema, traceTaskRule } from '../../simulator/trace/trace-schema.ts'
import { sectionsOf } from './scenario-reference.ts'

const ROOT = join(import.meta.dirname, '../..')
export const TRACE_DOCS = join(ROOT, 'docs/trace-format.md')
export const TRACE_SCHEMA_FILE = join(ROOT, 'scenarios/trace.schema.json')
export const HOW_TO_MAKE = 'node tools/reference/trace-reference.ts'

export function traceSchemaText(): string {
  return `${JSON.stringify(traceLineJsonSchema(), null, 1)}\n`
}

/** Returns the page with its two generated parts renewed. */
export function withMadeParts(page: string): string {
  const fields = [
    ...sectionsOf(traceHeaderRule, '', 'The header'),
    ...sectionsOf(traceTaskRule, '', 'A task'),
  ]
    .join('\n')
    .replaceAll(/from (\d+) to 9007199254740991/g, 'of $1 or more')
  const common = `### Any format\n\nReasons for dropping a row:\n\n${bullets(COMMON_REASONS)}`
  const formats = [common, ...IMPORTERS.map(sectionOf)].join('\n')
  return replaced(replaced(page, 'fields', fields), 'formats', formats)
}

function replaced(page: string, part: string, text: string): string {
  const [begin, end] = [`<!-- ${part}: made by \`${HOW_TO_MAKE}\` -->`, `<!-- end of ${part} -->`]
  const [before, rest] = page.split(begin)
  const after = rest?.split(end)[1]
  if (before === undefined || after === undefined)
    throw new Error(`docs/trace-format.md has no ${begin} … ${end}`)
  return `${before}${begin}\n\n${text}\n${end}${after}`
}

function sectionOf({ format, about, columns, dropped, ignored, adjusted, publicData }: Importer): string {
  const rows = columns.map(({ name, isRequired, becomes }) =>
    row(`\`${name}\``, isRequired ? 'yes' : '', becomes),
  )
  return [
    `### \`${format}\`\n\n${about}\n`,
    `${row('source column', 'required', 'becomes')}|---|---|---|\n${rows.join('')}`,
    ...part('Dropped', dropped),
    ...part('Ignored', ignored),
    ...part('Adjusted', adjusted),
    ...(publicData.length === 0
      ? []
      : [
          'Public data:\n\n' +
            `${publicData.map(({ name, licence, where }) => `- ${name}: ${licence}; ${where}\n`).join('')}`,
        ]),
  ].join('\n')
}

function part(title: string, words: Readonly<Record<string, string>>): string[] {
  return Object.keys(words).length === 0 ? [] : [`${title}:\n\n${bullets(words)}`]
}

function bullets(words: Readonly<Record<string, string>>): string {
  return Object.entries(words)
    .map(([reason, meaning]) => `- \`${reason}\`: ${meaning}\n`)
    .join('')
}

function row(...cells: readonly string[]): string {
  return `| ${cells.map((cell) => cell.replaceAll('|', '\\|').replaceAll('<', '&lt;')).join(' | ')} |\n`
}

if (process.argv[1] === import.meta.filename) {
  writeFileSync(TRACE_DOCS, withMadeParts(readFileSync(TRACE_DOCS, 'utf8')))
  writeFileSync(TRACE_SCHEMA_FILE, traceSchemaText())
}
