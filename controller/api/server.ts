/**
 * The REST API: requests in, commands to the engine and views of it out. Building it and listening are
 * two things.
 */
import swagger from '@fastify/swagger'
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox'
import fastify, {
  LogController,
  type FastifyBaseLogger,
  type FastifyHttpOptions,
  type FastifyInstance,
  type RawServerDefault,
} from 'fastify'
import type { Commands } from '../model/command.ts'
import type { EventSource } from '../engine/durable-events.ts'
import type { Views } from '../query/views.ts'
import type { Simulation } from '../ports/simulation.ts'
import type { Handover } from '../ports/handover.ts'
import type { Blobs } from '../ports/blobs.ts'
import type { TaskChannels } from '../ports/task-channels.ts'
import type { TaskFiles } from '../ports/task-files.ts'
import type { TaskLogs } from '../ports/task-logs.ts'
import type { Twin } from '../ports/twin.ts'
import { Series } from '../series/series.ts'
import { createAccess, type Access } from './auth/access.ts'
import { addAuditing, admit } from './auth/gate.ts'
import { limitConnections, type ConnectionRefusals } from './http/connection-limits.ts'
import { endStreamsWithTheirTokens, StreamsOfTokens } from './auth/open-streams.ts'
import { prepareCallers } from './auth/caller.ts'
import type { ApiApp, ApiContext, Build, ReadinessCheck } from './context.ts'
import { requireDeclaredRoles } from './http/declared-roles.ts'
import { createSummary } from './observe/current-summary.ts'
import { createPendingReasons } from './observe/pending-reasons.ts'
import type { SummaryBody } from './observe/summary-schema.ts'
import { answerBrokenRequest, replyWithProblems, requireRoute, sendProblem } from './http/error-replies.ts'
import { EventFeed } from './observe/event-feed.ts'
import { handleEveryRequest } from './http/every-request.ts'
import { readJsonBodies } from './http/json-body.ts'
import { KnownPaths } from './http/known-paths.ts'
import {
  BODY_LIMIT_BYTES,
  HEADERS_TIMEOUT_MS,
  MAX_CONNECTIONS,
  REQUEST_TIMEOUT_MS,
  TIMEOUTS_CHECKED_EVERY_MS,
  URI_PARAMETER_LIMIT,
} from './http/limits.ts'
import { openApiOptions } from './docs/openapi.ts'
import { addClusterMetrics, addTwinMetrics } from './metrics/cluster-metrics.ts'
import type { ValueFamily } from './metrics/exposition.ts'
import { counters, gauges, Metrics } from './metrics/metrics.ts'
import { servePage } from './http/page.ts'
import { requestIdOf, createRequestLogger } from './http/request-logger.ts'
import { recordRequests } from './metrics/request-log.ts'
import { configRoutes } from './config/routes.ts'
import { capabilityRoutes } from './auth/capability-routes.ts'
import { gpuRoutes } from './gpus/routes.ts'
import { ownerRoutes } from './owners/routes.ts'
import { blobRoutes } from './files/blob-routes.ts'
import { channelRoutes } from './channels/routes.ts'
import { isChannelUpgrade } from './channels/upgrade.ts'
import { groupRoutes } from './groups/routes.ts'
import { authRoutes } from './auth/routes.ts'
import { endpointRoutes } from './endpoints/routes.ts'
import { leaderRoutes } from './leader/routes.ts'
import { observeRoutes } from './observe/routes.ts'
import { metricsRoutes } from './metrics/routes.ts'
import { nodeRoutes } from './nodes/routes.ts'
import { healthRoutes, openApiRoutes } from './docs/routes.ts'
import { simulationRoutes } from './simulations/routes.ts'
import { NO_OWNER_LIMITS, type OwnerLimits } from '../model/owner-limits.ts'
import { TaskWaits } from './tasks/task-waits.ts'
import { taskRoutes } from './tasks/routes.ts'
import { twinRoutes } from './twin/routes.ts'
import { ConfigSchema } from './config/schema.ts'
import { DecisionSchema } from './observe/decision-schema.ts'
import { EventSchema } from './observe/event-schema.ts'
import { DOCUMENT_ONLY } from './http/fields-schema.ts'
import { GroupPreviewSchema, GroupSchema } from './groups/schema.ts'
import { NodeSchema } from './nodes/schema.ts'
import { PlacementPreviewSchema } from './tasks/preview-schema.ts'
import { ProblemSchema } from './http/problem-schema.ts'
import { SimulationSchema } from './simulations/schema.ts'
import { TaskSchema } from './tasks/schema.ts'
import { SCHEMA_COMPILERS } from './http/schema-compilers.ts'

