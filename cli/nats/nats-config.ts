/**
 * `headroom nats config`: the broker's configuration, and a key for each identity. Nkeys and not passwords, because then the configuration holds
 * nothing secret and no secret ever crosses the wire; each seed lies in a file of its own, for the one host that needs it.
 */
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { nkeys } from '@nats-io/transport-node'
import type { Identity } from '../../protocol/broker-rights.ts'
import { nodeIdFromName } from '../../protocol/node-id.ts'
import { UsageError } from '../exit-codes.ts'
import { checkPlace, makeFolder, writeOutput } from '../output-file.ts'
import { brokerConfigText, CONFIG_HEADER } from './nats-config-text.ts'
import type { BrokerUser } from './nats-config-text.ts'
import { seedOf } from '../environment/nats-settings.ts'

export interface NatsConfigOptions {
  readonly nodes?: readonly string[]
  readonly clients?: readonly string[]
  readonly fleets?: readonly string[]
  readonly out: string
  readonly listen: string
  readonly monitor?: string
  readonly tlsCert?: string
  readonly tlsKey?: string
  readonly tlsCa?: string
}

interface Named {
  readonly name: string
  readonly identity: Identity
}

/** Keys that exist stay; only those that are missing are made. */
export function natsConfig(options: NatsConfigOptions): void {
  const { out, listen, monitor, tlsCert, tlsKey, tlsCa } = options
  if ((tlsCert === undefined) !== (tlsKey === undefined)) throw new UsageError('--tls-cert and --tls-key go together')
  if (tlsCa !== undefined && tlsCert === undefined) throw new UsageError('--tls-ca needs --tls-cert and --tls-key')
  const option = `--out ${out}`
  const keys = join(dirname(out), 'keys')
  if (existsSync(out)) checkPlace(option, out)
  makeFolder(option, keys, 0o700)
  checkPlace(option, out)
  if (existsSync(out) && !readFileSync(out, 'utf8').startsWith(CONFIG_HEADER)) {
    throw new UsageError(`${out} exists and was not made by \`headroom nats config\`: choose another file`)
  }
  try {
    const users = identitiesOf(options).map(({ name, identity }) => ({
      name,
      identity,
      publicKey: publicKeyIn(option, seedFile(keys, name)),
    }))
    const tls = tlsCert === undefined || tlsKey === undefined ? null : { cert: tlsCert, key: tlsKey, ca: tlsCa ?? null }
    writeOutput(option, out, brokerConfigText(users, { listen, monitor: monitor ?? null, tls }))
    tell(out, keys, users)
  } catch (error) {
    throw isFileError(error) ? new UsageError(`${option}: ${error.message}`, { cause: error }) : error
  }
}

function isFileError(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && 'syscall' in error
}

function identitiesOf({ nodes = [], clients = [], fleets = [] }: NatsConfigOptions): readonly Named[] {
  return [
    { name: 'controller', identity: { kind: 'controller' } },
    ...nodes.map((node): Named => {
      const [name = '', nodeId] = node.split('=')
      return { name: `node-${name}`, identity: { kind: 'node', nodeId: nodeId ?? nodeIdFromName(name) } }
    }),
    ...clients.map((clientId): Named => ({ name: `client-${clientId}`, identity: { kind: 'client', clientId } })),
    ...fleets.map((name): Named => ({ name: `fleet-${name}`, identity: { kind: 'fleet' } })),
  ]
}

function seedFile(folder: string, name: string): string {
  return join(folder, `${name}.nk`)
}

function publicKeyIn(option: string, file: string): string {
  if (!existsSync(file)) writeOutput(option, file, `${new TextDecoder().decode(nkeys.createUser().getSeed())}\n`, 0o600)
  const seed = seedOf(readFileSync(file, 'utf8'))
  if (seed === null) throw new UsageError(`${file} holds no seed of an nkey user (SU…): move it away, and a new one is made`)
  return nkeys.fromSeed(seed).getPublicKey()
}

function tell(out: string, keys: string, users: readonly BrokerUser[]): void {
  const lines = users.map(({ name, identity }) => {
    const of = identity.kind === 'node' ? `  NODE_ID=${identity.nodeId}` : ''
    return `  ${name.padEnd(24)} CONTROLLER_NATS_NKEY_FILE=${seedFile(keys, name)}${of}\n`
  })
  process.stdout.write(`${out}: ${users.length} identities; each proves itself with its own key, to be kept secret:\n${lines.join('')}`)
}
