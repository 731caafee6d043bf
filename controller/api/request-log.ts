/** What is remembered of requests: durations by route for /metrics, a line in the log for each that may have changed something, and for slow ones. */
import { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { ApiApp } from './context.ts'
import { callerOf } from './caller.ts'
import { FAST_SECONDS, Histogram } from './prometheus/instruments.ts'
import { gauge, type Metrics } from './prometheus/metrics.ts'

/** An answer that took longer is a warning in the log. */
export const SLOW_REQUEST_MS = 1_000

const READING_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS'])
/** Said so often by every lease that a line for each would drown the rest. */
const FREQUENT_ROUTES: ReadonlySet<string> = new Set(['/api/v1/tasks/:task_id/keepalive'])

export function recordRequests(app: ApiApp, metrics: Metrics): void {
  const isDebugging = app.log.level === 'debug' || app.log.level === 'trace'
  let inFlight = 0
  /** What is sent to each reader of a stream. */
  const streams = new Map<FastifyReply, unknown>()
  const durations = new Histogram({
    name: 'headroom_http_request_duration_seconds',
    help: 'From the first byte of a request to the last of its answer; streams are left out.',
    labels: ['method', 'route', 'status'],
    bounds: FAST_SECONDS,
  })
  metrics.add(
    durations,
    gauge('headroom_http_requests_in_flight', 'Requests that are not answered yet, streams among them.', () => inFlight),
    gauge('headroom_http_streams', 'Readers who follow something by server-sent events.', () => streams.size),
    gauge('headroom_http_streams_buffered_bytes', 'What these readers have not taken yet.', () => bufferedBytes(streams)),
  )
  app.addHook('onRequest', (request, reply, done) => {
    inFlight += 1
    // Also where the client goes away and no answer is ever complete.
    reply.raw.once('close', () => {
      inFlight -= 1
      streams.delete(reply)
    })
    done()
  })
  app.addHook('onSend', (_request, reply, payload, done) => {
    if (isStream(reply)) streams.set(reply, payload)
    done(null, payload)
  })
  app.addHook('onResponse', (request, reply, done) => {
    const ms = reply.elapsedTime
    if (!isStream(reply)) durations.observe(ms / 1000, request.method, routeOf(request), `${Math.floor(reply.statusCode / 100)}xx`)
    writeLine(request, reply, ms, isDebugging)
    done()
  })
}

function bufferedBytes(streams: ReadonlyMap<FastifyReply, unknown>): number {
  let bytes = 0
  for (const [reply, body] of streams) {
    bytes += reply.raw.writableLength
    // Of pieces that are not bytes the length says how many there are.
    if (body instanceof Readable && !body.readableObjectMode) bytes += body.readableLength
  }
  return bytes
}

function writeLine(request: FastifyRequest, reply: FastifyReply, ms: number, isDebugging: boolean): void {
  const isSlow = ms > SLOW_REQUEST_MS && !isStream(reply) && !isWaiting(request)
  if (isSlow) request.log.warn(factsOf(request, reply, ms), 'slow request')
  else if (READING_METHODS.has(request.method) || FREQUENT_ROUTES.has(routeOf(request))) {
    if (isDebugging) request.log.debug(factsOf(request, reply, ms), 'request')
  } else request.log.info(factsOf(request, reply, ms), 'request')
}

/** The route and what it names, never the query or the body: they may hold what is nobody else's business. */
function factsOf(request: FastifyRequest, reply: FastifyReply, ms: number): Readonly<Record<string, unknown>> {
  const { task_id, node_id, group_id } = (request.params ?? {}) as Readonly<Record<string, string | undefined>>
  const madeTask = request.method === 'POST' ? /\/tasks\/([^/]+)$/.exec(String(reply.getHeader('location') ?? ''))?.[1] : undefined
  return {
    method: request.method,
    route: routeOf(request),
    status: reply.statusCode,
    ms: Math.round(ms * 100) / 100,
    caller: callerOf(request).name,
    task_id: task_id ?? madeTask,
    node_id,
    group_id,
  }
}

/** As it was declared, so that there are as many as there are routes; what leads nowhere is one more. */
function routeOf(request: FastifyRequest): string {
  return request.is404 ? 'none' : (request.routeOptions.url ?? 'none')
}

function isStream(reply: FastifyReply): boolean {
  const type = reply.getHeader('content-type') ?? reply.raw.getHeader('content-type')
  return String(type).startsWith('text/event-stream')
}

/** The client asked to be kept waiting. */
function isWaiting(request: FastifyRequest): boolean {
  return (request.query as { readonly wait?: unknown } | undefined)?.wait !== undefined
}
