/**
 * A connection to the broker for interactive commands: the address from `--nats` or CONTROLLER_NATS_URL, the
 * login from the environment; state changes are printed as one line each.
 */
import { connectNatsBus, type NatsBus } from '../../controller/adapters/nats-bus.ts'
import { ENVIRONMENT } from './env-table.ts'
import { UsageError } from '../exit-codes.ts'
import { natsSettingsAt } from './nats-settings.ts'

export interface BrokerOptions {
  /** Replaces CONTROLLER_NATS_URL. */
  readonly nats?: string
}

/** Throws UsageError without a broker, SettingsError for an invalid one. */
export function connectBroker(
  options: BrokerOptions,
  name: string,
  onConnected: () => void = () => {},
): NatsBus {
  const settings = natsSettingsAt('--nats', options.nats)
  if (settings === null)
    throw new UsageError(
      `no broker is configured: set ${ENVIRONMENT.natsUrls.name}, or use --nats nats://host:4222`,
    )
  return connectNatsBus({
    ...settings,
    name,
    onState: (state, detail) => {
      if (state === 'connected') onConnected()
      if (state !== 'closed') process.stderr.write(`${name}: ${state}${detail === '' ? '' : `: ${detail}`}\n`)
    },
    onBadMessage: (subject, why) => process.stderr.write(`${name}: on ${subject}: ${why}\n`),
  })
}
