/** How bodies are read: JSON in UTF-8 up to a limit, strictly; nothing else. */
import { isUtf8 } from 'node:buffer'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { ApiProblem, invalidField } from './errors.ts'
import { BODY_LIMIT_BYTES } from './limits.ts'
import { JsonFlaw, parseStrictJson } from './strict-json.ts'

/** Replaces every parser that Fastify brings. An empty body counts as none. */
export function readJsonBodies(app: FastifyInstance): void {
  app.removeAllContentTypeParsers()
  const options = { parseAs: 'buffer', bodyLimit: BODY_LIMIT_BYTES } as const
  const read = async (request: FastifyRequest, body: Buffer) => readJson(request, body)
  app.addContentTypeParser('application/json', options, read)
  app.addContentTypeParser('application/merge-patch+json', options, read)
}

/** A route whose schema has a body needs one. */
export function requireBody(body: unknown): void {
  if (body === undefined) throw invalidField('', 'the body must be an object, but is missing')
}

/** A route without a body schema takes no body: what it would ignore is refused. */
export function requireNoBody(body: unknown): void {
  const isEmpty =
    body === undefined ||
    (typeof body === 'object' && body !== null && !Array.isArray(body) && Object.keys(body).length === 0)
  if (!isEmpty) throw invalidField('', 'this route accepts no body')
}

function readJson(request: FastifyRequest, body: Buffer): unknown {
  if (body.length === 0) return undefined
  requireReadable(request, body)
  try {
    return parseStrictJson(body.toString('utf8'))
  } catch (error) {
    if (!(error instanceof JsonFlaw)) throw error
    throw new ApiProblem('malformed_json', `The body is not valid JSON: ${error.message}.`, {
      errors: [{ pointer: '', detail: error.message }],
    })
  }
}

function requireReadable(request: FastifyRequest, body: Buffer): void {
  const encoding = request.headers['content-encoding'] ?? 'identity'
  if (encoding !== 'identity')
    throw new ApiProblem('unsupported_media_type', 'Send the body without a Content-Encoding.')
  if (request.mediaType === 'application/merge-patch+json' && request.method !== 'PATCH') {
    throw new ApiProblem(
      'unsupported_media_type',
      `Only PATCH accepts ${request.mediaType}. Send application/json.`,
    )
  }
  if (!isUtf8(body)) throw new ApiProblem('malformed_json', 'The body is not UTF-8.')
}
