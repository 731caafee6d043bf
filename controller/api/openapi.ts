import { STATUS_CODES } from 'node:http'
import type { FastifyDynamicSwaggerOptions } from '@fastify/swagger'

/** The document at /api/v1/openapi.json. Shared schemas stand in it once, under their own names. */
export function openApiOptions(version: string): FastifyDynamicSwaggerOptions {
  return {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Headroom',
        version,
        description: 'GPU task controller with VRAM overcommit. JSON, snake_case, RFC 3339 times in UTC, whole MiB. Errors are RFC 9457.',
        license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
      },
      servers: [{ url: '/' }],
      tags: [
        { name: 'configuration', description: 'Global settings' },
        { name: 'nodes', description: 'GPU nodes and their settings' },
        { name: 'tasks', description: 'GPU execution requests' },
        { name: 'groups', description: 'Named sets of nodes' },
        { name: 'events', description: 'What happened, in order' },
        { name: 'summary', description: 'The cluster on one page' },
        { name: 'service', description: 'Health, version, this document' },
      ],
    },
    convertConstToEnum: false,
    transform: ({ schema, url }) => ({ schema: { ...schema, response: describeAnswers(schema?.response) }, url }),
    refResolver: {
      buildLocalReference: (json, _baseUri, _fragment, index) => (typeof json['$id'] === 'string' ? json['$id'] : `def-${index}`),
    },
  }
}

/** Problems bring their own description; the others get the words of their status. */
function describeAnswers(responses: unknown): object {
  const described = Object.entries(responses ?? {}).map(([status, schema]: [string, object]) => {
    const isEmpty = 'type' in schema && schema.type === 'null'
    if ('content' in schema || isEmpty) return [status, schema]
    return [status, { description: STATUS_CODES[status] ?? status, content: { 'application/json': { schema } } }]
  })
  return Object.fromEntries(described)
}
