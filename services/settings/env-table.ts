/**
 * Every environment variable that `headroom serve` and `headroom gpu-server` read. Settings, .env.example and
 * help are generated from this table.
 */
import { isIP } from 'node:net'
import { ROLES } from '../../controller/model/role.ts'
import { CONFIG_RULES, DEFAULT_CONFIG, describeRule } from '../../controller/model/config.ts'
import { OIDC_VARIABLES } from './env-oidc.ts'
import { EXPECT_STORE, STORE_VARIABLES } from './env-store.ts'
import {
  aPath,
  decimalIn,
  hostAddress,
  integerIn,
  ONE_LINE,
  portRange,
  sizeMib,
  trueOrFalse,
  WORD,
  type EnvironmentVariable,
} from './env-variable.ts'

export type { EnvironmentVariable } from './env-variable.ts'

const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const
export type LogLevel = (typeof LOG_LEVELS)[number]

const OVERCOMMIT_RULE = CONFIG_RULES.default_vram_overcommit_percent

/** In the order in which operators usually set them. */
export const ENVIRONMENT = {
  httpHost: {
    name: 'CONTROLLER_HTTP_HOST',
    range: 'an IP address or a host name',
    byDefault: '127.0.0.1',
    meaning: 'Address on which the REST API and the page listen',
    read: (text) => (isHost(text) ? text : undefined),
  },
  httpPort: {
    name: 'CONTROLLER_HTTP_PORT',
    range: 'an integer from 0 to 65535',
    byDefault: '30080',
    meaning: 'Port of the REST API and the page; 0 takes any free port',
    read: (text) => integerIn(text, 0, 65_535),
  },
  adminTokenFile: {
    name: 'CONTROLLER_ADMIN_TOKEN_FILE',
    range: 'a readable file with one secret of 32 to 512 characters',
    byDefault: null,
    meaning:
      'File with the secret of an admin token, read once at the start; required to accept other hosts ' +
      'until a token has been created',
    read: aPath,
  },
  secretsKeyFile: {
    name: 'CONTROLLER_SECRETS_KEY_FILE',
    range: 'a path',
    byDefault: null,
    meaning:
      'File with the key that encrypts secrets and environment variables of tasks, created when first ' +
      'needed; backups do not contain it, so copy it elsewhere. Default: secrets.key in the data folder',
    read: aPath,
  },
  ...OIDC_VARIABLES,
  httpAllowedHosts: {
    name: 'CONTROLLER_HTTP_ALLOWED_HOSTS',
    range: 'host names, separated by commas; *.name stands for all names below it, * for any',
    byDefault: null,
    meaning:
      'Host names under which requests are accepted, in addition to localhost, its own name and addresses',
    read: hostNames,
  },
  httpTrustedProxies: {
    name: 'CONTROLLER_HTTP_TRUSTED_PROXIES',
    range: 'IP addresses or networks such as 10.0.0.0/8, separated by commas',
    byDefault: null,
    meaning: 'Proxies whose X-Forwarded-For is trusted; unset: none',
    read: networks,
  },
  httpRequestsPerSecond: {
    name: 'CONTROLLER_HTTP_REQUESTS_PER_SECOND',
    range: 'an integer from 0 to 1000000; 0 sets no limit',
    byDefault: '5000',
    meaning: 'Maximum requests per second of one token; bursts of up to two seconds of requests are allowed',
    read: (text) => integerIn(text, 0, 1_000_000),
  },
  httpAnonymousRequestsPerSecond: {
    name: 'CONTROLLER_HTTP_ANONYMOUS_REQUESTS_PER_SECOND',
    range: 'an integer from 0 to 1000000; 0 sets no limit',
    byDefault: '100',
    meaning: 'Maximum requests per second of one address without a valid token, once tokens exist',
    read: (text) => integerIn(text, 0, 1_000_000),
  },
  clientRequestsPerSecond: {
    name: 'CONTROLLER_NATS_CLIENT_REQUESTS_PER_SECOND',
    range: 'an integer from 0 to 1000000; 0 sets no limit',
    byDefault: '5000',
    meaning:
      'Maximum requests per second of all clients of the broker together; bursts of up to two seconds ' +
      'of requests are allowed',
    read: (text) => integerIn(text, 0, 1_000_000),
  },
  maxPendingPerOwner: {
    name: 'CONTROLLER_MAX_PENDING_TASKS_PER_OWNER',
    range: 'an integer from 0 to 1000000; 0 sets no limit',
    byDefault: '100000',
    meaning: 'Maximum pending tasks of one owner; more are refused, as are more than 1,000,000 in total',
    read: (text) => integerIn(text, 0, 1_000_000),
  },
  maxPlacedGpusPerOwner: {
    name: 'CONTROLLER_MAX_PLACED_GPUS_PER_OWNER',
    range: 'an integer from 0 to 1000000; 0 sets no limit',
    byDefault: '0',
    meaning: 'Maximum GPUs of the placed tasks of one owner, each counted once per task; further tasks wait',
    read: (text) => integerIn(text, 0, 1_000_000),
  },
  p0Allowed: {
    name: 'CONTROLLER_P0_ALLOWED',
    range:
      'names of tokens, roles such as role:operator and clients of the broker such as nats:lab, ' +
      'separated by commas',
    byDefault: null,
    meaning: 'Callers that may submit P0 tasks; unset: all callers',
    read: namesAndRoles,
  },
  dataDir: {
    name: 'CONTROLLER_DATA_DIR',
    range: 'a path',
    byDefault: './data',
    meaning: 'Folder of the SQLite store and of other files; created if it does not exist',
    read: aPath,
  },
  ...STORE_VARIABLES,
  uploadsMaxMib: {
    name: 'CONTROLLER_UPLOADS_MAX_MIB',
    range: 'an integer from 1 to 16777216',
    byDefault: '10240',
    meaning: 'Maximum size of all uploaded traces and scenarios, MiB',
    read: (text) => integerIn(text, 1, 16_777_216),
  },
  uploadsMaxMibPerOwner: {
    name: 'CONTROLLER_UPLOADS_MAX_MIB_PER_OWNER',
    range: 'an integer from 1 to 16777216',
    byDefault: '2048',
    meaning: 'Maximum size of the uploads of one owner, MiB',
    read: (text) => integerIn(text, 1, 16_777_216),
  },
  uploadsMinFreeMib: {
    name: 'CONTROLLER_UPLOADS_MIN_FREE_MIB',
    range: 'an integer from 0 to 16777216',
    byDefault: '1024',
    meaning:
      'Free disk space that uploads must leave, MiB; the larger of this and the percentage below applies',
    read: (text) => integerIn(text, 0, 16_777_216),
  },
  uploadsMinFreePercent: {
    name: 'CONTROLLER_UPLOADS_MIN_FREE_PERCENT',
    range: 'an integer from 0 to 100',
    byDefault: '5',
    meaning: 'Free disk space that uploads must leave, percent of the disk',
    read: (text) => integerIn(text, 0, 100),
  },
  filesMaxMib: {
    name: 'CONTROLLER_FILES_MAX_MIB',
    range: 'an integer from 1 to 16777216',
    byDefault: '20480',
    meaning: 'Maximum size of all uploaded files of tasks (--workdir), MiB',
    read: (text) => integerIn(text, 1, 16_777_216),
  },
  filesMaxMibPerOwner: {
    name: 'CONTROLLER_FILES_MAX_MIB_PER_OWNER',
    range: 'an integer from 1 to 16777216',
    byDefault: '4096',
    meaning: 'Maximum size of the uploaded files of one owner, MiB',
    read: (text) => integerIn(text, 1, 16_777_216),
  },
  workdirMaxMib: {
    name: 'CONTROLLER_WORKDIR_MAX_MIB',
    range: 'an integer from 1 to 65536',
    byDefault: '1024',
    meaning: 'Maximum size of one uploaded folder, MiB',
    read: (text) => integerIn(text, 1, 65_536),
  },
  eventsMaxCount: {
    name: 'CONTROLLER_EVENTS_MAX_COUNT',
    range: 'an integer from 1000 to 100000000',
    byDefault: '1000000',
    meaning: 'Maximum number of events kept; the oldest are removed first',
    read: (text) => integerIn(text, 1_000, 100_000_000),
  },
  eventsMaxDays: {
    name: 'CONTROLLER_EVENTS_MAX_DAYS',
    range: 'an integer from 1 to 3650',
    byDefault: '365',
    meaning: 'Maximum age of events, days',
    read: (text) => integerIn(text, 1, 3_650),
  },
  eventsMaxMib: {
    name: 'CONTROLLER_EVENTS_MAX_MIB',
    range: 'an integer from 1 to 1048576',
    byDefault: '1024',
    meaning: 'Approximate size of the events in the store, MiB',
    read: (text) => integerIn(text, 1, 1_048_576),
  },
  record: {
    name: 'CONTROLLER_RECORDING',
    range: 'true or false',
    byDefault: 'true',
    meaning: 'Record all inputs of the controller next to the store, so that its decisions can be repeated',
    read: trueOrFalse,
  },
  recordingFileMib: {
    name: 'CONTROLLER_RECORDING_FILE_MIB',
    range: 'a number from 0.05 to 4096',
    byDefault: '16',
    meaning: 'Approximate size of one file of the recording, MiB',
    read: (text) => decimalIn(text, 0.05, 4_096),
  },
  recordingFiles: {
    name: 'CONTROLLER_RECORDING_FILES',
    range: 'an integer from 2 to 10000',
    byDefault: '16',
    meaning: 'Maximum number of recording files; the oldest are removed first',
    read: (text) => integerIn(text, 2, 10_000),
  },
  expectStore: EXPECT_STORE,
  storeKind: {
    name: 'CONTROLLER_STORE_KIND',
    range: 'live or trial, with CONTROLLER_NATS_URL',
    byDefault: 'live',
    meaning:
      'Kind of servers that may join over the broker: live refuses simulated servers, trial refuses ' +
      'NVIDIA GPUs; saved in the store, which refuses to start with the other kind',
    read: (text) => (text === 'live' || text === 'trial' ? text : undefined),
  },
  natsUrls: {
    name: 'CONTROLLER_NATS_URL',
    range: 'one or more nats:// or tls:// URLs, separated by commas',
    byDefault: null,
    meaning: 'Message broker that connects GPU servers; unset: none',
    read: brokerUrls,
  },
  simulatedFleet: {
    name: 'CONTROLLER_SIMULATED_FLEET',
    range: 'a readable scenario file, without CONTROLLER_NATS_URL',
    byDefault: null,
    meaning:
      'Scenario to run in real time (servers, workload and faults) when no broker is set; its ' +
      'configuration applies until another one is stored; unset: a small demonstration',
    read: aPath,
  },
  natsUser: {
    name: 'CONTROLLER_NATS_USER',
    range: 'a string of 1 to 200 characters without blanks',
    byDefault: null,
    meaning:
      'Broker user, with CONTROLLER_NATS_PASSWORD; CONTROLLER_NATS_URL may contain user and password instead',
    read: (text) => (WORD.test(text) ? text : undefined),
  },
  natsPassword: {
    name: 'CONTROLLER_NATS_PASSWORD',
    range: 'one line of text; CONTROLLER_NATS_USER must be set',
    byDefault: null,
    meaning: 'Password of CONTROLLER_NATS_USER',
    read: (text) => (ONE_LINE.test(text) ? text : undefined),
    isSecret: true,
  },
  natsToken: {
    name: 'CONTROLLER_NATS_TOKEN',
    range: 'one line of text; no other login method may be set',
    byDefault: null,
    meaning: 'Token for a broker that authenticates by token',
    read: (text) => (ONE_LINE.test(text) ? text : undefined),
    isSecret: true,
  },
  natsNkeyFile: {
    name: 'CONTROLLER_NATS_NKEY_FILE',
    range: 'a readable file with the seed of an nkey user, SU…; no other login method may be set',
    byDefault: null,
    meaning: 'File with the nkey seed that authenticates this process to the broker',
    read: aPath,
  },
  natsInboxPrefix: {
    name: 'CONTROLLER_NATS_INBOX_PREFIX',
    range: '_INBOX, followed by letters, digits, -, _ and dots between them',
    byDefault: null,
    meaning:
      'Subject prefix for answers; unset: _INBOX_ and the user or the public nkey, or _INBOX without either',
    read: (text) => (INBOX.test(text) ? text : undefined),
  },
  natsTlsCa: {
    name: 'CONTROLLER_NATS_TLS_CA',
    range: 'a readable PEM file of certificates',
    byDefault: null,
    meaning: 'Certificate authorities for the certificate of the broker; unset: those of the system',
    read: aPath,
  },
  natsTlsCert: {
    name: 'CONTROLLER_NATS_TLS_CERT',
    range: 'a readable PEM file with a certificate, and CONTROLLER_NATS_TLS_KEY must be set',
    byDefault: null,
    meaning: 'Client certificate for the broker',
    read: aPath,
  },
  natsTlsKey: {
    name: 'CONTROLLER_NATS_TLS_KEY',
    range: 'a readable PEM file with a private key, and CONTROLLER_NATS_TLS_CERT must be set',
    byDefault: null,
    meaning: 'Private key of the certificate in CONTROLLER_NATS_TLS_CERT',
    read: aPath,
  },
  nodeName: {
    name: 'NODE_NAME',
    range: 'a string of 1 to 100 characters without blanks',
    byDefault: null,
    meaning: 'GPU server: name of its host in the cluster; unset: the host name',
    read: (text) => (/^[^\s\p{Cc}]{1,100}$/u.test(text) ? text : undefined),
  },
  nodeId: {
    name: 'NODE_ID',
    range: 'a lowercase UUID',
    byDefault: null,
    meaning: 'GPU server: ID of the node at the broker; unset: derived from NODE_NAME',
    read: (text) => (UUID.test(text) ? text : undefined),
  },
  nodeAddress: {
    name: 'NODE_ADDRESS',
    range: 'a string of 1 to 200 characters without blanks',
    byDefault: null,
    meaning: 'GPU server: address of its host, for display; unset: the host name',
    read: (text) => (WORD.test(text) ? text : undefined),
  },
  nodeStateDir: {
    name: 'NODE_STATE_DIR',
    range: 'a path',
    byDefault: './node-state',
    meaning: 'GPU server: folder for its state, guards and task output; each server needs its own folder',
    read: aPath,
  },
  outputLimitMib: {
    name: 'NODE_OUTPUT_LIMIT_MIB',
    range: 'an integer from 1 to 1048576',
    byDefault: '1024',
    meaning:
      'GPU server: maximum output kept per attempt (stdout and stderr), MiB; the oldest is removed first',
    read: (text) => integerIn(text, 1, 1_048_576),
  },
  workRetentionSeconds: {
    name: 'NODE_WORK_RETENTION_SECONDS',
    range: 'an integer from 0 to 31536000',
    byDefault: '86400',
    meaning: 'GPU server: time for which the work folder of an attempt is kept after its end',
    read: (text) => integerIn(text, 0, 31_536_000),
  },
  workLimitMib: {
    name: 'NODE_WORK_LIMIT_MIB',
    range: 'an integer from 1 to 16777216',
    byDefault: '10240',
    meaning:
      'GPU server: maximum size of all kept work folders, MiB; the oldest is removed first, the latest stays',
    read: (text) => integerIn(text, 1, 16_777_216),
  },
  registryCredentials: {
    name: 'NODE_REGISTRY_CREDENTIALS',
    range: 'a file with auths as in docker config.json, readable only by its owner',
    byDefault: null,
    meaning: 'GPU server: registry credentials for pulling private images; unset: none',
    read: aPath,
  },
  proxyPorts: {
    name: 'NODE_PROXY_PORTS',
    range: 'a range of ports from 1024 to 65535, such as 30100-30199',
    byDefault: null,
    meaning: 'GPU server: ports on which clients reach tasks, even swapped-out tasks; unset: none',
    read: portRange,
  },
  proxyAddress: {
    name: 'NODE_PROXY_ADDRESS',
    range: 'an IP address of the host, not 0.0.0.0 or ::',
    byDefault: null,
    meaning: 'GPU server: IP address for NODE_PROXY_PORTS',
    read: hostAddress,
  },
  swapArena: {
    name: 'NODE_SWAP_ARENA',
    range: 'a number of MiB, or a size in Mi or Gi, such as 64Gi; 0 for none',
    byDefault: '0',
    meaning: 'GPU server: pinned host memory for swapped-out tasks; requires NVIDIA driver 615',
    read: sizeMib,
  },
  defaultOvercommitPercent: {
    name: 'CONTROLLER_DEFAULT_VRAM_OVERCOMMIT_PERCENT',
    range: describeRule(OVERCOMMIT_RULE),
    byDefault: String(DEFAULT_CONFIG.default_vram_overcommit_percent),
    meaning:
      'Global VRAM overcommit until the first PUT /api/v1/config is stored; from then on the stored ' +
      'value applies',
    read: (text) =>
      OVERCOMMIT_RULE.kind === 'integer'
        ? integerIn(text, OVERCOMMIT_RULE.min, OVERCOMMIT_RULE.max)
        : undefined,
  },
  logLevel: {
    name: 'LOG_LEVEL',
    range: `one of ${LOG_LEVELS.join(', ')}`,
    byDefault: 'info',
    meaning: 'Log level; the log is JSON lines, or text if stderr is a terminal',
    read: (text) => LOG_LEVELS.find((level) => level === text),
  },
} as const satisfies Readonly<Record<string, EnvironmentVariable<unknown>>>

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
const INBOX = /^_INBOX[\w-]*(?:\.[\w-]+)*$/

