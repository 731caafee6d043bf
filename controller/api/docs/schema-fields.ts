/** A JSON schema as rows of a table: one for each field, those of inner objects under their path. */

export interface SchemaNode {
  readonly $ref?: string
  readonly type?: string | readonly string[]
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly anyOf?: readonly SchemaNode[]
  readonly properties?: Readonly<Record<string, SchemaNode>>
  readonly required?: readonly string[]
  readonly items?: SchemaNode
  readonly minimum?: number
  readonly maximum?: number
  readonly default?: unknown
  readonly format?: string
  readonly description?: string
  readonly 'x-allowed'?: string
}

export interface SchemaDocument {
  readonly components?: { readonly schemas?: Readonly<Record<string, SchemaNode>> }
}

export interface FieldRow {
  /** `placement.gpus[]` */
  readonly name: string
  readonly type: string
  readonly isRequired: boolean
  readonly about: string
}

/** Deeper fields are summed up in their parent's type. */
const MAX_DEPTH = 4
const LOCAL = '#/components/schemas/'

export function fieldRows(schema: SchemaNode, document: SchemaDocument, prefix = '', depth = 0): FieldRow[] {
  const { properties = {}, required = [] } = inner(schema, document)
  return Object.entries(properties).flatMap(([key, field]) => {
    const node = resolved(field, document)
    const isList = node.items !== undefined
    const name = `${prefix}${key}${isList ? '[]' : ''}`
    const row = {
      name,
      type: typeOf(node, document),
      isRequired: required.includes(key),
      about: aboutOf(node),
    }
    return depth >= MAX_DEPTH ? [row] : [row, ...fieldRows(node, document, `${name}.`, depth + 1)]
  })
}

/** The object that a field holds, itself or in a list. */
function inner(schema: SchemaNode, document: SchemaDocument): SchemaNode {
  const node = resolved(schema, document)
  return node.items === undefined ? node : inner(node.items, document)
}

function resolved(node: SchemaNode, document: SchemaDocument): SchemaNode {
  const name = node.$ref?.replace(LOCAL, '')
  return name === undefined ? node : (document.components?.schemas?.[name] ?? {})
}

function typeOf(node: SchemaNode, document: SchemaDocument): string {
  if (node.const !== undefined) return JSON.stringify(node.const)
  if (node.enum !== undefined) return node.enum.map((value) => JSON.stringify(value)).join(' | ')
  if (node.anyOf !== undefined)
    return node.anyOf.map((each) => typeOf(resolved(each, document), document)).join(' or ')
  const named = [node.type ?? 'any'].flat().join(' or ')
  return node.format === undefined ? named : `${named} (${node.format})`
}

function aboutOf({
  description,
  minimum,
  maximum,
  default: byDefault,
  'x-allowed': allowed,
}: SchemaNode): string {
  const range = minimum === undefined && maximum === undefined ? '' : `${minimum ?? '…'} to ${maximum ?? '…'}`
  const parts = [
    description ?? '',
    allowed ?? '',
    range,
    byDefault === undefined ? '' : `default ${JSON.stringify(byDefault)}`,
  ]
  return parts.filter((part) => part !== '').join('; ')
}