export interface ApiOptions {
  readonly commands: Commands
  readonly views: Views
  readonly version: string
  readonly build?: Build
  readonly logger?: FastifyBaseLogger
  /** The folder of the built page (page.ts); if omitted, no page is served. */
  readonly uiDir?: string
  /** Kind of the fleet, for /summary and /version. */
  readonly fleet?: 'simulated' | 'live'
  /** Addresses of the message broker, without credentials. Left out without a broker. */
  readonly brokerUrls?: readonly string[]
  /** The controllers of the store, for /summary; if omitted, this one has no standby. */
  readonly controllers?: () => SummaryBody['controllers']
  /** The controllers of the store; if omitted, GET /leader is refused. */
  readonly handover?: Handover
  /** No timer is set then, and request ids are counted instead of drawn. */
  readonly inVirtualTime?: boolean
  /** The series of the cluster; if omitted, /summary counts from its first request. */
  readonly series?: Series
  /** Events as they become durable; without it streams tell of none. */
  readonly events?: EventSource
  /** Number of the last durable event; without it answers do not carry it. */
  readonly eventSeq?: () => number
  /** A commit has failed: this process ends, and answers nothing from memory. Default: none fails. */
  readonly isFaulty?: () => boolean
  /** Limits of one owner; without them an owner may use everything. */
  readonly ownerLimits?: OwnerLimits
  /** Output of tasks; if omitted, it cannot be read. */
  readonly logs?: TaskLogs
  /** Work folders of tasks; if omitted, they cannot be read. */
  readonly files?: TaskFiles
  /** Channels into tasks; if omitted, none are opened. */
  readonly channels?: TaskChannels
  /** Uploaded files; if omitted, tasks cannot have any. */
  readonly blobs?: Blobs
  /** The simulator; if omitted, there are no simulations. */
  readonly simulation?: Simulation
  /** Simulates the live state; if omitted, there are no forecasts. */
  readonly twin?: Twin
  /** Metrics in addition to those of the cluster and of requests, added by the caller. */
  readonly metrics?: Metrics
  /** Conditions of /readyz; without any, the controller is ready. */
  readonly readiness?: () => readonly ReadinessCheck[]
  /** Access control; if omitted, every caller has all permissions (a simulated world). */
  readonly access?: Access
  /** Proxies whose client address headers are trusted. */
  readonly trustedProxies?: readonly string[]
  /** Compilers other than those that compile a schema at its first use. */
  readonly schemaCompilers?: typeof SCHEMA_COMPILERS
}

/** They stand in the document once, under their own names. */
const SHARED_SCHEMAS = [
  ConfigSchema,
  DecisionSchema,
  EventSchema,
  GroupSchema,
  GroupPreviewSchema,
  NodeSchema,
  PlacementPreviewSchema,
  ProblemSchema,
  SimulationSchema,
  TaskSchema,
]

export function createApi(options: ApiOptions): FastifyInstance {
  const {
    commands,
    views,
    version,
    uiDir,
    fleet = 'live',
    readiness = () => [],
    series = new Series(views),
    logs = null,
    files = null,
    channels = null,
    blobs = null,
    simulation = null,
    twin = null,
  } = options
  const {
    build = { commit: null, schema: null, storeKind: null },
    metrics = new Metrics(),
    ownerLimits = NO_OWNER_LIMITS,
  } = options
  const access = options.access ?? createAccess({ book: null, now: () => views.now() })
  const pendingReasons = createPendingReasons(views)
  const summary = createSummary({
    ...{ views, fleet, series, pendingReasons },
    brokerUrls: options.brokerUrls ?? [],
    controllers: options.controllers ?? (() => null),
  })
  const feed = new EventFeed({
    source: options.events ?? SILENT,
    stored: views.stored,
    summary: () => (options.isFaulty?.() === true ? null : summary.now()),
  })
  const waits = options.inVirtualTime === true ? null : new TaskWaits(options.events ?? SILENT)
  const api: ApiContext = {
    access,
    events: options.events ?? SILENT,
    commands,
    views,
    series,
    summary,
    feed,
    waits,
    ownerLimits,
    ...{ logs, files, channels, blobs },
    simulation,
    ...{ twin, handover: options.handover ?? null },
    version,
    build,
    metrics,
    fleet,
    readiness,
    streams: new StreamsOfTokens(),
  }
  const app: ApiApp = fastify(serverOptions(options)).withTypeProvider<TypeBoxTypeProvider>()
  // The same server without the types of its schemas.
  const untyped = app as unknown as FastifyInstance
  app.server.maxConnections = MAX_CONNECTIONS
  const refusals = limitConnections(app.server, options.trustedProxies ?? [])
  const paths = new KnownPaths()

  app.addHook('onRoute', ({ url, method }) => paths.add(url, [method].flat()))
  requireDeclaredRoles(untyped)
  prepareCallers(untyped)
  readJsonBodies(untyped)
  replyWithProblems(untyped, paths)
  const { peers } = access
  if (peers !== null) untyped.addHook('onRequest', ({ raw }) => peers.identified(raw.socket))
  const isInRealTime = options.inVirtualTime !== true
  handleEveryRequest(untyped, {
    admit: (request) => admit(request, access, views),
    requireRoute: (request) => requireRoute(request, paths),
    recorder: isInRealTime ? recordRequests(app, metrics) : null,
    answering: isInRealTime ? endStreamsWithTheirTokens(untyped, access.authenticator) : null,
    audit: addAuditing(untyped, access.trail),
    eventSeq: options.eventSeq ?? null,
    isFaulty: options.isFaulty ?? null,
  })
  // Before the server waits for requests that are under way.
  app.addHook('preClose', (done) => {
    waits?.close()
    done()
  })
  addClusterMetrics(metrics, { views, series, fleet, pendingReasons })
  addTwinMetrics(metrics, twin)
  metrics.add(buildInfo(api), connectionRefusals(refusals))
  for (const schema of SHARED_SCHEMAS) app.addSchema(schema)
  void app.register(swagger, openApiOptions(version))
  void app.register(async (scope: ApiApp) => addRoutes(scope, api), { prefix: '/api/v1' })
  void app.register(async (scope: ApiApp) => healthRoutes(scope, api, 'AtRoot'))
  void app.register(async (scope: ApiApp) => metricsRoutes(scope, api, 'AtRoot'))
  if (uiDir !== undefined)
    void app.register(async (scope) => servePage(scope as unknown as FastifyInstance, uiDir))
  return untyped
}

