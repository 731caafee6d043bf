/** Compares answers of the API with its OpenAPI document: statuses and header fields. */
import type { FastifyInstance } from 'fastify'
import { DATA_HEADERS, PAGE_HEADERS } from '../../controller/api/http/security-headers.ts'

interface Operation {
  readonly responses: Readonly<
    Record<string, { readonly description: string; readonly headers?: object } | undefined>
  >
}

export interface DeclaredAnswers {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation | undefined>> | undefined>>
}

/** Of HTTP itself, and those that guard browsers: they say nothing of an operation. */
const OF_EVERY_ANSWER = new Set([
  ...['connection', 'content-length', 'content-type', 'date', 'keep-alive', 'transfer-encoding'],
  ...[DATA_HEADERS, PAGE_HEADERS].flatMap((headers) => Object.keys(headers)),
])

let document: DeclaredAnswers | null = null

/** @returns what the document lacks; empty: nothing. Call it before the application is ready. */
export function compareAnswers(app: FastifyInstance): string[] {
  const missing: string[] = []
  app.addHook('onSend', (request, reply, _payload, done) => {
    document ??= app.swagger() as unknown as DeclaredAnswers
    const path = (request.routeOptions.url ?? '').replace(/:([a-z_]+)/g, '{$1}')
    missing.push(...undeclared(document, `${request.method} ${path}`, reply.statusCode, reply.getHeaders()))
    done()
  })
  return missing
}

/** @param of method and path; an operation that the document leaves out lacks nothing */
export function undeclared(
  { paths }: DeclaredAnswers,
  of: string,
  status: number,
  headers: object,
): readonly string[] {
  const [method = '', path = ''] = of.split(' ')
  const operation = paths[path]?.[method.toLowerCase()]
  if (operation === undefined) return []
  const response = operation.responses[status]
  if (response === undefined) return [`${of}: status ${status}`]
  const declared = new Set(Object.keys(response.headers ?? {}).map((header) => header.toLowerCase()))
  return Object.keys(headers)
    .filter((header) => !OF_EVERY_ANSWER.has(header) && !declared.has(header))
    .map((header) => `${of} ${status}: header ${header}`)
}
