/**
 * `headroom nats config`: the broker's configuration, and a key for each identity. Uses nkeys instead of
 * passwords, because then the configuration holds no secret and no secret is ever transmitted. Each seed is
 * in its own file, for the one host that needs it.
 */
import { existsSync, readFileSync, readdirSync, rmSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { nkeys } from '@nats-io/transport-node'
import { nodeIdFromName } from '../../protocol/node-id.ts'
import { UsageError } from '../../services/exit-codes.ts'
import { checkPlace, makeFolder, writeOutput } from '../../services/output-file.ts'
import { seedOf } from '../../services/settings/nats-settings.ts'
import { gpuServerManifest, whyNoKubernetesName } from './kubernetes-text.ts'
import { enrolledIn, readBrokerConfig, usersIn } from './broker-config-file.ts'
import { CONFIG_HEADER, brokerConfigText, type BrokerUser } from './nats-config-text.ts'

export interface NatsConfigOptions {
  readonly nodes?: readonly string[]
  readonly clients?: readonly string[]
  /** Several controllers of one store; else there is one, without a name. */
  readonly controllers?: readonly string[]
  readonly fleets?: readonly string[]
  /** Only for a trial store. */
  readonly trialFleets?: readonly string[]
  readonly workers?: readonly string[]
  readonly jetstreamDir?: string
  /** `name=folder`: copies of keys for containers. */
  readonly keyCopies?: readonly string[]
  readonly kubernetes?: boolean
  readonly out: string
  readonly listen: string
  readonly monitor?: string
  readonly tlsCert?: string
  readonly tlsKey?: string
  readonly tlsCa?: string
}

type Named = Pick<BrokerUser, 'name' | 'identity'>

/** Readable by owner and group: the server in a container is root, and not the owner. */
const KEY_COPY_MODE = 0o440

/**
 * Existing keys are kept; only missing ones are made.
 * @param isTrial the controller's store is for trials
 */
export function natsConfig(requested: NatsConfigOptions, isTrial: boolean): void {
  const { trialFleets = [] } = requested
  const options = isTrial
    ? { ...requested, fleets: [...(requested.fleets ?? []), ...trialFleets] }
    : requested
  const leftOut = isTrial ? [] : trialFleets.map((name) => `fleet-${name}`)
  const { out, listen, monitor, tlsCert, tlsKey, tlsCa } = options
  const { workers = [], jetstreamDir } = options
  if (jetstreamDir !== undefined && workers.length === 0)
    throw new UsageError('--jetstream-dir requires --workers')
  if ((tlsCert === undefined) !== (tlsKey === undefined))
    throw new UsageError('--tls-cert and --tls-key must be specified together')
  if (tlsCa !== undefined && tlsCert === undefined)
    throw new UsageError('--tls-ca requires --tls-cert and --tls-key')
  const unfit =
    options.kubernetes === true
      ? options.nodes?.map((node) => node.split('=')[0] ?? '').find(whyNoKubernetesName)
      : undefined
  if (unfit !== undefined)
    throw new UsageError(
      `--kubernetes: ${unfit} is not a valid Kubernetes node name (lowercase letters, digits, - and .)`,
    )
  const option = `--out ${out}`
  const keys = join(dirname(out), 'keys')
  if (existsSync(out)) checkPlace(option, out)
  makeFolder(option, keys, 0o700)
  checkPlace(option, out)
  if (existsSync(out) && !readFileSync(out, 'utf8').startsWith(CONFIG_HEADER)) {
    throw new UsageError(`${out} exists and was not created by \`headroom nats config\`: choose another file`)
  }
  try {
    const users = identitiesOf(options).map(({ name, identity }) => ({
      name,
      identity,
      publicKey: publicKeyIn(option, seedFile(keys, name)),
    }))
    const tls =
      tlsCert === undefined || tlsKey === undefined ? null : { cert: tlsCert, key: tlsKey, ca: tlsCa ?? null }
    const jetStreamDir =
      workers.length === 0 ? null : (jetstreamDir ?? join(resolve(dirname(out)), 'jetstream'))
    const enrolled = existsSync(out) ? enrolledIn(readFileSync(out, 'utf8')) : []
    const kept = enrolled.filter(({ name }) => users.every((user) => user.name !== name))
    const text = { listen, monitor: monitor ?? null, tls, jetStreamDir }
    writeOutput(
      option,
      out,
      brokerConfigText(
        users,
        text,
        kept.map(({ block }) => block),
      ),
    )
    for (const copy of options.keyCopies ?? []) copyKey(copy, keys, users, leftOut)
    const manifests =
      options.kubernetes === true ? writeManifests(option, out, options.nodes ?? [], keys) : null
    printSummary(out, keys, users)
    if (manifests !== null)
      process.stdout.write(
        `${manifests}: one file for each GPU server, with its key. Apply with: kubectl apply -f ` +
          `${manifests}\n`,
      )
  } catch (error) {
    throw isFileError(error) ? new UsageError(`${option}: ${error.message}`, { cause: error }) : error
  }
}

/**
 * The folder for the one container that needs the key: removes keys of an earlier run. An identity that is
 * left out has none.
 */
function copyKey(copy: string, keys: string, users: readonly BrokerUser[], leftOut: readonly string[]): void {
  const [name = '', folder = ''] = copy.split(/=(.*)/s)
  const isLeftOut = leftOut.includes(name)
  if (!isLeftOut && users.every((user) => user.name !== name)) {
    throw new UsageError(
      `--key-copies ${copy}: unknown identity ${name}; use one of ` +
        `${users.map((user) => user.name).join(', ')}`,
    )
  }
  makeFolder('--key-copies', folder, 0o755)
  const file = `${name}.nk`
  if (!isLeftOut)
    writeOutput('--key-copies', join(folder, file), readFileSync(seedFile(keys, name), 'utf8'), KEY_COPY_MODE)
  for (const each of readdirSync(folder))
    if (each.endsWith('.nk') && (isLeftOut || each !== file)) rmSync(join(folder, each))
}

/** @returns their folder */
function writeManifests(option: string, out: string, nodes: readonly string[], keys: string): string {
  const folder = join(dirname(out), 'kubernetes')
  makeFolder(option, folder, 0o700)
  for (const node of nodes) {
    const [name = '', nodeId = null] = node.split('=')
    const seed = readFileSync(seedFile(keys, `node-${name}`), 'utf8').trim()
    writeOutput(
      option,
      join(folder, `gpu-server-${name}.yaml`),
      gpuServerManifest({ name, nodeId }, seed),
      0o600,
    )
  }
  return folder
}

function isFileError(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && 'syscall' in error
}

function identitiesOf({
  nodes = [],
  clients = [],
  controllers = [],
  fleets = [],
  workers = [],
}: NatsConfigOptions): readonly Named[] {
  return [
    ...(controllers.length === 0 ? ['controller'] : controllers.map((name) => `controller-${name}`)).map(
      (name): Named => ({ name, identity: { kind: 'controller' } }),
    ),
    ...nodes.map((node): Named => {
      const [name = '', nodeId] = node.split('=')
      return { name: `node-${name}`, identity: { kind: 'node', nodeId: nodeId ?? nodeIdFromName(name) } }
    }),
    ...clients.map((clientId): Named => ({
      name: `client-${clientId}`,
      identity: { kind: 'client', clientId },
    })),
    ...fleets.map((name): Named => ({ name: `fleet-${name}`, identity: { kind: 'fleet' } })),
    ...(workers.length === 0 ? [] : [{ name: 'sweep', identity: { kind: 'sweep' } } satisfies Named]),
    ...workers.map((name): Named => ({ name: `worker-${name}`, identity: { kind: 'worker' } })),
  ]
}

function seedFile(folder: string, name: string): string {
  return join(folder, `${name}.nk`)
}

function publicKeyIn(option: string, file: string): string {
  if (!existsSync(file))
    writeOutput(option, file, `${new TextDecoder().decode(nkeys.createUser().getSeed())}\n`, 0o600)
  const seed = seedOf(readFileSync(file, 'utf8'))
  if (seed === null)
    throw new UsageError(
      `${file} does not contain the seed of an nkey user (SU…): move the file away to create a new key`,
    )
  return nkeys.fromSeed(seed).getPublicKey()
}

function printSummary(out: string, keys: string, users: readonly BrokerUser[]): void {
  const lines = users.map(({ name, identity }) => {
    const of = identity.kind === 'node' ? `  NODE_ID=${identity.nodeId}` : ''
    return `  ${name.padEnd(24)} CONTROLLER_NATS_NKEY_FILE=${seedFile(keys, name)}${of}\n`
  })
  process.stdout.write(
    `${out}: ${users.length} ${users.length === 1 ? 'identity' : 'identities'}; each authenticates with ` +
      `its own secret key:\n${lines.join('')}`,
  )
}

export interface NatsRotateOptions {
  readonly all?: boolean
  readonly out: string
}

/** Throws UsageError before anything is written. */
export function natsRotate(parties: readonly string[], { all = false, out }: NatsRotateOptions): void {
  if (all === parties.length > 0) throw new UsageError('specify either at least one identity or --all')
  const text = readBrokerConfig(out)
  const known = new Map(usersIn(text).map(({ name, publicKey }) => [name, publicKey]))
  const missing = parties.find((party) => !known.has(party))
  if (missing !== undefined)
    throw new UsageError(
      `${out} has no identity ${missing}; known identities: ` + `${[...known.keys()].join(', ')}`,
    )
  const option = `--out ${out}`
  const keys = join(dirname(out), 'keys')
  makeFolder(option, keys, 0o700)
  const renewed = all ? [...known.keys()] : [...new Set(parties)]
  let changed = text
  const lines = renewed.map((name) => {
    const key = nkeys.createUser()
    const file = join(keys, `${name}.nk`)
    // Its inbox is named after the key too.
    changed = changed.replaceAll(known.get(name) ?? '', key.getPublicKey())
    writeOutput(option, file, `${new TextDecoder().decode(key.getSeed())}\n`, 0o600)
    return `  ${name.padEnd(24)} ${file}\n`
  })
  writeOutput(option, out, changed)
  process.stdout.write(
    `New keys:\n${lines.join('')}1. Replace the old key of each identity on its host. 2. Run ` +
      'nats-server --signal reload: from then on, the old keys are rejected. 3. Restart each process ' +
      'that uses a new key; tasks keep running.\n',
  )
}