const SILENT: EventSource = { subscribe: () => () => {} }

function serverOptions({
  logger,
  inVirtualTime = false,
  trustedProxies = [],
  schemaCompilers = SCHEMA_COMPILERS,
}: ApiOptions): FastifyHttpOptions<RawServerDefault> {
  let requests = 0
  return {
    ...(logger === undefined
      ? { logger: false }
      : { loggerInstance: logger.child({}), childLoggerFactory: createRequestLogger }),
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: 'request_id' }),
    bodyLimit: BODY_LIMIT_BYTES,
    requestTimeout: REQUEST_TIMEOUT_MS,
    http: {
      headersTimeout: HEADERS_TIMEOUT_MS,
      connectionsCheckingInterval: TIMEOUTS_CHECKED_EVERY_MS,
      shouldUpgradeCallback: isChannelUpgrade,
    },
    ...(trustedProxies.length === 0 ? {} : { trustProxy: [...trustedProxies] }),
    // An open page would keep the server from closing.
    forceCloseConnections: true,
    return503OnClosing: false,
    ...(inVirtualTime ? { pluginTimeout: 0 } : {}),
    genReqId: inVirtualTime ? () => `request-${(requests += 1)}` : requestIdOf,
    routerOptions: { maxParamLength: URI_PARAMETER_LIMIT },
    ajv: { customOptions: AJV_OPTIONS },
    schemaController: { compilersFactory: schemaCompilers },
    frameworkErrors: sendProblem,
    clientErrorHandler: answerBrokenRequest,
  }
}

/**
 * What was sent is taken as it is or refused: nothing is converted, left out or filled in. Stops at the first
 * fault.
 */
const AJV_OPTIONS = {
  coerceTypes: false,
  removeAdditional: false,
  useDefaults: false,
  allErrors: false,
  verbose: true,
  allowUnionTypes: true,
  keywords: ['x-allowed', DOCUMENT_ONLY],
}

function addRoutes(app: ApiApp, api: ApiContext): void {
  capabilityRoutes(app, api)
  configRoutes(app, api)
  nodeRoutes(app, api)
  taskRoutes(app, api)
  channelRoutes(app, api)
  gpuRoutes(app, api)
  ownerRoutes(app, api)
  endpointRoutes(app, api)
  blobRoutes(app, api)
  groupRoutes(app, api)
  observeRoutes(app, api)
  twinRoutes(app, api)
  authRoutes(app, api)
  leaderRoutes(app, api)
  simulationRoutes(app, api)
  healthRoutes(app, api, '')
  metricsRoutes(app, api, '')
  openApiRoutes(app)
}

function connectionRefusals(refusals: ConnectionRefusals): ValueFamily {
  const help =
    'Connections that were closed immediately because there were too many from the same address ' +
    '(address) or in total (total).'
  return counters('headroom_http_connections_refused_total', help, ['limit'], () => [
    { labels: ['address'], value: refusals.perAddress },
    { labels: ['total'], value: refusals.inAll },
  ])
}

function buildInfo({ version, build, fleet }: ApiContext): ValueFamily {
  const labels = [version, build.commit ?? 'unknown', process.version, fleet]
  return gauges(
    'headroom_build_info',
    'Build information; always 1.',
    ['version', 'commit', 'runtime', 'fleet'],
    () => [{ labels, value: 1 }],
  )
}
