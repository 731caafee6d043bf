/**
 * The tables of docs/configuration.md, made from what the controller itself reads. `node
 * tools/reference/configuration-reference.ts` writes them into the file; a test holds that they are there.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ENVIRONMENT, type EnvironmentVariable } from '../../services/settings/env-table.ts'
import { CONFIG_MEANINGS } from '../../controller/model/config-meanings.ts'
import { NodeConfigChangeSchema } from '../../controller/api/nodes/schema.ts'
import {
  CONFIG_RULES,
  DEFAULT_CONFIG,
  describeRule,
  type ConfigFields,
} from '../../controller/model/config.ts'

export const CONFIGURATION_DOCS = join(import.meta.dirname, '../../docs/configuration.md')
export const HOW_TO_MAKE = 'node tools/reference/configuration-reference.ts'

const TABLES: Readonly<Record<string, () => string>> = {
  settings: settingsTable,
  'node settings': nodeTable,
  variables: variablesTable,
}

/** The page with the tables as things are now. */
export function withTables(page: string): string {
  return Object.entries(TABLES).reduce((text, [name, table]) => {
    const [begin, end] = [`<!-- ${name}: made by \`${HOW_TO_MAKE}\` -->`, `<!-- end of ${name} -->`]
    const [before, rest] = text.split(begin)
    const after = rest?.split(end)[1]
    if (before === undefined || after === undefined)
      throw new Error(`docs/configuration.md has no ${begin} … ${end}`)
    return `${before}${begin}\n\n${table()}\n${end}${after}`
  }, page)
}

function settingsTable(): string {
  const names = Object.keys(CONFIG_RULES) as (keyof ConfigFields)[]
  const rows = names.map((name) =>
    row(`\`${name}\``, describeRule(CONFIG_RULES[name]), String(DEFAULT_CONFIG[name]), CONFIG_MEANINGS[name]),
  )
  return tableOf(['field', 'value', 'default', 'meaning'], rows)
}

function nodeTable(): string {
  const { properties } = NodeConfigChangeSchema as unknown as {
    readonly properties: Readonly<Record<string, NodeField>>
  }
  const rows = Object.entries(properties).map(([name, { minimum, maximum, description }]) =>
    row(`\`${name}\``, `an integer from ${minimum} to ${maximum}, or null`, description),
  )
  return tableOf(['field', 'value', 'meaning'], rows)
}

interface NodeField {
  readonly minimum: number
  readonly maximum: number
  readonly description: string
}

function variablesTable(): string {
  const variables: readonly EnvironmentVariable<unknown>[] = Object.values(ENVIRONMENT)
  const rows = variables.map(({ name, range, byDefault, meaning }) =>
    row(`\`${name}\``, byDefault === null ? 'unset' : `\`${byDefault}\``, `${meaning} (${range})`),
  )
  return tableOf(['variable', 'default', 'meaning (what is allowed)'], rows).replaceAll('*.', '\\*.')
}

function tableOf(titles: readonly string[], rows: readonly string[]): string {
  return `${row(...titles)}|${titles.map(() => '---|').join('')}\n${rows.join('')}`
}

function row(...cells: readonly string[]): string {
  return `| ${cells.map((cell) => cell.replaceAll('|', '\\|').replaceAll('<', '&lt;')).join(' | ')} |\n`
}

if (process.argv[1] === import.meta.filename)
  writeFileSync(CONFIGURATION_DOCS, withTables(readFileSync(CONFIGURATION_DOCS, 'utf8')))
