/**
 * What is remembered of requests: durations by route for /metrics, a line in the log for each that may have
 * changed something, and for slow ones.
 */
import type { Socket } from 'node:net'
import { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { callerOf } from '../auth/caller.ts'
import type { ApiApp } from '../context.ts'
import { FAST_SECONDS, Histogram } from './instruments.ts'
import { gauge, type Metrics } from './metrics.ts'

/** An answer that took longer is a warning in the log. */
const SLOW_REQUEST_MS = 1_000

const READING_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS'])
/** Said so often by every lease that a line for each would drown the rest. */
const FREQUENT_ROUTES: ReadonlySet<string> = new Set(['/api/v1/tasks/:task_id/keepalive'])

/** Receives a record of every request. */
export interface RequestRecorder {
  came(request: FastifyRequest): void
  /** @param payload as it will be sent */
  answering(reply: FastifyReply, payload: unknown): void
  /** Its answer is complete. */
  answered(request: FastifyRequest, reply: FastifyReply): void
}

export function recordRequests(app: ApiApp, metrics: Metrics): RequestRecorder {
  const isDebugging = app.log.level === 'debug' || app.log.level === 'trace'
  const inFlight = new InFlight()
  /** Streams that are open, by reply. */
  const streams = new Map<FastifyReply, unknown>()
  const durations = new Histogram({
    name: 'headroom_http_request_duration_seconds',
    help: 'Time from the first byte of a request to the last byte of its response; without streams.',
    labels: ['method', 'route', 'status'],
    bounds: FAST_SECONDS,
  })
  metrics.add(
    durations,
    gauge(
      'headroom_http_requests_in_flight',
      'Requests in progress, including streams.',
      () => inFlight.count,
    ),
    gauge('headroom_http_streams', 'Open streams of server-sent events.', () => streams.size),
    gauge(
      'headroom_http_streams_buffered_bytes',
      'Bytes in open streams that clients have not read yet.',
      () => bufferedBytes(streams),
    ),
  )
  const observe = observersOf(durations)
  return {
    came: ({ raw }) => inFlight.began(raw.socket),
    answering(reply, payload) {
      if (typeof payload === 'string' || !isEventStream(reply)) return
      streams.set(reply, payload)
      reply.raw.once('close', () => streams.delete(reply))
    },
    answered(request, reply) {
      inFlight.ended(request.raw.socket)
      const ms = reply.elapsedTime
      const route = routeOf(request)
      const isStream = streams.has(reply)
      if (!isStream) observe(request.method, route, reply.statusCode, ms / 1000)
      const isSlow = ms > SLOW_REQUEST_MS && !isStream && !isWaiting(request)
      writeLine({ request, reply, route, ms, isSlow, isDebugging })
    },
  }
}

type Observe = (method: string, route: string, status: number, seconds: number) => void

/**
 * Labels are put together once for each of their combinations, of which there are as many as routes, methods
 * and classes of status.
 */
function observersOf(durations: Histogram): Observe {
  const observers = new Map<string, Map<string, ((seconds: number) => void)[]>>()
  return (method, route, status, seconds) => {
    let ofRoute = observers.get(route)
    if (ofRoute === undefined) observers.set(route, (ofRoute = new Map()))
    let ofMethod = ofRoute.get(method)
    if (ofMethod === undefined) ofRoute.set(method, (ofMethod = []))
    const hundreds = Math.floor(status / 100)
    const observer = (ofMethod[hundreds] ??= durations.observer(method, route, `${hundreds}xx`))
    observer(seconds)
  }
}

function bufferedBytes(streams: ReadonlyMap<FastifyReply, unknown>): number {
  let bytes = 0
  for (const [reply, body] of streams) {
    bytes += reply.raw.writableLength
    // The length of a stream of objects is a number of objects and not of bytes.
    if (body instanceof Readable && !body.readableObjectMode) bytes += body.readableLength
  }
  return bytes
}

interface Line {
  readonly request: FastifyRequest
  readonly reply: FastifyReply
  readonly route: string
  readonly ms: number
  readonly isSlow: boolean
  readonly isDebugging: boolean
}

function writeLine(line: Line): void {
  const { request, route, isSlow, isDebugging } = line
  if (isSlow) request.log.warn(factsOf(line), 'slow request')
  else if (READING_METHODS.has(request.method) || FREQUENT_ROUTES.has(route)) {
    if (isDebugging) request.log.debug(factsOf(line), 'request')
  } else request.log.info(factsOf(line), 'request')
}

/** Returns the route and its parameters, never the query or the body: they may be confidential. */
function factsOf({ request, reply, route, ms }: Line): Readonly<Record<string, unknown>> {
  const { task_id, node_id, group_id } = (request.params ?? {}) as Readonly<
    Record<string, string | undefined>
  >
  const madeTask =
    request.method === 'POST'
      ? /\/tasks\/([^/]+)$/.exec(String(reply.getHeader('location') ?? ''))?.[1]
      : undefined
  return {
    method: request.method,
    route,
    status: reply.statusCode,
    ms: Math.round(ms * 100) / 100,
    caller: callerOf(request).name,
    task_id: task_id ?? madeTask,
    node_id,
    group_id,
  }
}

/** Returns the declared path, so the number of labels is bounded. Unknown paths share one label. */
function routeOf(request: FastifyRequest): string {
  return request.is404 ? 'none' : (request.routeOptions.url ?? 'none')
}

function isEventStream(reply: FastifyReply): boolean {
  return String(reply.getHeader('content-type')).startsWith('text/event-stream')
}

/** The client asked to be kept waiting. */
function isWaiting(request: FastifyRequest): boolean {
  return (request.query as { readonly wait?: unknown } | undefined)?.wait !== undefined
}

/**
 * Requests that are not answered yet. They are counted by connection: one that goes away takes along those
 * that it still waited for, and one listener for each connection costs less than one for each answer.
 */

interface Connection {
  waiting: number
  isClosed: boolean
}

export class InFlight {
  readonly #connections = new WeakMap<Socket, Connection>()
  #count = 0

  get count(): number {
    return this.#count
  }

  began(socket: Socket): void {
    const connection = this.#connections.get(socket) ?? this.#open(socket)
    // The end of a request on a closed connection is never reported.
    if (connection.isClosed) return
    connection.waiting += 1
    this.#count += 1
  }

  /** Its answer is complete. */
  ended(socket: Socket): void {
    const connection = this.#connections.get(socket)
    if (connection === undefined || connection.isClosed || connection.waiting === 0) return
    connection.waiting -= 1
    this.#count -= 1
  }

  #open(socket: Socket): Connection {
    const connection = { waiting: 0, isClosed: socket.destroyed }
    this.#connections.set(socket, connection)
    socket.once('close', () => {
      connection.isClosed = true
      this.#count -= connection.waiting
    })
    return connection
  }
}
