/**
 * A connection for a sweep over machines: the address from an option, the login from the environment.
 * Reconnects by itself.
 */
import { connect } from '@nats-io/transport-node'
import type { NatsConnection } from '@nats-io/transport-node'
import { loginOptions } from '../../../controller/adapters/nats/login.ts'
import { ENVIRONMENT } from '../../settings/env-table.ts'
import { EXIT_NO_CONNECTION, CommandFailure, UsageError } from '../../exit-codes.ts'
import { natsSettingsAt } from '../../settings/nats-settings.ts'

const CONNECT_TIMEOUT_MS = 5_000
const RECONNECT_PAUSE_MS = 250

/**
 * Throws UsageError without an address, CommandFailure when no broker answers.
 * @param option that may name the address
 */
export async function connectForSweep(
  option: string,
  url: string | undefined,
  name: string,
): Promise<NatsConnection> {
  const settings = natsSettingsAt(option, url)
  if (settings === null)
    throw new UsageError(
      `no broker is configured: use --nats nats://host:4222, or set ${ENVIRONMENT.natsUrls.name}`,
    )
  const { urls, auth, tls, inboxPrefix } = settings
  try {
    return await connect({
      ...loginOptions(urls, auth, tls),
      servers: [...urls],
      name,
      inboxPrefix,
      timeout: CONNECT_TIMEOUT_MS,
      maxReconnectAttempts: -1,
      reconnectTimeWait: RECONNECT_PAUSE_MS,
      ignoreClusterUpdates: true,
    })
  } catch (error) {
    throw new CommandFailure(
      `no broker at ${urls.join(', ')}: ${(error as Error).message}`,
      EXIT_NO_CONNECTION,
    )
  }
}
