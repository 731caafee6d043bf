/**
 * What happens to every request, in the order in which it happens: one hook for each stage, and none for a
 * route that needs none. A hook costs more than most of what is done in ours
 * (docs/decisions/0062-one-hook-a-stage.md).
 */
import type {
  FastifyInstance,
  FastifyReply,
  FastifyRequest,
  RouteOptions,
  preValidationHookHandler,
} from 'fastify'
import type { DryRunQuery } from '../config/impact-schema.ts'
import type { RequestRecorder } from '../metrics/request-log.ts'
import { invalidField, type ApiProblem } from './errors.ts'
import { EVENT_SEQ, MIN_EVENT_SEQ, requireReached } from './event-seq.ts'
import { requireBody, requireNoBody } from './json-body.ts'
import { afterFailedCommit } from './leader-only.ts'
import { canonicalId } from './names.ts'
import { isConditional, isForwarded } from './operation.ts'
import { mayBeLeftOut } from './optional-body.ts'
import { refuseConditions } from './preconditions.ts'
import { DATA_HEADERS, PAGE_HEADERS } from './security-headers.ts'

interface EveryRequest {
  /** null: let in; else what has to be looked up first. Throws ApiProblem when it is kept out. */
  readonly admit: (request: FastifyRequest) => Promise<void> | null
  /** Throws ApiProblem when it leads nowhere. */
  readonly requireRoute: (request: FastifyRequest) => void
  /** null: requests are not counted (virtual time). */
  readonly recorder: RequestRecorder | null
  /** null: streams are not ended (virtual time). */
  readonly answering: ((request: FastifyRequest, reply: FastifyReply, payload: unknown) => void) | null
  readonly audit: (request: FastifyRequest, status: number) => void
  /** Number of the last durable event; null: answers do not carry it. */
  readonly eventSeq: (() => number) | null
  /** A commit has failed; null: none fails (virtual time). */
  readonly isFaulty: (() => boolean) | null
}

/** Must be called before the first route is added. */
export function handleEveryRequest(app: FastifyInstance, every: EveryRequest): void {
  const { admit, requireRoute, recorder, answering, audit, eventSeq, isFaulty } = every
  const refused = ({ routeOptions }: FastifyRequest): ApiProblem | null =>
    isFaulty?.() === true ? afterFailedCommit(routeOptions.url ?? '') : null
  app.addHook('onRequest', (request, reply, done) => {
    recorder?.came(request)
    reply
      .headers(request.url.startsWith('/api/') ? DATA_HEADERS : PAGE_HEADERS)
      .header('x-request-id', request.id)
    let isOwn: Promise<void> | null
    try {
      isOwn = admit(request)
      if (isOwn === null) requireRoute(request)
      const problem = refused(request)
      if (problem !== null) throw problem
      if (eventSeq !== null) requireReached(request.headers[MIN_EVENT_SEQ], eventSeq())
    } catch (error) {
      done(error as Error)
      return
    }
    if (isOwn === null) done()
    else isOwn.then(() => done(), done)
  })
  app.addHook('onRoute', (route) => {
    const checks = [...(route.url.includes('/:node_id') ? [readNodeId] : []), shapeCheck(route)].filter(
      (check) => check !== null,
    )
    if (checks.length > 0) route.preValidation = [...checks, ...[route.preValidation ?? []].flat()]
  })
  if (recorder !== null || answering !== null || eventSeq !== null || isFaulty !== null) {
    app.addHook('onSend', (request, reply, payload, done) => {
      // A read that began before the commit failed. A change was answered once it was durable.
      const problem = isBodyless(request.method) && request.problem === null ? refused(request) : null
      if (problem !== null) {
        done(problem)
        return
      }
      if (eventSeq !== null && request.url.startsWith('/api/')) reply.header(EVENT_SEQ, String(eventSeq()))
      recorder?.answering(reply, payload)
      answering?.(request, reply, payload)
      done(null, payload)
    })
  }
  app.addHook('onResponse', (request, reply, done) => {
    audit(request, reply.statusCode)
    recorder?.answered(request, reply)
    done()
  })
}

/** A node's id is case-insensitive in a path. */
const readNodeId: preValidationHookHandler = (request, _reply, done) => {
  const params = request.params as { node_id: string }
  params.node_id = canonicalId(params.node_id)
  done()
}

/**
 * Query parameters that were read, and a body and conditions where they are taken and nowhere else; null: the
 * route has nothing to look at.
 */
function shapeCheck({ method, schema }: RouteOptions): preValidationHookHandler | null {
  if (isForwarded(schema)) return null
  const read = queryReader(schema?.querystring ?? {})
  const hasBody = schema?.body !== undefined
  const isBodyOptional = mayBeLeftOut(schema?.body)
  const changesNothing = [method].flat().every(isBodyless)
  const readsConditions = changesNothing || isConditional(schema)
  // The body of a GET request is never read.
  if (read === null && !hasBody && changesNothing) return null
  return (request, _reply, done) => {
    read?.(request.query as Record<string, unknown>)
    // A body of `null` was sent and is not an object.
    if (isBodyOptional && request.body === undefined) request.body = {}
    requireDryRun(request.query as DryRunQuery)
    if (!readsConditions) refuseConditions(request.headers)
    if (hasBody) requireBody(request.body)
    else requireNoBody(request.body)
    done()
  }
}

/**
 * An option for the response of a dry run is not a dry run: a request that lacks dry_run would change the
 * cluster.
 */
function requireDryRun({ dry_run: isDryRun, forecast }: DryRunQuery): void {
  if (typeof forecast !== 'boolean' || isDryRun === true) return
  throw invalidField('/forecast', 'query parameter forecast requires dry_run=true')
}

function isBodyless(method: string): boolean {
  return method === 'GET' || method === 'HEAD'
}

/**
 * Query parameters arrive as text. Where the schema wants a number or a boolean, exactly written ones become
 * one; all else stays text.
 */

interface QuerySchema {
  readonly properties?: Readonly<Record<string, { readonly type?: unknown }>>
}

/** Changes a query in place. What could not be read is left for the schema to refuse. */
type QueryReader = (query: Record<string, unknown>) => void

/** The largest integer that a number can hold has 16 digits; the schema refuses what is larger. */
const INTEGER = /^-?(?:0|[1-9]\d{0,15})$/

/** @returns null when all parameters are texts. */
function queryReader(schema: QuerySchema): QueryReader | null {
  const typed = Object.entries(schema.properties ?? {}).filter(
    ([, { type }]) => type === 'integer' || type === 'boolean',
  )
  if (typed.length === 0) return null
  return (query) => {
    for (const [name, { type }] of typed) {
      const value = query[name]
      if (typeof value !== 'string') continue
      if (type === 'integer' && INTEGER.test(value)) query[name] = Number(value)
      if (type === 'boolean' && (value === 'true' || value === 'false')) query[name] = value === 'true'
    }
  }
}
