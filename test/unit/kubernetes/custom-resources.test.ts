import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { schemaOf, type StructuralSchema } from '../../../operator/contract/crd.ts'
import { OWN_KINDS } from '../../../operator/contract/policies.ts'
import {
  CRD_FOLDER,
  crdFiles,
  RESOURCE_DOCS,
  withResources,
} from '../../../tools/reference/custom-resources.ts'

it('The committed CustomResourceDefinitions are those of the code (`make fmt`)', () => {
  const files = crdFiles()
  expect(readdirSync(CRD_FOLDER).toSorted((a, b) => (a < b ? -1 : 1))).toEqual(
    Object.keys(files).toSorted((a, b) => (a < b ? -1 : 1)),
  )
  for (const [name, text] of Object.entries(files))
    expect(readFileSync(join(CRD_FOLDER, name), 'utf8'), name).toBe(text)
})

it('The tables of docs/kubernetes/reference.md are those of the code (`make fmt`)', () => {
  const page = readFileSync(RESOURCE_DOCS, 'utf8')
  expect(withResources(page)).toBe(page)
})

describe.each(OWN_KINDS)('$kind', (own) => {
  const fields = fieldsOf('', schemaOf(own))

  it('Every field has a description that is a sentence', () => {
    const undescribed = fields.filter(
      ([path, { description }]) => path !== '.metadata' && !/^[A-Z].*\.$/.test(description ?? ''),
    )
    expect(undescribed.map(([path]) => path)).toEqual([])
  })

  it('Every text, list and number has a maximum', () => {
    const isBounded = ({ type, format, maxLength, maxItems, maximum, enum: choices }: StructuralSchema) =>
      type === 'object' ||
      type === 'boolean' ||
      format === 'date-time' ||
      choices !== undefined ||
      (maxLength ?? maxItems ?? maximum) !== undefined
    const written = fields.filter(([path]) => /^\.(?:spec|status)/.test(path))
    expect(written.filter(([, field]) => !isBounded(field)).map(([path]) => path)).toEqual([])
  })

  it('Every printer column and selectable field is a field of the schema', () => {
    const paths = new Set(fields.map(([path]) => path))
    const named = [...own.columns.map(({ jsonPath }) => jsonPath), ...own.selectableFields]
      .filter((path) => path !== '.metadata.creationTimestamp')
      .map((path) => path.replace(/\[\?.*\]/, '[]'))
    expect(named.filter((path) => !paths.has(path))).toEqual([])
  })
})

function fieldsOf(path: string, schema: StructuralSchema): readonly (readonly [string, StructuralSchema])[] {
  const below = Object.entries(schema.properties ?? {}).flatMap(([name, field]) =>
    fieldsOf(`${path}.${name}`, field),
  )
  const items = schema.items === undefined ? [] : fieldsOf(`${path}[]`, schema.items)
  return [...(path === '' ? [] : [[path, schema] as const]), ...below, ...items]
}
