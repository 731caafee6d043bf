/** The broker's configuration as text: its users, and their permissions (protocol/broker-rights.ts). */
import { brokerRights, type BrokerRights, type Identity } from '../../protocol/broker-rights.ts'
import { enrolmentRights, type EnrolmentIdentity } from './enrolment-token.ts'
import { sweepRights, type SweepIdentity } from '../../services/sweep/nats/sweep-subjects.ts'
import { MAX_MESSAGE_BYTES } from '../../protocol/limits.ts'

export interface BrokerUser {
  /** For display, and the name of the file with its seed. */
  readonly name: string
  readonly identity: Identity | SweepIdentity | EnrolmentIdentity
  /** Public key of its nkey (`U…`). */
  readonly publicKey: string
  /** It made its key itself (`headroom node enroll`). */
  readonly isEnrolled?: boolean
}

export interface BrokerConfigOptions {
  /** host:port */
  readonly listen: string
  /** host:port of its monitoring, for health checks; null: none. */
  readonly monitor: string | null
  /** Paths of PEM files; null: no TLS. With `ca`, clients must present a certificate of that authority. */
  readonly tls: { readonly cert: string; readonly key: string; readonly ca: string | null } | null
  /** Folder for sweeps over machines, as the broker finds it; null: no JetStream. */
  readonly jetStreamDir: string | null
}

export const CONFIG_HEADER =
  '# Made by `headroom nats config`, which keeps existing keys and rewrites this file.\n'

/** Marks the end of an identity that made its key itself. */
export const ENROLLED = '# enrolled'

/**
 * Requests are answered within the timeout of their sender; the permission to answer lasts a little longer.
 */
const ANSWER_WITHIN = '30s'

/**
 * Disk limit for sweeps on the broker's host. Beyond it the broker refuses more, and the sweep reports that.
 */
const JETSTREAM_FILE_STORE = '16G'
const JETSTREAM_MEMORY_STORE = '64M'

/** A busy host takes long to sign the broker's challenge; the broker's default is 2 s. */
const LOGIN_SECONDS = 10

/** @param enrolled texts of identities of the earlier configuration, which stay */
export function brokerConfigText(
  users: readonly BrokerUser[],
  options: BrokerConfigOptions,
  enrolled: readonly string[] = [],
): string {
  const { listen, monitor, tls, jetStreamDir } = options
  return [
    CONFIG_HEADER,
    '# It holds public keys only. Needs nats-server 2.9 or later; `nats-server --signal reload` applies ' +
      'changes.\n',
    `listen: "${listen}"\n`,
    monitor === null ? '' : `http: "${monitor}"\n`,
    `max_payload: ${MAX_MESSAGE_BYTES}\n`,
    tls === null ? '' : tlsText(tls),
    jetStreamDir === null ? '' : jetStreamText(jetStreamDir),
    `authorization {\n  timeout: ${LOGIN_SECONDS}\n  users: [\n`,
    ...users.map(userText),
    ...enrolled,
    '  ]\n}\n',
  ].join('')
}

function jetStreamText(dir: string): string {
  const limits = `  max_file_store: ${JETSTREAM_FILE_STORE}\n  max_memory_store: ${JETSTREAM_MEMORY_STORE}\n`
  return `jetstream {\n  store_dir: ${JSON.stringify(dir)}\n${limits}}\n`
}

function tlsText({ cert, key, ca }: NonNullable<BrokerConfigOptions['tls']>): string {
  const authority = ca === null ? '' : `  ca_file: ${JSON.stringify(ca)}\n  verify: true\n`
  return `tls {\n  cert_file: ${JSON.stringify(cert)}\n  key_file: ${JSON.stringify(key)}\n${authority}}\n`
}

export function userText({ name, identity, publicKey, isEnrolled = false }: BrokerUser): string {
  const { publish, subscribe, mayAnswer } = rightsOf(identity, `_INBOX_${publicKey}`)
  const lines = [
    `# ${name}`,
    '{',
    `  nkey: ${publicKey}`,
    '  permissions: {',
    `    publish: { allow: [${quoted(publish)}] }`,
    `    subscribe: { allow: [${quoted(subscribe)}] }`,
    ...(mayAnswer ? [`    allow_responses: { max: 1, expires: "${ANSWER_WITHIN}" }`] : []),
    '  }',
    isEnrolled ? `} ${ENROLLED}` : '}',
  ]
  return lines.map((line) => `    ${line}\n`).join('')
}

function rightsOf(identity: BrokerUser['identity'], inbox: string): BrokerRights {
  switch (identity.kind) {
    case 'sweep':
    case 'worker':
      return sweepRights(identity, inbox)
    case 'joining':
    case 'enrolling':
      return enrolmentRights(identity, inbox)
    case 'controller':
    case 'node':
    case 'client':
    case 'fleet':
      return brokerRights(identity, inbox)
  }
}

function quoted(subjects: readonly string[]): string {
  return subjects.map((subject) => `"${subject}"`).join(', ')
}
