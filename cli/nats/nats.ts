/** The `nats` commands: their options. Their actions are loaded when called. */
import { InvalidArgumentError } from 'commander'
import type { Command } from 'commander'
import type { NatsConfigOptions, NatsRotateOptions } from './nats-config.ts'

export function addNatsCommands(program: Command): void {
  const nats = program.command('nats').description('the message broker')
  nats
    .command('config')
    .description('create a nats-server configuration, with a key and minimal permissions for each identity')
    .option(
      '--nodes <name,…>',
      'GPU servers, as NODE_NAME or NODE_NAME=NODE_ID',
      list(NODE, 'names of letters, digits, . _ and -, or name=UUID'),
    )
    .option('--clients <id,…>', 'clients', list(CLIENT, 'IDs of letters, digits, _ and -'))
    .option(
      '--controllers <name,…>',
      'controllers of one PostgreSQL store, each with its own key (default: one, named `controller`)',
      list(CLIENT, 'names of letters, digits, _ and -'),
    )
    .option(
      '--fleets <name,…>',
      'simulated fleets for trials; a fleet may act as any node',
      list(CLIENT, 'names of letters, digits, _ and -'),
    )
    .option(
      '--trial-fleets <name,…>',
      'like --fleets, but created only if CONTROLLER_STORE_KIND is trial',
      list(CLIENT, 'names of letters, digits, _ and -'),
    )
    .option(
      '--workers <name,…>',
      'workers that run sweeps on several machines; also adds the identity `sweep`, which starts sweeps, ' +
        'and enables JetStream',
      list(CLIENT, 'names of letters, digits, _ and -'),
    )
    .option(
      '--jetstream-dir <folder>',
      'folder in which the broker stores sweeps, as seen by the broker (default: jetstream next to the ' +
        'configuration)',
    )
    .option(
      '--key-copies <name=folder,…>',
      'copies of keys, each in its own folder for the container that needs it',
      list(COPY, 'name=folder, for example node-gpu-1=/keys/gpu-1'),
    )
    .option(
      '--kubernetes',
      'for each node in --nodes, write a Secret and a workload to kubernetes/ next to the configuration',
    )
    .requiredOption('-o, --out <file>', 'configuration file to write; keys are written to keys/ next to it')
    .option('--listen <host:port>', 'address on which the broker listens', address, '0.0.0.0:4222')
    .option('--monitor <host:port>', 'address for health checks (/healthz; default: none)', address)
    .option('--tls-cert <file>', 'certificate of the broker (PEM); path as seen by the broker')
    .option('--tls-key <file>', 'private key of the certificate')
    .option('--tls-ca <file>', 'CA for client certificates, which are then required')
    .action(async (options: NatsConfigOptions) => {
      const { natsConfig } = await import('./nats-config.ts')
      natsConfig(options, process.env['CONTROLLER_STORE_KIND'] === 'trial')
    })
  nats
    .command('rotate')
    .description(
      'replace keys in a broker configuration; the old keys are rejected once the broker has reloaded it',
    )
    .argument(
      '[identity...]',
      'controller, controller-NAME, node-NAME, client-ID or fleet-NAME, as `headroom nats config` lists them',
    )
    .option('--all', 'replace the keys of all identities in the configuration')
    .requiredOption(
      '-o, --out <file>',
      'configuration created by `headroom nats config`; its keys are in keys/ next to it',
    )
    .action(async (parties: readonly string[], options: NatsRotateOptions) => {
      const { natsRotate } = await import('./nats-config.ts')
      natsRotate(parties, options)
    })
}

const UUID = '[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}'
const NODE = new RegExp(`^[A-Za-z0-9][\\w.-]{0,99}(?:=${UUID})?$`)
const CLIENT = /^[A-Za-z0-9][\w-]{0,99}$/
const COPY = /^[A-Za-z0-9][\w.-]{0,110}=\/[^,=]{1,1000}$/
const ADDRESS = /^(?:[\w.-]+|\[[0-9a-f:]+\]):\d{1,5}$/i

function list(item: RegExp, words: string): (text: string) => readonly string[] {
  return (text) => {
    const items = text.split(',').map((each) => each.trim())
    const names = items.map((each) => each.split('=')[0])
    if (items.every((each) => item.test(each)) && new Set(names).size === items.length) return items
    throw new InvalidArgumentError(`It must be ${words}, separated by commas, without duplicates.`)
  }
}

function address(text: string): string {
  if (ADDRESS.test(text)) return text
  throw new InvalidArgumentError('It must be host:port.')
}
