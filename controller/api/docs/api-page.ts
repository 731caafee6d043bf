/**
 * The OpenAPI document as a page for people: no script, so that it lives under the strict policy that all
 * pages have.
 */

interface Parameter {
  readonly name: string
  readonly in: string
  readonly required?: boolean
  readonly schema?: SchemaNode
  readonly description?: string
}

interface Media {
  readonly schema?: SchemaNode
  readonly example?: unknown
  readonly examples?: Readonly<Record<string, { readonly value: unknown }>>
}

interface Operation {
  readonly operationId: string
  readonly summary?: string
  readonly description?: string
  readonly tags?: readonly string[]
  readonly 'x-role'?: string
  readonly 'x-origin'?: string
  readonly parameters?: readonly Parameter[]
  readonly requestBody?: { readonly content: Readonly<Record<string, Media>> }
  readonly responses: Readonly<
    Record<string, { readonly description?: string; readonly content?: Readonly<Record<string, Media>> }>
  >
}

export interface OpenApiDocument extends SchemaDocument {
  readonly info: { readonly title: string; readonly version: string; readonly description?: string }
  readonly tags?: readonly { readonly name: string; readonly description?: string }[]
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
}

interface Route {
  readonly method: string
  readonly path: string
  readonly operation: Operation
}

/** @param styleHref where the page's style sheet is; @param documentHref where the document itself is */
export function apiPage(document: OpenApiDocument, styleHref: string, documentHref: string): string {
  const { info, tags = [] } = document
  const routes = Object.entries(document.paths)
    .filter(([path]) => path.startsWith('/api/'))
    .flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]): Route => ({
        method: method.toUpperCase(),
        path,
        operation,
      })),
    )
  const sections = tags.map(({ name, description = '' }) => ({
    name,
    description,
    routes: routes.filter(({ operation }) => operation.tags?.[0] === name),
  }))
  const title = `${info.title} ${info.version}: REST API`
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escapeHtml(title)}</title>
<link rel="stylesheet" href="${escapeHtml(styleHref)}">
</head>
<body>
<header><h1>${escapeHtml(title)}</h1><p>${escapeHtml(info.description ?? '')}
For programs: <a href="${escapeHtml(documentHref)}">OpenAPI 3.1</a>.</p></header>
<nav aria-label="Sections"><ul>
${sections.map(({ name }) => `<li><a href="#${escapeHtml(name)}">${escapeHtml(name)}</a></li>`).join('')}
</ul></nav>
<main>
${sections.map((section) => sectionOf(section, document)).join('\n')}
</main>
</body>
</html>
`
}

function sectionOf(
  section: { readonly name: string; readonly description: string; readonly routes: readonly Route[] },
  document: OpenApiDocument,
): string {
  const { name, description, routes } = section
  return `<section id="${escapeHtml(name)}"><h2>${escapeHtml(name)}</h2><p>${escapeHtml(description)}</p>
${routes.map((route) => routeOf(route, document)).join('\n')}
</section>`
}

function routeOf({ method, path, operation }: Route, document: OpenApiDocument): string {
  const { operationId, summary = '', description = '', parameters = [], requestBody, responses } = operation
  const chips = [
    operation['x-role'] ?? 'public',
    operation['x-origin'] === 'project' ? '' : 'specification',
  ].filter((chip) => chip !== '')
  return `<details id="${escapeHtml(operationId)}">
<summary><b class="${method.toLowerCase()}">${method}</b> <code>${escapeHtml(path)}</code>
<span>${escapeHtml(summary)}</span> ${chips.map((chip) => `<i>${escapeHtml(chip)}</i>`).join(' ')}</summary>
${description === '' ? '' : `<p>${escapeHtml(description)}</p>`}
${parametersOf(parameters, document)}
${bodyOf(method, path, requestBody, document)}
<h3>Responses</h3>
${Object.entries(responses)
  .map(([status, answer]) => answerOf(status, answer, document))
  .join('\n')}
</details>`
}

function parametersOf(parameters: readonly Parameter[], document: OpenApiDocument): string {
  if (parameters.length === 0) return ''
  const properties = Object.fromEntries(
    parameters.map(({ name, in: place, schema = {}, description }) => [
      `${name} (${place})`,
      { ...schema, ...(description === undefined ? {} : { description }) },
    ]),
  )
  const required = parameters
    .filter((each) => each.required === true)
    .map(({ name, in: place }) => `${name} (${place})`)
  return `<h3>Parameters</h3>${tableOf({ type: 'object', properties, required }, document)}`
}

function bodyOf(
  method: string,
  path: string,
  body: Operation['requestBody'],
  document: OpenApiDocument,
): string {
  if (body === undefined) return ''
  const [type, { schema = {}, example, examples }] = Object.entries(body.content)[0] ?? [
    'application/json',
    {},
  ]
  const shown = example ?? Object.values(examples ?? {})[0]?.value
  const curl =
    shown === undefined
      ? ''
      : `curl -X ${method} -H 'Content-Type: ${type}' -d '${JSON.stringify(shown)}' ` +
        `http://127.0.0.1:30080${path}`
  return (
    `<h3>Body</h3>${tableOf(schema, document)}` +
    `${curl === '' ? '' : `<pre><code>${escapeHtml(curl)}</code></pre>`}`
  )
}

function answerOf(
  status: string,
  { description = '', content = {} }: Operation['responses'][string],
  document: OpenApiDocument,
): string {
  const [type, { schema = {} }] = Object.entries(content)[0] ?? ['', {}]
  const head =
    `<b>${escapeHtml(status)}</b> ${escapeHtml(description)}` +
    `${type === '' ? '' : ` <code>${escapeHtml(type)}</code>`}`
  const table = Number(status) < 300 ? tableOf(schema, document) : ''
  return table === '' ? `<p>${head}</p>` : `<details><summary>${head}</summary>${table}</details>`
}

function tableOf(schema: SchemaNode, document: OpenApiDocument): string {
  const rows = fieldRows(schema, document)
  if (rows.length === 0) return ''
  const cells = rows.map(
    ({ name, type, isRequired, about }) =>
      `<tr><td><code>${escapeHtml(name)}</code>${isRequired ? ' <abbr title="required">*</abbr>' : ''}</td>` +
      `<td>${escapeHtml(type)}</td><td>${escapeHtml(about)}</td></tr>`,
  )
  return (
    '<div class="table"><table><thead><tr><th>name</th><th>type</th><th>meaning</th></tr></thead>' +
    `<tbody>${cells.join('')}</tbody></table></div>`
  )
}

interface SchemaNode {
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

interface SchemaDocument {
  readonly components?: { readonly schemas?: Readonly<Record<string, SchemaNode>> }
}

interface FieldRow {
  /** `placement.gpus[]` */
  readonly name: string
  readonly type: string
  readonly isRequired: boolean
  readonly about: string
}

/** Deeper fields are summed up in their parent's type. */
const MAX_DEPTH = 4
const LOCAL = '#/components/schemas/'

function fieldRows(schema: SchemaNode, document: SchemaDocument, prefix = '', depth = 0): FieldRow[] {
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

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

/** For text and for attributes in double quotes. */
function escapeHtml(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => ENTITIES[character] ?? character)
}
