/**
 * `headroom serve`: the controller over its store, with GPU servers over a broker, or with an embedded
 * simulated fleet when no broker is configured.
 */
import { existsSync } from 'node:fs'
import { Server as NetServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { FastifyInstance } from 'fastify'
import type { Logger } from 'pino'
import type { Access } from '../../controller/api/auth/access.ts'
import { createApi } from '../../controller/api/server.ts'
import { collectBlobs, openBlobs } from './uploaded-files.ts'
import { createSeriesFiles } from '../../controller/adapters/series-files.ts'
import { describePlace } from '../../controller/adapters/postgres/store-url.ts'
import { SCHEMA_VERSION } from '../../controller/adapters/sqlite/migrations.ts'
import type { ControllerOptions } from '../../controller/controller.ts'
import type { Peers } from '../../controller/api/auth/authenticator.ts'
import type { Bus } from '../../controller/ports/bus.ts'
import type { ConfigFields } from '../../controller/model/config.ts'
import type { Store } from '../../controller/ports/store.ts'
import { adminToken, httpAccess, requireToken, requireTokenForTcp, browserSignIn } from './http-access.ts'
import { openStore, type DurableStore } from './open-store.ts'
import { openSimulationServices } from './simulation-services.ts'
import { monitorDisk, ownChecks } from './readiness.ts'
import { ENVIRONMENT } from '../settings/env-table.ts'
import { createEventLog } from './event-log.ts'
import { StartFault } from '../exit-codes.ts'
import {
  startLiveFleet,
  startLocalFleet,
  readFleet,
  startSimulatedFleet,
  type ServedFleet,
  type FleetScenario,
} from './served-fleet.ts'
import { listenUnlogged } from '../listen-unlogged.ts'
import { createLog } from '../log.ts'
import { auditOfClients } from './log.ts'
import { natsSettings, type NatsSettings } from '../settings/nats-settings.ts'
import { packageCommit, packageRoot, packageVersion } from '../package-info.ts'
import { openSecretsKey, requireKeyOf } from './secrets-key.ts'
import { startRecording } from './recording.ts'
import { createControllers, createHandover } from './controllers.ts'
import { createServedMetrics, uploadMetrics } from './served-metrics.ts'
import { readSettings, unreadVariables, type Settings } from '../settings/settings.ts'
import { removePartialUploads } from '../simulations/library/partial-uploads.ts'
import { untilSignal } from '../until-signal.ts'
import { errorText } from '../../protocol/error-text.ts'

/** Time for work in progress to end after a signal. */
const STOP_TIMEOUT_MS = 8_000
/** For requests in progress at a handover; open streams are cut after it. */
const REQUESTS_END_WITHIN_MS = 200
const REQUESTS_ARRIVE_WITHIN_MS = 50

/** Options of the command line. */
export interface ServeOptions {
  /** The mark that the store need not reach. */
  readonly acceptLoss?: string
  /** Discards values that the key cannot decrypt. */
  readonly newSecretsKey?: boolean
  /** The GPU server in this process, instead of those over a broker. */
  readonly local?: LocalServing
}

/** Replacements for `headroom gpu-server --standalone`: the bus, and the address of the interface. */
export interface LocalServing {
  readonly bus: Bus
  readonly api: {
    readonly peers: Peers
    readonly hasTcp: boolean
    /** Resolves with the address, for the line at the start. */
    listen(app: FastifyInstance): Promise<string>
    close(): void
  }
}

/** A controller that listens. */
export interface Serving {
  /** The line at the start. */
  readonly describe: string
  /** Resolves when an operator asks this leader to resign. */
  readonly asked: Promise<Resignation>
  /** Also closes the store. Ends the process if work in progress does not end. */
  stop(resignation?: Resignation): Promise<void>
}

interface Resignation {
  /** The next leader; null: any other. */
  readonly to: string | null
}

/** Runs until SIGINT or SIGTERM. Throws as `startServing` does. */
export async function serve(env: Environment, options: ServeOptions = {}): Promise<void> {
  const signalled = untilSignal()
  // The options apply to the first start.
  for (let given = options; ; given = {}) {
    const serving = await startServing(env, given)
    process.stdout.write(serving.describe)
    const resignation = await Promise.race([signalled, serving.asked])
    await serving.stop(resignation ?? undefined)
    // After it has resigned, this controller is a standby.
    if (!resignation) return
  }
}

type Environment = Readonly<Record<string, string | undefined>>

/** Throws SettingsError, StoreFault or StartFault when it cannot start; each says why in one line. */
export async function startServing(env: Environment, options: ServeOptions = {}): Promise<Serving> {
  const { local = null, newSecretsKey: isNewKey = false } = options
  const settings = local === null ? readSettings(env) : { ...readSettings(env), storeKind: 'live' as const }
  const nats = natsSettings(env)
  const token = adminToken(env)
  const signIn = settings.oidc === null ? null : browserSignIn(settings.oidc)
  const managed = managedFleet(settings, nats, local)
  const log = createLog(settings.logLevel)
  if (token !== null && token.warning !== null) log.warn(token.warning)
  for (const line of unreadVariables(env)) log.warn(line)
  const measured = createServedMetrics()
  const key = openSecretsKey(settings)
  const loss = lossOfStore(log)
  removeCutOffUploads(settings, log)
  const asked = Promise.withResolvers<Resignation>()
  const hearing = { onCommit: measured.onCommit, onLost: loss.end, onAsked: asked.resolve }
  const given = { acceptLoss: options.acceptLoss, key: { ...key, isNew: isNewKey } }
  const opened = await openStore(settings, { ...given, ...hearing }, log)
  const store = isNewKey ? opened : requireKeyOf(opened, key)
  await requireTokenFor(local, settings, token, store)
  let access: Access | null = null
  const recording = startRecording(settings, log)
  const blobs = await openBlobs(settings, store)
  const logEvents = createEventLog(log, 'played' in managed ? 'simulated' : 'live')
  const how: ControllerOptions = {
    series: { archive: seriesArchive(settings, log) },
    onEvents: (events) => {
      measured.onEvents(events)
      logEvents(events)
    },
    // Deferred: an audit entry is an input itself and must follow the input that reported it.
    onRefused: (senderId, reason) => queueMicrotask(() => access?.trail?.messageRefused(senderId, reason)),
    ...(recording === null ? {} : { inputTap: recording.tap }),
    ...{ ...ofCluster(settings), sealer: key.sealer, blobs },
    clientRequestsPerSecond: settings.clientRequestsPerSecond,
    clientAudit: auditOfClients(() => access?.trail ?? null),
    initialConfig: initialConfig(env, settings, managed),
    onFault: (fault) => loss.end(fault, store),
  }
  const fleet = await startFleet(managed, store, log, how)
  const { controller } = fleet
  const { commands, views, events, logs, files, channels, series } = controller
  const stopCollecting = collectBlobs(blobs, views, log)
  access = httpAccess(settings, token, signIn, controller, key.sealer, local?.api.peers ?? null)
  const disk = monitorDisk(settings.dataDir)
  const leadership = leadershipOf(store)
  measured.watch({
    ...{ controller, dropped: fleet.dropped, recording: recording?.files ?? null },
    ...leadership,
    ...{ commitQueueDepth: () => store.queueDepth(), diskFreeBytes: () => disk.freeBytes() },
  })
  const { dataDir, uploads } = settings
  const simulationServices = await openSimulationServices({ controller, dataDir, uploads, log: warning(log) })
  measured.metrics.add(...uploadMetrics(simulationServices.simulation.uploadBytes, settings.uploads.maxBytes))
  const app = createApi({
    ...{ commands, views, events, logs, files, channels, blobs, series },
    ...{ simulation: simulationServices.simulation, twin: simulationServices.twin },
    ...{ version: packageVersion(), eventSeq: () => controller.status.durableEventSeq },
    isFaulty: () => loss.hasHappened,
    build: { commit: packageCommit(), schema: SCHEMA_VERSION, storeKind: settings.storeKind },
    metrics: measured.metrics,
    ...{ fleet: fleet.kind, brokerUrls: nats?.urls ?? [] },
    controllers: createControllers(settings.among.name, store.term?.before ?? null, leadership.succession),
    handover: createHandover(store, settings.among.name, controller, asked.resolve),
    logger: log,
    ...builtPage(),
    readiness: () => [...ownChecks(controller, measured.process), ...fleet.readiness(), disk.check()],
    access,
    ...{ ownerLimits: settings.ownerLimits, trustedProxies: settings.trustedProxies },
  })
  const url = await listenOrStop(local?.api.listen(app) ?? listen(app, settings, store), fleet)
  await store.serves?.()
  const about = `data in ${placesOf(settings)}; ${withAuthenticator(access)}; press Ctrl-C to stop`
  return {
    describe: `Headroom ${packageVersion()} runs ${fleet.describe} on ${url} (${about})\n`,
    asked: asked.promise,
    async stop(resignation) {
      const timer = setTimeout(() => process.exit(1), STOP_TIMEOUT_MS).unref()
      stopCollecting()
      await simulationServices.close()
      local?.api.close()
      if (resignation !== undefined) await finishRequests(app)
      await app.close()
      loss.isExpected = true
      if (resignation !== undefined) await store.resign?.(resignation.to)
      await fleet.stop()
      await recording?.files.close()
      disk.stop()
      measured.process.stop()
      clearTimeout(timer)
    },
  }
}

/**
 * Accepts no more connections, and lets requests in progress end: their clients need no second try. The close
 * of an HTTP server would cut connections whose request is on its way.
 */
async function finishRequests({ server }: FastifyInstance): Promise<void> {
  const closed = new Promise<void>((resolve) => NetServer.prototype.close.call(server, () => resolve()))
  await Promise.race([closed, delay(REQUESTS_ARRIVE_WITHIN_MS)])
  const idle = setInterval(() => server.closeIdleConnections(), 10)
  await Promise.race([closed, delay(REQUESTS_END_WITHIN_MS)])
  clearInterval(idle)
}

function warning(log: Logger): (line: string) => void {
  return (line) => log.warn(line)
}

function leadershipOf(store: DurableStore) {
  return {
    succession: () => store.succession?.() ?? null,
    leaseAgeMs: () => store.leaseAgeMs?.() ?? null,
  }
}

function placesOf({ dataDir, storePlace }: Settings): string {
  return storePlace === null ? dataDir : `${dataDir} and ${describePlace(storePlace)}`
}

function seriesArchive({ dataDir }: Settings, log: Logger) {
  return createSeriesFiles({ dir: join(dataDir, 'series'), log: (line) => log.warn(line) })
}

/** @returns the address */
async function listenOrStop(listening: Promise<string>, fleet: ServedFleet): Promise<string> {
  try {
    return await listening
  } catch (fault) {
    await fleet.stop()
    throw fault
  }
}

/** A controller on SQLite is alone. */
function ofCluster({ storePlace, among, ownerLimits, storeKind }: Settings) {
  return { ownerLimits, storeKind, ...(storePlace === null ? {} : { leaseMs: among.leaseMs }) }
}

/** Closes the store when the start is refused. */
async function requireTokenFor(
  local: LocalServing | null,
  settings: Settings,
  token: ReturnType<typeof adminToken>,
  store: Store,
): Promise<void> {
  const check = local === null ? requireToken : local.api.hasTcp ? requireTokenForTcp : null
  await check?.(settings, token, store).catch(async (fault: unknown) => {
    await store.close()
    throw fault
  })
}

function managedFleet(settings: Settings, nats: NatsSettings | null, local: LocalServing | null): Managed {
  if (local !== null) return { bus: local.bus }
  return nats === null ? { played: readFleet(settings.simulatedFleet) } : { nats }
}

function withAuthenticator({ authenticator, peers, signIn }: Access): string {
  if (peers !== null) return 'the socket identifies its users'
  if (!authenticator.isRequired) return 'open to this host'
  return signIn === null ? 'requires a token' : `requires a token or a sign-in at ${signIn.provider}`
}

/** Before the store opens, because it may need the disk space. */
function removeCutOffUploads({ dataDir }: Settings, log: Logger): void {
  const removed = removePartialUploads(dataDir)
  if (removed > 0)
    log.warn(`${removed} uploads were interrupted when the controller ended: their files were removed`)
}

function lossOfStore(log: Logger) {
  const loss = {
    hasHappened: false,
    /** A commit that the closing store no longer takes was never acknowledged. */
    isExpected: false,
    /** Only durable changes were acknowledged, and nothing will be from now on (R10). */
    end(fault: unknown, store: Store): void {
      if (loss.isExpected) return
      loss.hasHappened = true
      log.fatal({ err: fault }, 'the store failed: the controller no longer acknowledges anything')
      process.stderr.write(`headroom: the store failed: ${errorText(fault)}\n`)
      setTimeout(() => process.exit(1), STOP_TIMEOUT_MS).unref()
      void store.close().finally(() => process.exit(1))
    },
  }
  return loss
}

/** The folder of the built page; none in a checkout without a build. */
function builtPage(): { readonly uiDir?: string } {
  const uiDir = fileURLToPath(new URL('dist/ui', packageRoot()))
  return existsSync(join(uiDir, 'index.html')) ? { uiDir } : {}
}

/** Real servers over a broker, or those of a scenario. */
type Managed = { readonly nats: NatsSettings } | { readonly played: FleetScenario } | { readonly bus: Bus }

async function startFleet(
  managed: Managed,
  store: DurableStore,
  log: Logger,
  options: ControllerOptions,
): Promise<ServedFleet> {
  try {
    if ('played' in managed) return await startSimulatedFleet(managed.played, store, log, options)
    if ('bus' in managed) return await startLocalFleet(managed.bus, store, log, options)
    return await startLiveFleet(managed.nats, store, log, options)
  } catch (error) {
    // Its threads would keep the process alive.
    await store.close()
    throw error
  }
}

/**
 * The configuration until the first stored change: for a scenario its own, except a percentage that the
 * environment names.
 */
function initialConfig(env: Environment, settings: Settings, managed: Managed): Partial<ConfigFields> {
  const percent = { default_vram_overcommit_percent: settings.defaultOvercommitPercent }
  if (!('played' in managed) || managed.played.file === null) return percent
  const { config } = managed.played.scenario
  return env[ENVIRONMENT.defaultOvercommitPercent.name] ? { ...config, ...percent } : config
}

/** @returns the URL on which it listens */
async function listen(
  app: FastifyInstance,
  { httpHost: host, httpPort }: Settings,
  store: DurableStore,
): Promise<string> {
  await app.ready()
  await store.endWaiting?.()
  try {
    await listenUnlogged(app, { host, port: httpPort })
  } catch (error) {
    throw new StartFault(
      `cannot listen on ${host}:${httpPort}: ${reasonOf(error)}. Set CONTROLLER_HTTP_PORT or ` +
        'CONTROLLER_HTTP_HOST.',
    )
  }
  const address = app.server.address()
  const port = typeof address === 'object' && address !== null ? address.port : httpPort
  return `http://${hostInUrl(host)}:${port}`
}

function reasonOf(error: unknown): string {
  const code = (error as NodeJS.ErrnoException).code
  if (code === 'EADDRINUSE') return 'the port is already in use'
  if (code === 'EACCES') return 'the port requires more privileges'
  return errorText(error)
}

function hostInUrl(host: string): string {
  return host.includes(':') ? `[${host}]` : host
}
