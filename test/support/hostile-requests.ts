/**
 * Requests derived from an OpenAPI document to break the API: a valid request of some operation with one to
 * three defects.
 */
import type { RandomStream } from '../../controller/ports/random.ts'
import { hostileHeader, hostileJson, hostileKey, hostileUrlPart, pick } from './hostile-values.ts'

export interface HostileRequest {
  readonly method: string
  readonly path: string
  readonly headers: Record<string, string>
  readonly body: Buffer | null
  /** The defects. */
  readonly spoilt: readonly string[]
}

interface JsonSchema {
  readonly type?: string | readonly string[]
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly anyOf?: readonly JsonSchema[]
  readonly properties?: Readonly<Record<string, JsonSchema>>
  readonly items?: JsonSchema
  readonly minimum?: number
  readonly maximum?: number
  readonly minLength?: number
}

interface Parameter {
  readonly name: string
  readonly in: string
  readonly schema?: JsonSchema
}

interface Operation {
  readonly parameters?: readonly Parameter[]
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema?: JsonSchema }>> }
}

export interface OpenApiDocument {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
}

/** Existing objects, so that some requests get past the look-up. Keys are names of path parameters. */
export type Known = Readonly<Record<string, readonly string[]>>

interface Draft {
  method: string
  parts: Map<string, string>
  query: [string, string][]
  fields: Map<string, string> | null
  raw: Buffer | null
  headers: Record<string, string>
}

export function requestMaker(
  document: OpenApiDocument,
  known: Known,
  random: RandomStream,
): () => HostileRequest {
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
  )
  return () => {
    const { path, method, operation } = pick(random, operations)
    const draft = validDraft(path, method, operation, known, random)
    const spoilt = Array.from({ length: 1 + Math.floor(random() * 3) }, () => {
      const [name, spoil] = pick(random, SPOILERS)
      spoil(draft, random)
      return name
    })
    return {
      method: draft.method,
      path: urlOf(path, draft),
      headers: draft.headers,
      body: bodyOf(draft),
      spoilt,
    }
  }
}

function validDraft(
  path: string,
  method: string,
  operation: Operation,
  known: Known,
  random: RandomStream,
): Draft {
  const parts = new Map<string, string>()
  for (const [, name = ''] of path.matchAll(/\{(\w+)\}/g))
    parts.set(name, encodeURIComponent(pick(random, known[name] ?? ['x'])))
  const schema = Object.values(operation.requestBody?.content ?? {})[0]?.schema
  const query = (operation.parameters ?? [])
    .filter((parameter) => parameter.in === 'query' && random() < 0.4)
    .map(({ name, schema: of }): [string, string] => [
      name,
      encodeURIComponent(String(sample(of ?? {}, random))),
    ])
  const headers: Record<string, string> = schema === undefined ? {} : { 'content-type': 'application/json' }
  return {
    method,
    parts,
    query,
    fields: schema === undefined ? null : fieldsOf(schema, random),
    raw: null,
    headers,
  }
}

function fieldsOf(schema: JsonSchema, random: RandomStream): Map<string, string> {
  const fields = Object.entries(schema.properties ?? schema.anyOf?.[0]?.properties ?? {}).filter(
    () => random() < 0.7,
  )
  return new Map(fields.map(([name, of]) => [name, JSON.stringify(sample(of, random)) ?? 'null']))
}

/** A value that satisfies the schema approximately: formats and patterns are ignored. */
function sample(schema: JsonSchema, random: RandomStream): unknown {
  if (schema.const !== undefined) return schema.const
  if (schema.enum !== undefined) return pick(random, schema.enum)
  if (schema.anyOf !== undefined) return sample(pick(random, schema.anyOf), random)
  const type = typeof schema.type === 'string' ? schema.type : pick(random, schema.type ?? ['string'])
  const { minimum = 0, maximum = 100 } = schema
  switch (type) {
    case 'integer':
    case 'number':
      return pick(random, [
        minimum,
        maximum,
        minimum - 1,
        maximum + 1,
        Math.floor(minimum + random() * (maximum - minimum)),
      ])
    case 'boolean':
      return random() < 0.5
    case 'null':
      return null
    case 'array':
      return Array.from({ length: Math.floor(random() * 3) }, () => sample(schema.items ?? {}, random))
    case 'object':
      return Object.fromEntries(
        Object.entries(schema.properties ?? {}).map(([name, of]) => [name, sample(of, random)]),
      )
    default:
      return 'a'.repeat(Math.max(1, schema.minLength ?? 1))
  }
}

