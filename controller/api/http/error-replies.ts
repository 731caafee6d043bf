/** How errors leave the server: always as a problem document, also those that no route has seen. */
import type { Socket } from 'node:net'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { ApiProblem, isFileFault, presentProblem, problemOf } from './errors.ts'
import type { KnownPaths } from './known-paths.ts'
import { REQUEST_TIMEOUT_MS } from './limits.ts'

const PROBLEM_TYPE = 'application/problem+json'

export function replyWithProblems(app: FastifyInstance, paths: KnownPaths): void {
  app.setErrorHandler((error, request, reply) => sendProblem(error, request, reply))
  app.setNotFoundHandler((request, reply) => sendProblem(noRoute(request, paths), request, reply))
}

/**
 * Before the body is read: a wrong path is the first thing to say, whatever was sent to it.
 * @throws ApiProblem when the request leads nowhere.
 */
export function requireRoute(request: FastifyRequest, paths: KnownPaths): void {
  if (request.is404) throw noRoute(request, paths)
}

/** Also called for a path that cannot be decoded, where no hook runs. */
export function sendProblem(error: unknown, request: FastifyRequest, reply: FastifyReply): void {
  const problem = problemOf(error, request.routeOptions?.bodyLimit)
  request.problem = problem.code
  if (problem.status === 500 || isFileFault(problem.cause))
    request.log.error({ err: problem.cause ?? problem }, 'a request failed inside the controller')
  void reply
    .code(problem.status)
    .headers(problem.headers)
    .type(PROBLEM_TYPE)
    .send(presentProblem(problem, request.id))
}

/** Answers bytes that are no HTTP request. */
export function answerBrokenRequest(error: Error & { code?: string }, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy()
    return
  }
  const problem = brokenRequest(error.code)
  const body = JSON.stringify(presentProblem(problem, ''))
  const head = [
    `HTTP/1.1 ${problem.status} ${presentProblem(problem, '').title}`,
    `Content-Type: ${PROBLEM_TYPE}; charset=utf-8`,
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Connection: close',
  ]
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`)
}

function brokenRequest(code: string | undefined): ApiProblem {
  if (code === 'HPE_HEADER_OVERFLOW')
    return new ApiProblem('headers_too_large', 'The headers are larger than 16 KiB.')
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') {
    return new ApiProblem(
      'request_timeout',
      `The request was not received within ${REQUEST_TIMEOUT_MS / 1000} s.`,
    )
  }
  return new ApiProblem('malformed_request', 'This is not an HTTP request.')
}

function noRoute(request: FastifyRequest, paths: KnownPaths): ApiProblem {
  const path = request.url.split('?', 1)[0] ?? ''
  const methods = paths.methodsOf(path)
  // The route of the page's files has the method, and found no file of that name.
  if (methods.length === 0 || methods.includes(request.method))
    return new ApiProblem('route_not_found', `Route ${JSON.stringify(path.slice(0, 200))} not found.`)
  const allow = methods.join(', ')
  return new ApiProblem(
    'method_not_allowed',
    `${path.slice(0, 200)} supports ${allow}, not ${request.method}.`,
    { headers: { allow } },
  )
}
