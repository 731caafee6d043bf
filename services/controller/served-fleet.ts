import { randomUUID } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import type { Logger } from 'pino'
import { connectNatsBus } from '../../controller/adapters/nats-bus.ts'
import { createSystemClock, type SystemClock } from '../../controller/adapters/system-clock.ts'
import { createSystemRandom } from '../../controller/adapters/system-random.ts'
import type { ReadinessCheck } from '../../controller/api/context.ts'
import { createController, type Controller, type ControllerOptions } from '../../controller/controller.ts'
import type { Bus } from '../../controller/ports/bus.ts'
import type { Store } from '../../controller/ports/store.ts'
import { ScenarioError } from '../../simulator/document/problem.ts'
import { refuseBeyondFleet } from '../../simulator/fleet/fleet-faults.ts'
import { loadScenario } from '../../simulator/scenario/load.ts'
import type { Scenario } from '../../simulator/scenario/scenario.ts'
import type { FaultNote } from '../../simulator/world/fault-agenda.ts'
import { createLiveFleet } from '../../simulator/world/live.ts'
import { UsageError } from '../exit-codes.ts'
import { packageRoot } from '../package-info.ts'
import { REAL_TIME } from '../real-time.ts'
import { ENVIRONMENT } from '../settings/env-table.ts'
import type { NatsSettings } from '../settings/nats-settings.ts'
import { createRateLimitedLog } from './log.ts'
import type { DurableStore } from './open-store.ts'

/** A running controller, and the fleet that it manages. */
export interface ServedFleet {
  readonly controller: Controller
  readonly kind: 'live' | 'simulated'
  /** The fleet, for the line at the start. */
  readonly describe: string
  /** Messages that the bus dropped, by reason. */
  readonly dropped: ReadonlyMap<string, number>
  /** Checks for /readyz in addition to the store. */
  readonly readiness: () => readonly ReadinessCheck[]
  /** Also closes the store. */
  stop(): Promise<void>
}

/**
 * The controller of real GPU servers: over SQLite, NATS, real time and real randomness. The broker may be
 * unavailable at any time.
 */

/** Loads the store and starts to listen; connects in the background. */
export function startLiveFleet(
  nats: NatsSettings,
  store: DurableStore,
  log: Logger,
  options: ControllerOptions,
): Promise<ServedFleet> {
  const clock = createSystemClock(undefined, () => store.clockOffsetMs?.() ?? 0)
  const refusals = createRateLimitedLog(log, () => clock.now())
  let brokerState = `not reached yet: ${nats.urls.join(', ')}`
  const bus = connectNatsBus({
    ...nats,
    name: 'headroom-controller',
    onState: (state, detail) => {
      brokerState = state === 'connected' ? 'ok' : `${state}: ${detail}`
      log.info({ state, detail }, 'broker')
    },
    onBadMessage: (subject, why, reason) =>
      refusals.warn(
        reason,
        { subject: subject.slice(0, MAX_SHOWN), why, reason },
        'message refused: not understood',
      ),
    onSlowConsumer: (pattern) =>
      refusals.warn('slow_consumer', { pattern }, 'messages dropped: too many are waiting'),
    onDenied: (operation, subject) =>
      log.error({ operation, subject }, 'the broker denied permission: check the permissions of this user'),
  })
  return startReal({
    ...{ clock, bus, store, log, options, refusals },
    closeBus: () => bus.close(),
    describe: `GPU servers over ${nats.urls.join(', ')}`,
    readiness: () => [{ name: 'broker', ok: bus.isConnected, detail: bus.isConnected ? 'ok' : brokerState }],
  })
}

/** The controller of the GPU server in the same process: `headroom gpu-server --standalone`. */
export function startLocalFleet(
  bus: Bus,
  store: Store,
  log: Logger,
  options: ControllerOptions,
): Promise<ServedFleet> {
  const clock = createSystemClock()
  const refusals = createRateLimitedLog(log, () => clock.now())
  return startReal({
    ...{ clock, bus, store, log, options, refusals },
    closeBus: () => Promise.resolve(),
    describe: 'the GPU server of this host',
    readiness: () => [],
  })
}

interface RealFleet extends Pick<ServedFleet, 'describe' | 'readiness'> {
  readonly clock: SystemClock
  readonly bus: Bus
  readonly closeBus: () => Promise<void>
  readonly store: Store
  readonly log: Logger
  readonly options: ControllerOptions
  readonly refusals: ReturnType<typeof createRateLimitedLog>
}

async function startReal(fleet: RealFleet): Promise<ServedFleet> {
  const { clock, bus, store, log, options, refusals } = fleet
  const controller = createController(
    { clock, random: createSystemRandom(), bus, store },
    {
      ...options,
      leaderId: randomUUID(),
      onRefused: (nodeId, reason) => {
        refusals.warn(reason, { node_id: nodeId, reason }, 'message refused')
        options.onRefused?.(nodeId, reason)
      },
    },
  )
  const stop = async (): Promise<void> => {
    await controller.stop()
    await fleet.closeBus()
    clock.stop()
    if (refusals.counts.size > 0) log.info(Object.fromEntries(refusals.counts), 'messages refused')
  }
  try {
    await controller.start()
  } catch (error) {
    await stop()
    throw error
  }
  const { describe, readiness } = fleet
  return { controller, kind: 'live', describe, dropped: refusals.counts, readiness, stop }
}

/** Maximum characters of external text. */
const MAX_SHOWN = 200

/**
 * The simulated fleet of `headroom serve`: the demonstration, or a custom scenario
 * (CONTROLLER_SIMULATED_FLEET).
 */

const DEMONSTRATION = fileURLToPath(new URL('scenarios/live-demo.scenario.yaml', packageRoot()))
/** Simulated age of the demonstration on a new store. */
const WARM_UP_MS = 2 * 3_600_000

export interface FleetScenario {
  readonly scenario: Scenario
  /** Null: the demonstration. */
  readonly file: string | null
}

/**
 * @param file null: the demonstration
 * @throws UsageError with file, line and column for what cannot be read or served
 */
export function readFleet(file: string | null): FleetScenario {
  try {
    const { scenario } = loadScenario(file ?? DEMONSTRATION, [], ({ faults }, refuse) =>
      refuseBeyondFleet(faults, refuse, true),
    )
    return { scenario, file }
  } catch (error) {
    if (error instanceof ScenarioError && file !== null)
      throw new UsageError(`${ENVIRONMENT.simulatedFleet.name}: ${error.message}`)
    throw error
  }
}

export async function startSimulatedFleet(
  { scenario, file }: FleetScenario,
  store: Store,
  log: Logger,
  options: ControllerOptions,
): Promise<ServedFleet> {
  // The demonstration shows a cluster with some history.
  const isWarm = file === null && (await store.load()).marks.epoch === 0
  const startAt = isWarm ? Date.now() - WARM_UP_MS : Date.now()
  const onRefused = (nodeId: string | null, reason: string): void => {
    log.warn({ node_id: nodeId, reason }, 'message refused')
    options.onRefused?.(nodeId, reason)
  }
  const controller = { ...options, onRefused }
  const onFault: FaultNote = (phase, fault) => log.info({ fault }, `fault ${phase}`)
  const fleet = createLiveFleet({
    scenario,
    store,
    real: REAL_TIME,
    startAt,
    seed: randomUUID(),
    controller,
    onFault,
  })
  await fleet.start()
  return {
    controller: fleet.controller,
    kind: 'simulated',
    describe: file === null ? 'a simulated fleet' : `the simulated fleet of ${file}`,
    dropped: new Map(),
    readiness: () => [],
    stop: () => fleet.stop(),
  }
}
