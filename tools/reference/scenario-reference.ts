/**
 * The tables of docs/scenario-format.md and the published JSON Schema, generated from the validation
 * rules, and the index of scenarios. `node tools/reference/scenario-reference.ts` writes all three; a test
 * fails if they are out of date.
 */
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describeRule } from '../../simulator/document/describe-rule.ts'
import { loadScenario } from '../../simulator/scenario/load.ts'
import { formatDuration } from '../../simulator/document/quantity.ts'
import type { Field, RecordData, Rule } from '../../simulator/document/rule.ts'
import { scenarioJsonSchema, scenarioRule } from '../../simulator/scenario/schema.ts'
import { writtenDefault } from '../../simulator/document/written-value.ts'

const ROOT = join(import.meta.dirname, '../..')
export const FORMAT_DOCS = join(ROOT, 'docs/scenario-format.md')
export const SCHEMA_FILE = join(ROOT, 'scenarios/scenario.schema.json')
export const HOW_TO_MAKE = 'node tools/reference/scenario-reference.ts'
const BEGIN = `<!-- fields: made by \`${HOW_TO_MAKE}\` -->`
const END = '<!-- end of fields -->'
const SCENARIOS = join(ROOT, 'scenarios')
export const INDEX = join(SCENARIOS, 'README.md')
const INDEX_BEGIN = `<!-- scenarios: made by \`${HOW_TO_MAKE}\` -->`
const INDEX_END = '<!-- end of scenarios -->'

export function schemaText(): string {
  return `${JSON.stringify(scenarioJsonSchema(), null, 1)}\n`
}

/** Returns the page with the tables of the current rules. */
export function withFields(page: string): string {
  const [before, rest] = page.split(BEGIN)
  const after = rest?.split(END)[1]
  if (before === undefined || after === undefined)
    throw new Error(`docs/scenario-format.md has no ${BEGIN} … ${END}`)
  return `${before}${BEGIN}\n\n${sectionsOf(scenarioRule, '', 'The file').join('\n')}\n${END}${after}`
}

/** The purpose of each folder of scenarios, in the order of the index. */
const PURPOSES: Readonly<Record<string, string>> = {
  '': 'The rules, one by one',
  fairness: 'Fairness: the order of swap-outs, waits and returns',
  capacity: 'Capacity: benefits and costs of percentages, swap profiles and settings',
  operations: 'Operations: actions of operators during a run',
  faults: 'Faults: failures, and the guarantees that must still hold',
  exercises: 'Exercises: diagnose a problem and solve it',
  regressions: 'Regressions: former bugs',
}

/** Returns the index of all scenarios by folder, each with the first sentence of its description. */
export function withIndex(page: string): string {
  const [before, rest] = page.split(INDEX_BEGIN)
  const after = rest?.split(INDEX_END)[1]
  if (before === undefined || after === undefined)
    throw new Error(`scenarios/README.md has no ${INDEX_BEGIN} … ${INDEX_END}`)
  const files = globSync('**/*.scenario.yaml', { cwd: SCENARIOS }).sort((a, b) => (a < b ? -1 : 1))
  const folders = [...new Set(files.map(folderOf))].toSorted((a, b) => placeOf(a) - placeOf(b))
  const sections = folders.map((folder) => {
    const rows = files.filter((file) => folderOf(file) === folder).map(indexRow)
    return `## ${PURPOSES[folder] ?? folder}\n\n${row('scenario', 'shows')}|---|---|\n${rows.join('')}`
  })
  return `${before}${INDEX_BEGIN}\n\n${sections.join('\n')}\n${INDEX_END}${after}`
}

function folderOf(file: string): string {
  const folder = dirname(file)
  return folder === '.' ? '' : folder
}

function placeOf(folder: string): number {
  const place = Object.keys(PURPOSES).indexOf(folder)
  return place === -1 ? Infinity : place
}

function indexRow(file: string): string {
  const { name, description } = loadScenario(join(SCENARIOS, file)).scenario
  const sentence = /^.*?\.(?= |$)/s.exec(description ?? '')?.[0] ?? ''
  return row(`[\`${name}\`](${file})`, sentence.replaceAll('\n', ' '))
}

