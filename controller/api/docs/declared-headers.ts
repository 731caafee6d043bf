/** Header fields in the OpenAPI document: of every answer, of the answers of some operations, of requests. */
import { isAnsweredByLeader } from '../http/leader-only.ts'
import { ANSWER_HEADERS_OF, type AnswerHeader } from '../http/operation.ts'

interface Header {
  readonly description: string
  readonly schema: object
}

const TEXT = { type: 'string' }
const NUMBER = { type: 'integer', minimum: 0 }

const HEADERS = {
  'X-Request-Id': { description: 'ID of the request, which is also in the controller log', schema: TEXT },
  'Headroom-Event-Seq': {
    description:
      'Number of the last durable event; send it as Headroom-Min-Event-Seq to read your own writes',
    schema: NUMBER,
  },
  'Retry-After': {
    description: 'Number of seconds to wait before sending the request again',
    schema: NUMBER,
  },
  'Headroom-Not-Leading': {
    description:
      'Only between controllers: the request had Headroom-Forwarded, but this controller is not the ' +
      'leader and has not executed it',
    schema: { type: 'string', enum: ['1'] },
  },
  Location: { description: 'Path of the new resource, or target of a redirect', schema: TEXT },
  ETag: { description: 'Entity tag of the settings; send it as If-Match when you change them', schema: TEXT },
  'Idempotency-Replayed': {
    description: 'The response is that of an earlier request with the same Idempotency-Key',
    schema: { type: 'string', enum: ['true'] },
  },
  'Content-Disposition': { description: 'File name for a download', schema: TEXT },
  'Content-Encoding': { description: 'gzip, if the client accepts it', schema: TEXT },
  Vary: { description: 'Request header that selects the format', schema: TEXT },
  'Set-Cookie': { description: 'Cookie for the sign-in or the session', schema: TEXT },
  'X-Accel-Buffering': { description: 'no: proxies must not buffer the stream', schema: TEXT },
} as const satisfies Readonly<Record<string, Header>>

type HeaderName = keyof typeof HEADERS

/** Any request may have them, and a client need not know them: they are described once, not by operation. */
const REQUEST_HEADERS = {
  'X-Request-Id':
    'ID of the request: up to 64 letters, digits, `.`, `_`, `:` and `-`; any other value is replaced',
  'Headroom-Min-Event-Seq':
    'Number of an event, from Headroom-Event-Seq: a controller with an older state responds with 503 ' +
    'state_behind',
  'Idempotency-Key': 'For POST /tasks: a repeated request with the same key does not create a second task',
  'If-Match':
    'For changes to settings: the change is refused (412) if the ETag of the settings has changed or, ' +
    'with `*`, if the resource does not exist',
  'If-None-Match': '`*`, for PUT /groups/{group_id}: the request is refused (412) if the group exists',
  'Last-Event-ID': 'For a stream: continues after this event; 410 if later events are no longer stored',
  'Headroom-Forwarded':
    'Only between controllers: name of the standby that forwards the request. A standby that receives it ' +
    'responds with 503 no_leader and Headroom-Not-Leading, so that a request is forwarded only once',
} as const

/** Parts of the document that are changed. */
interface Operation {
  [ANSWER_HEADERS_OF]?: readonly AnswerHeader[]
  readonly responses?: Readonly<Record<string, { headers?: object }>>
}

interface Document {
  info?: { description?: string | undefined; title: string; version: string }
  components?: { headers?: object }
  readonly paths?: Readonly<Record<string, object | undefined>>
}

/** Adds the header fields of every answer, in place. */
export function declareHeaders(document: Document): void {
  const ofRequests = Object.entries(REQUEST_HEADERS).map(([name, what]) => `- \`${name}\`: ${what}`)
  const { info } = document
  if (info !== undefined)
    info.description = [info.description, '\nRequest headers:', ...ofRequests].join('\n')
  document.components = { ...document.components, headers: HEADERS }
  for (const [path, methods = {}] of Object.entries(document.paths ?? {}))
    for (const operation of Object.values(methods) as Operation[]) declareIn(operation, path)
}

function declareIn(operation: Operation, path: string): void {
  const own = operation[ANSWER_HEADERS_OF] ?? []
  delete operation[ANSWER_HEADERS_OF]
  for (const [status, response] of Object.entries(operation.responses ?? {})) {
    const names = headersOf(path, Number(status), own)
    response.headers = Object.fromEntries(
      names.map((name) => [name, { $ref: `#/components/headers/${name}` }]),
    )
  }
}

function headersOf(path: string, status: number, own: readonly AnswerHeader[]): readonly HeaderName[] {
  return [
    'X-Request-Id',
    ...(path.startsWith('/api/') ? (['Headroom-Event-Seq'] as const) : []),
    ...(status === 429 || status === 503 ? (['Retry-After'] as const) : []),
    ...(status === 503 && isAnsweredByLeader(path) ? (['Headroom-Not-Leading'] as const) : []),
    ...(status < 400 ? own : own.filter((name) => status === 412 && name === 'ETag')),
  ]
}
