import { STATUS_CODES } from 'node:http'
import type { FastifyDynamicSwaggerOptions } from '@fastify/swagger'
import type { FastifySchema } from 'fastify'
import { PROBLEMS, type ProblemCode } from '../http/errors.ts'
import { isAnsweredByLeader } from '../http/leader-only.ts'
import { isFileBody, PROBLEMS_OF, roleOf } from '../http/operation.ts'
import { markOptionalBodies } from '../http/optional-body.ts'
import { DOCUMENT_ONLY } from '../http/fields-schema.ts'
import { ProblemRef } from '../http/problem-schema.ts'
import { MEDIA_TYPE, OTHER_MEDIA_TYPES } from '../http/service-schema.ts'
import { declareHeaders } from './declared-headers.ts'

/** The document at /api/v1/openapi.json. It contains shared schemas once, under their own names. */
export function openApiOptions(version: string): FastifyDynamicSwaggerOptions {
  return {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Headroom',
        version,
        description:
          'GPU task controller with VRAM overcommit. JSON, snake_case, RFC 3339 times in UTC, whole MiB. ' +
          'Errors are RFC 9457. Responses have the number of the last durable event in Headroom-Event-Seq; ' +
          'a request with Headroom-Min-Event-Seq is never answered from an older state ' +
          '(503 state_behind).',
        license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
        contact: { name: 'Headroom' },
      },
      servers: [{ url: '/' }],
      components: {
        securitySchemes: {
          token: {
            type: 'http',
            scheme: 'bearer',
            description: 'Required once the first token exists; x-role is the minimum role of a route.',
          },
        },
      },
      tags: [
        { name: 'configuration', description: 'Global settings' },
        { name: 'nodes', description: 'GPU nodes and their settings' },
        { name: 'tasks', description: 'GPU tasks and leases' },
        { name: 'groups', description: 'Named sets of nodes' },
        { name: 'decisions', description: 'Decisions and their inputs' },
        { name: 'events', description: 'Events, in order' },
        { name: 'summary', description: 'Cluster summary' },
        {
          name: 'simulations',
          description:
            'Runs of scenarios, separate from the live cluster. Each session has its own controller, ' +
            'with this complete interface at /api/v1/simulations/{simulation_id}: the same routes, roles ' +
            'and responses.',
        },
        { name: 'access', description: 'Tokens and the audit log of requests' },
        { name: 'service', description: 'Health, version and this document' },
      ],
    },
    convertConstToEnum: false,
    transform: ({ schema, url, route }) => ({ schema: documented(schema, url, String(route.method)), url }),
    transformObject: (document) => {
      if (!('openapiObject' in document)) return document.swaggerObject
      markOptionalBodies(document.openapiObject)
      leaveOutForwarded(document.openapiObject)
      stateDocumentOnly(document.openapiObject)
      declareHeaders(document.openapiObject)
      return document.openapiObject
    },
    refResolver: {
      buildLocalReference: (json, _baseUri, _fragment, index) =>
        typeof json['$id'] === 'string' ? json['$id'] : `def-${index}`,
    },
  }
}

/**
 * Routes that forward requests are described by the routes that answer them: no tool can build a request from
 * a path of any length.
 */
function leaveOutForwarded(document: { paths?: Record<string, unknown> }): void {
  for (const path of Object.keys(document.paths ?? {}))
    if (path.endsWith('/{*}')) delete document.paths?.[path]
}

/** Changes the document in place, at any depth. */
function stateDocumentOnly(part: object): void {
  if (DOCUMENT_ONLY in part) {
    Object.assign(part, part[DOCUMENT_ONLY])
    delete part[DOCUMENT_ONLY]
  }
  for (const value of Object.values(part) as unknown[]) {
    if (typeof value === 'object' && value !== null) stateDocumentOnly(value)
  }
}

/**
 * The route's responses with descriptions, including problems. Compiling a serialiser for each would slow
 * down every start.
 */
function documented(
  schema: FastifySchema & { readonly [PROBLEMS_OF]?: readonly ProblemCode[] },
  url: string,
  method: string,
): FastifySchema {
  const { [PROBLEMS_OF]: own = [], response, ...rest } = schema
  const codes = isAnsweredByLeader(url) ? [...own, ...problemsOfStandby(method)] : own
  const security = roleOf({ schema }) === 'public' ? [] : [{ token: [] }]
  const file = isFileBody(schema) ? FILE : {}
  return {
    ...rest,
    ...file,
    security,
    response: { ...problemResponses(codes), ...successResponses(response ?? {}) },
  }
}

/** Returns the problems of a standby that cannot reach the leader, or whose leader ends before it answers. */
function problemsOfStandby(method: string): readonly ProblemCode[] {
  return method === 'GET' ? ['no_leader'] : ['no_leader', 'commit_unknown']
}

/** Only the document has it as a body: the route reads a stream, which a schema cannot describe. */
const FILE = { body: { description: 'The file' }, consumes: ['application/octet-stream'] }

function successResponses(responses: object): object {
  const described = Object.entries(responses).map(([status, schema]: [string, object]) => {
    if ('type' in schema && schema.type === 'null') return [status, schema]
    const type = MEDIA_TYPE in schema ? String(schema[MEDIA_TYPE]) : 'application/json'
    const { [OTHER_MEDIA_TYPES]: others = [], ...rest } = schema as {
      readonly [OTHER_MEDIA_TYPES]?: readonly string[]
    }
    // A schema describes the data of one event, which OpenAPI 3.1 cannot express; as the schema of the stream
    // it would be wrong.
    if (type === 'text/event-stream') return [status, streamOf(rest)]
    const asText = others.map((other) => [other, { schema: { type: 'string' } }])
    return [
      status,
      {
        description: STATUS_CODES[status] ?? status,
        content: { [type]: { schema: rest }, ...Object.fromEntries(asText) },
      },
    ]
  })
  return Object.fromEntries(described)
}

function streamOf({ description }: { readonly description?: string }): object {
  return {
    description: description ?? 'Server-sent events',
    content: { 'text/event-stream': { schema: { description: 'Server-sent events' } } },
  }
}

function problemResponses(codes: readonly ProblemCode[]): object {
  // A request that changes the store may end with a commit of unknown outcome.
  const all = codes.flatMap((code) => (code === 'store_failed' ? [code, 'commit_unknown' as const] : code))
  const ofStatus = Map.groupBy(new Set(all), (code) => PROBLEMS[code].status)
  const responses = [...ofStatus].map(([status, ofOne]) => {
    const description = ofOne.map((code) => `${PROBLEMS[code].title} (${code})`).join('; ')
    return [status, { description, content: { 'application/problem+json': { schema: ProblemRef } } }]
  })
  return Object.fromEntries(responses)
}
