/**
 * A connection to the broker for commands of a person: where to from `--nats` or CONTROLLER_NATS_URL, who
 * from the environment, and its ups and downs told in one line each.
 */
import { connectNatsBus, type NatsBus } from '../../controller/adapters/nats-bus.ts'
import { ENVIRONMENT } from '../environment/env-table.ts'
import { UsageError } from '../exit-codes.ts'
import { natsSettingsAt } from '../environment/nats-settings.ts'

export interface BrokerOptions {
  /** In place of CONTROLLER_NATS_URL. */
  readonly nats?: string
}

/** Throws UsageError without a broker, SettingsError for one that cannot be. */
export function connectBroker(
  options: BrokerOptions,
  name: string,
  onConnected: () => void = () => {},
): NatsBus {
  const settings = natsSettingsAt('--nats', options.nats)
  if (settings === null)
    throw new UsageError(`which broker? Set ${ENVIRONMENT.natsUrls.name}, or say --nats nats://host:4222`)
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
