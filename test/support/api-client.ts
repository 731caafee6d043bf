import type { FastifyInstance } from 'fastify'
import { createApi, type ApiOptions } from '../../controller/api/server.ts'
import type { ApiWorld } from './api-world.ts'
import { compareAnswers } from './declared-answers.ts'

export interface ApiAnswer {
  readonly status: number
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- tests look into answers field by field
  readonly body: any
  readonly headers: Readonly<Record<string, unknown>>
}

type Method = 'GET' | 'PUT' | 'POST' | 'PATCH' | 'DELETE' | 'HEAD' | 'OPTIONS'

export interface ApiClient {
  readonly app: FastifyInstance
  /** Text and bytes are sent unchanged, everything else as JSON. */
  send(method: Method, path: string, body?: unknown, headers?: Record<string, string>): Promise<ApiAnswer>
}

/**
 * The API of a world, without a socket. Paths are below /api/v1 unless they begin with `//`. An answer that
 * is not in the OpenAPI document fails the test.
 */
export async function apiClient(world: ApiWorld, options: Partial<ApiOptions> = {}): Promise<ApiClient> {
  const app = createApi({
    commands: world.commands,
    views: world.views,
    version: '0.0.0-test',
    inVirtualTime: true,
    ...options,
  })
  const undeclared = compareAnswers(app)
  await app.ready()
  return {
    app,
    async send(method, path, body, headers = {}) {
      const isRaw = typeof body === 'string' || Buffer.isBuffer(body)
      const payload = body === undefined ? {} : { payload: isRaw ? body : JSON.stringify(body) }
      const type = body === undefined ? {} : { 'content-type': 'application/json' }
      const url = path.startsWith('//') ? path.slice(1) : `/api/v1${path}`
      const answer = await app.inject({ method, url, ...payload, headers: { ...type, ...headers } })
      if (undeclared.length > 0)
        throw new Error(`/openapi.json lacks what was answered: ${undeclared.splice(0).join('; ')}`)
      const isJson = /json/.test(String(answer.headers['content-type'])) && answer.body !== ''
      return {
        status: answer.statusCode,
        headers: answer.headers,
        body: isJson ? answer.json() : answer.body,
      }
    },
  }
}