const MEDIA_TYPES = [
  'text/plain',
  'application/xml',
  'multipart/form-data; boundary=x',
  'application/json; charset=utf-16',
  'application/jsonx',
  '',
  ';;;',
  'application/x-www-form-urlencoded',
]
const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS', 'TRACE', 'PROPFIND', 'QUERY']
const SCRAMBLED: readonly ((text: string) => Buffer)[] = [
  (text) => Buffer.from(text.slice(0, text.length >> 1)),
  (text) => Buffer.from(`${text},`),
  (text) => Buffer.from(`\uFEFF${text}`),
  (text) => Buffer.from(text, 'utf16le'),
  (text) =>
    Buffer.concat([Buffer.from(text.slice(0, -1)), Buffer.from([0xff, 0xfe, 0xc0, 0x80]), Buffer.from('}')]),
  (text) => Buffer.from(`[${text}]`),
  (text) => Buffer.from(`${text}${text}`),
  (text) => Buffer.from(text.replaceAll('"', "'")),
  () => Buffer.alloc(0),
  () => Buffer.alloc(300 * 1024, 0x20),
  () => Buffer.alloc(1_000, 0),
]

const SPOILERS: readonly (readonly [string, (draft: Draft, random: RandomStream) => void])[] = [
  ['path', (draft, random) => setRandom(draft.parts, hostileUrlPart(random), random)],
  [
    'query value',
    (draft, random) =>
      void (draft.query.length > 0 && (pick(random, draft.query)[1] = hostileUrlPart(random))),
  ],
  [
    'query name',
    (draft, random) =>
      void draft.query.push([encodeURIComponent(hostileKey(random)), hostileUrlPart(random)]),
  ],
  ['query twice', (draft) => void draft.query.push(...draft.query)],
  ['field', (draft, random) => setRandom(draft.fields, hostileJson(random), random)],
  ['field', (draft, random) => setRandom(draft.fields, hostileJson(random), random)],
  ['unknown field', (draft, random) => void draft.fields?.set(hostileKey(random), hostileJson(random))],
  ['no fields', (draft) => draft.fields?.clear()],
  ['whole body', (draft, random) => void (draft.raw = Buffer.from(hostileJson(random)))],
  ['bytes', (draft, random) => void (draft.raw = pick(random, SCRAMBLED)(textOf(draft.fields ?? new Map())))],
  ['media type', (draft, random) => void (draft.headers['content-type'] = pick(random, MEDIA_TYPES))],
  ['header', (draft, random) => setHeader(draft, hostileHeader(random))],
  ['method', (draft, random) => void (draft.method = pick(random, METHODS))],
]

function setRandom(of: Map<string, string> | null, value: string, random: RandomStream): void {
  if (of !== null && of.size > 0) of.set(pick(random, [...of.keys()]), value)
}

function setHeader(draft: Draft, [name, value]: readonly [string, string]): void {
  draft.headers[name] = value
}

function urlOf(template: string, { parts, query }: Draft): string {
  const path = template.replaceAll(/\{(\w+)\}/g, (_, name: string) => parts.get(name) ?? '')
  return query.length === 0 ? path : `${path}?${query.map(([name, value]) => `${name}=${value}`).join('&')}`
}

function bodyOf({ raw, fields }: Draft): Buffer | null {
  if (raw !== null) return raw
  return fields === null ? null : Buffer.from(textOf(fields))
}

function textOf(fields: ReadonlyMap<string, string>): string {
  return `{${[...fields].map(([name, text]) => `"${name}":${text}`).join(',')}}`
}
