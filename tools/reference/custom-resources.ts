/**
 * The CustomResourceDefinitions in deploy/helm/headroom/files/crds and the tables of
 * docs/kubernetes/reference.md, made from operator/contract/policies.ts. `node
 * tools/reference/custom-resources.ts` writes both; a test holds that they are as the code is now.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { stringify } from 'yaml'
import { crdOf, schemaOf, type StructuralSchema } from '../../operator/contract/crd.ts'
import { OWN_KINDS, type OwnKind } from '../../operator/contract/policies.ts'

const ROOT = join(import.meta.dirname, '../..')
export const CRD_FOLDER = join(ROOT, 'deploy/helm/headroom/files/crds')
export const RESOURCE_DOCS = join(ROOT, 'docs/kubernetes/reference.md')
const COMMAND = 'node tools/reference/custom-resources.ts'
const BEGIN = `<!-- resources: made by \`${COMMAND}\` -->`
const END = '<!-- end of resources -->'

/** Contents by name of the file. */
export function crdFiles(): Readonly<Record<string, string>> {
  return Object.fromEntries(
    OWN_KINDS.map((own) => [
      `${own.plural}.yaml`,
      `# Made by \`${COMMAND}\`; edit operator/contract/policies.ts.\n` +
        stringify(crdOf(own), { lineWidth: 110, aliasDuplicateObjects: false }),
    ]),
  )
}

/** The page with the tables as the definitions are now. */
export function withResources(page: string): string {
  const [before, rest] = page.split(BEGIN)
  const after = rest?.split(END)[1]
  if (before === undefined || after === undefined)
    throw new Error(`docs/kubernetes/reference.md has no ${BEGIN} … ${END}`)
  return `${before}${BEGIN}\n\n${OWN_KINDS.map(sectionOf).join('\n')}\n${END}${after}`
}

function sectionOf(own: OwnKind): string {
  const { spec, status } = schemaOf(own).properties ?? {}
  const rows = [...rowsOf('spec', spec), ...rowsOf('status', status)]
  return (
    `### ${own.kind}\n\n${own.description} Short name: \`${own.shortName}\`.\n\n` +
    `| field | values | meaning |\n|---|---|---|\n${rows.join('\n')}\n`
  )
}

function rowsOf(path: string, schema: StructuralSchema | undefined): readonly string[] {
  if (schema === undefined) return []
  const { properties, items } = schema
  if (properties !== undefined)
    return Object.entries(properties).flatMap(([name, field]) => rowsOf(`${path}.${name}`, field))
  if (items?.properties !== undefined) return rowsOf(`${path}[]`, items)
  return [`| \`${path}\` | ${valuesOf(schema)} | ${schema.description ?? ''} |`]
}

function valuesOf({ type, enum: choices, minimum, maximum, maxLength, items }: StructuralSchema): string {
  if (choices !== undefined) return choices.join(', ')
  if (items !== undefined) return `list: ${valuesOf(items)}`
  if (type !== 'integer') return maxLength === undefined ? type : `text of at most ${maxLength} characters`
  return maximum === Number.MAX_SAFE_INTEGER ? `${minimum} or more` : `${minimum} to ${maximum}`
}

if (import.meta.main) {
  mkdirSync(CRD_FOLDER, { recursive: true })
  for (const [name, text] of Object.entries(crdFiles())) writeFileSync(join(CRD_FOLDER, name), text)
  writeFileSync(RESOURCE_DOCS, withResources(readFileSync(RESOURCE_DOCS, 'utf8')))
}