/** Returns a record's own table, then those of its nested records, in the order of the fields. */
export function sectionsOf(rule: Rule, path: string, title: string): string[] {
  if (rule.kind === 'nullable') return sectionsOf(rule.rule, path, title)
  if (rule.kind === 'list') return sectionsOf(rule.item, `${path}[]`, `\`${path}[]\``)
  if (rule.kind === 'scalar_or') return sectionsOf(rule.collection, path, title)
  if (rule.kind === 'by_key') {
    return Object.entries(rule.records).flatMap(([key, record]) =>
      sectionsOf(record, path, `\`${path}\` with \`${key}\``),
    )
  }
  if (rule.kind === 'by_value') {
    return Object.entries(rule.records).flatMap(([value, record]) =>
      sectionsOf(record, path, `\`${path}\` with \`${rule.key}: ${value}\``),
    )
  }
  if (rule.kind !== 'record') return []
  const inside = Object.entries(rule.fields).flatMap(([key, field]) =>
    sectionsOf(field.rule, below(path, key), `\`${below(path, key)}\``),
  )
  return [sectionOf(rule, title), ...inside]
}

function below(path: string, key: string): string {
  return path === '' ? key : `${path}.${key}`
}

function sectionOf({ fields }: RecordData, title: string): string {
  const rows = Object.entries(fields).map(([key, field]) =>
    row(`\`${key}\``, shapeOf(field.rule), defaultOf(field), field.doc),
  )
  const names = Object.values(fields).flatMap(({ rule }) => meaningsOf(rule))
  return (
    `### ${title}\n\n${row('field', 'value', 'default', 'meaning')}|---|---|---|---|\n` +
    `${rows.join('')}${names.length === 0 ? '' : `\n${names.join('')}`}`
  )
}

function defaultOf(field: Field): string {
  if (field.presence === 'required') return 'required'
  const value = writtenDefault(field)
  return value === undefined ? '–' : `\`${typeof value === 'string' ? value : JSON.stringify(value)}\``
}

/** Returns the permitted values. A record is described in its own table. */
function shapeOf(rule: Rule): string {
  if (rule.kind === 'record' || rule.kind === 'by_key' || rule.kind === 'by_value') return 'a map (below)'
  if (rule.kind === 'list') return `a list: ${shapeOf(rule.item)}`
  if (rule.kind === 'pair') return `a pair [${shapeOf(rule.first)}; ${shapeOf(rule.second)}]`
  if (rule.kind === 'nullable') return `${shapeOf(rule.rule)}, or null`
  if (rule.kind === 'scalar_or') return `${shapeOf(rule.scalar)}; or ${shapeOf(rule.collection)}`
  if (rule.kind === 'choice' && rule.meanings !== undefined) return 'a name (below)'
  if (rule.kind === 'size') return `a size, ${rule.min} to ${rule.max} MiB`
  if (rule.kind !== 'duration') return describeRule(rule)
  return (
    `a time${rule.bareMs ? ' (also whole ms)' : ''}, ${formatDuration(rule.min)} to ` +
    `${formatDuration(rule.max)}`
  )
}

/** Returns the meanings of the names that need an explanation. */
function meaningsOf(rule: Rule): string[] {
  if (rule.kind === 'list') return meaningsOf(rule.item)
  if (rule.kind === 'scalar_or') return [...meaningsOf(rule.scalar), ...meaningsOf(rule.collection)]
  if (rule.kind === 'nullable') return meaningsOf(rule.rule)
  if (rule.kind !== 'choice') return []
  return Object.entries(rule.meanings ?? {}).map(([name, meaning]) => `- \`${name}\`: ${meaning}\n`)
}

function row(...cells: readonly string[]): string {
  return `| ${cells.map((cell) => cell.replaceAll('|', '\\|').replaceAll('<', '&lt;')).join(' | ')} |\n`
}

if (process.argv[1] === import.meta.filename) {
  writeFileSync(FORMAT_DOCS, withFields(readFileSync(FORMAT_DOCS, 'utf8')))
  writeFileSync(SCHEMA_FILE, schemaText())
  writeFileSync(INDEX, withIndex(readFileSync(INDEX, 'utf8')))
}