/** Canonical form only: no sign, no leading zero, no fraction, no space. */
/** Undefined for a list with an empty item, or an unknown role. */
function namesAndRoles(text: string): readonly string[] | undefined {
  const names = text.split(',').map((name) => name.trim())
  const isKnown = (name: string): boolean =>
    !name.startsWith('role:') || (ROLES as readonly string[]).includes(name.slice('role:'.length))
  return names.every((name) => name !== '' && isKnown(name)) ? names : undefined
}

const HOST_LABEL = /^[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?$/

/** A name whose last label is a number is a mistyped IPv4 address. */
function isHost(text: string): boolean {
  if (isIP(text) !== 0) return true
  const labels = text.split('.')
  return (
    text.length <= 253 &&
    labels.every((label) => HOST_LABEL.test(label)) &&
    !/^\d+$/.test(labels.at(-1) ?? '')
  )
}

function hostNames(text: string): readonly string[] | undefined {
  const names = text.split(',').map((name) => name.trim())
  return names.every((name) => name === '*' || isHost(name.replace(/^\*\./, ''))) ? names : undefined
}

function networks(text: string): readonly string[] | undefined {
  const all = text.split(',').map((network) => network.trim())
  return all.every(isNetwork) ? all : undefined
}

function isNetwork(text: string): boolean {
  const [address = '', bits, ...rest] = text.split('/')
  const most = { 0: -1, 4: 32, 6: 128 }[isIP(address)] ?? -1
  return rest.length === 0 && most > 0 && (bits === undefined || integerIn(bits, 0, most) !== undefined)
}

function brokerUrls(text: string): readonly string[] | undefined {
  const urls = text.split(',').map((url) => url.trim())
  return urls.every(isBrokerUrl) ? urls : undefined
}

function isBrokerUrl(text: string): boolean {
  const url = URL.parse(text)
  return url !== null && (url.protocol === 'nats:' || url.protocol === 'tls:') && url.hostname !== ''
}
