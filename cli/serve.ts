/** `headroom serve`: the controller over SQLite, with an embedded simulated fleet in real time as long as no broker is configured. */
import { randomUUID } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { pino } from 'pino'
import type { Logger } from 'pino'
import { createApi } from '../controller/api/server.ts'
import { createSqliteStore } from '../controller/adapters/sqlite/store.ts'
import type { Store } from '../controller/ports/store.ts'
import { createLiveFleet } from '../simulator/live.ts'
import type { LiveFleet } from '../simulator/live.ts'
import type { RealTime } from '../simulator/paced-clock.ts'
import { loadScenario } from '../simulator/scenario/load.ts'
import { readSettings } from './settings.ts'
import type { Settings } from './settings.ts'
import { packageRoot, packageVersion } from './package-info.ts'

/** A fresh store shows a cluster that has been running for so long. */
const WARM_UP_MS = 2 * 3_600_000
/** After a signal, what is under way may take so long. */
const STOP_WITHIN_MS = 8_000

/** Runs until SIGINT or SIGTERM. Throws SettingsError, StoreFault or StartFault when it cannot start; each says why in one line. */
export async function serve(env: NodeJS.ProcessEnv): Promise<void> {
  const settings = readSettings(env)
  if (settings.natsUrls.length > 0) {
    throw new StartFault(
      'CONTROLLER_NATS_URL is set, and this version cannot reach GPU servers over NATS yet: unset it to run the simulated fleet',
    )
  }
  const log = pino({ level: settings.logLevel }, pino.destination({ fd: 2, sync: true }))
  const store = createSqliteStore({ dataDir: settings.dataDir })
  const fleet = await startFleet(settings, store, log)
  const app = createApi({
    commands: fleet.controller.commands,
    views: fleet.controller.views,
    version: packageVersion(),
    fleet: 'simulated',
    logger: log,
    uiDir: fileURLToPath(new URL('ui', packageRoot())),
    readiness: () => [
      { name: 'store', ok: !fleet.controller.engine.isFaulty, detail: fleet.controller.engine.isFaulty ? 'the store has failed' : 'ok' },
    ],
  })
  try {
    await app.listen({ host: settings.httpHost, port: settings.httpPort })
  } catch (error) {
    await fleet.stop()
    throw new StartFault(
      `cannot listen on ${settings.httpHost}:${settings.httpPort}: ${reasonOf(error)}; set CONTROLLER_HTTP_PORT or CONTROLLER_HTTP_HOST`,
    )
  }
  const address = app.server.address()
  const port = typeof address === 'object' && address !== null ? address.port : settings.httpPort
  process.stdout.write(
    `Headroom ${packageVersion()} runs a simulated fleet on http://${hostInUrl(settings.httpHost)}:${port} (data in ${settings.dataDir}; Ctrl-C stops it)\n`,
  )
  await untilSignal()
  setTimeout(() => process.exit(1), STOP_WITHIN_MS).unref()
  await app.close()
  await fleet.stop()
}

async function startFleet(settings: Settings, store: Store, log: Logger): Promise<LiveFleet> {
  const { scenario } = loadScenario(fileURLToPath(new URL('scenarios/live-demo.scenario.yaml', packageRoot())))
  const isFresh = (await store.load()).marks.epoch === 0
  const fleet = createLiveFleet({
    scenario,
    store,
    real: REAL_TIME,
    startAt: isFresh ? Date.now() - WARM_UP_MS : Date.now(),
    seed: randomUUID(),
    controller: {
      initialConfig: { default_vram_overcommit_percent: settings.defaultOvercommitPercent },
      onRefused: (nodeId, reason) => log.warn({ node_id: nodeId, reason }, 'message refused'),
      onFault: (fault) => {
        log.fatal({ err: fault }, 'the store failed: nothing is acknowledged any more')
        process.stderr.write(`headroom: the store failed: ${fault instanceof Error ? fault.message : String(fault)}\n`)
        void store.close().finally(() => process.exit(1))
      },
    },
  })
  await fleet.start()
  return fleet
}

/** It cannot start, and the message says why in one line. */
class StartFault extends Error {
  override readonly name = 'StartFault'
}

function reasonOf(error: unknown): string {
  const code = (error as NodeJS.ErrnoException).code
  if (code === 'EADDRINUSE') return 'somebody listens there already'
  if (code === 'EACCES') return 'that port needs more rights'
  return error instanceof Error ? error.message : String(error)
}

const REAL_TIME: RealTime = {
  now: () => Date.now(),
  after: (ms, fn) => {
    const timer = setTimeout(fn, ms)
    return () => clearTimeout(timer)
  },
  soon: (fn) => {
    setImmediate(fn)
  },
}

function untilSignal(): Promise<void> {
  return new Promise((resolve) => {
    process.once('SIGINT', () => resolve())
    process.once('SIGTERM', () => resolve())
  })
}

function hostInUrl(host: string): string {
  return host.includes(':') ? `[${host}]` : host
}
