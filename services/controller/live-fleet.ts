/**
 * The controller of real GPU servers: over SQLite, NATS, real time and real randomness. The broker may be
 * unavailable at any time.
 */
import { randomUUID } from 'node:crypto'
import type { Logger } from 'pino'
import { connectNatsBus } from '../../controller/adapters/nats-bus.ts'
import { createSystemClock } from '../../controller/adapters/system-clock.ts'
import { createSystemRandom } from '../../controller/adapters/system-random.ts'
import { createController } from '../../controller/controller.ts'
import type { ControllerOptions } from '../../controller/controller.ts'
import type { Store } from '../../controller/ports/store.ts'
import type { NatsSettings } from '../settings/nats-settings.ts'
import { createRateLimitedLog } from './rate-limited-log.ts'
import type { ServedFleet } from './served-fleet.ts'

/** Loads the store and starts to listen; connects in the background. */
export async function startLiveFleet(
  nats: NatsSettings,
  store: Store,
  log: Logger,
  options: Pick<
    ControllerOptions,
    'initialConfig' | 'onFault' | 'onEvents' | 'series' | 'onRefused' | 'inputTap'
  >,
): Promise<ServedFleet> {
  const clock = createSystemClock()
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
    await bus.close()
    clock.stop()
    if (refusals.counts.size > 0) log.info(Object.fromEntries(refusals.counts), 'messages refused')
  }
  try {
    await controller.start()
  } catch (error) {
    await stop()
    throw error
  }
  return {
    controller,
    kind: 'live',
    describe: `GPU servers over ${nats.urls.join(', ')}`,
    dropped: refusals.counts,
    readiness: () => [{ name: 'broker', ok: bus.isConnected, detail: bus.isConnected ? 'ok' : brokerState }],
    stop,
  }
}

/** Maximum characters of external text. */
const MAX_SHOWN = 200
