/**
 * The table of variables in docs/configuration.md, made from cli/env-table.ts. `node test/support/configuration-reference.ts` writes it
 * into the file; a test holds that it is there.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ENVIRONMENT } from '../../cli/env-table.ts'

export const CONFIGURATION_DOCS = join(import.meta.dirname, '../../docs/configuration.md')
const BEGIN = '<!-- variables: made by `node test/support/configuration-reference.ts` -->'
const END = '<!-- end of variables -->'

/** The page with the table as the variables are now. */
export function withVariables(page: string): string {
  const [before, rest] = page.split(BEGIN)
  const after = rest?.split(END)[1]
  if (before === undefined || after === undefined) throw new Error(`docs/configuration.md has no ${BEGIN} … ${END}`)
  const rows = Object.values(ENVIRONMENT).map(
    ({ name, byDefault, range, meaning }) =>
      `| \`${name}\` | ${byDefault === null ? 'unset' : `\`${byDefault}\``} | ${meaning} (${range}) |\n`,
  )
  return `${before}${BEGIN}\n\n| variable | default | meaning (what is allowed) |\n|---|---|---|\n${rows.join('').replaceAll('*.', '\\*.')}\n${END}${after}`
}

if (process.argv[1] === import.meta.filename) writeFileSync(CONFIGURATION_DOCS, withVariables(readFileSync(CONFIGURATION_DOCS, 'utf8')))
