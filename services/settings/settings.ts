/** The settings of `headroom serve`, read from the environment once, at the start. */
import { hostname } from 'node:os'
import { closeSync, fstatSync, openSync, readSync } from 'node:fs'
import type { StorePlace } from '../../controller/adapters/postgres/store-url.ts'
import type { OwnerLimits } from '../../controller/model/owner-limits.ts'
import type { ClaimRules } from '../../controller/model/role-claims.ts'
import type { StoreKind } from '../../controller/model/store-kind.ts'
import type { Percent } from '../../protocol/units.ts'
import { nearestName } from '../../simulator/document/nearest-name.ts'
import type { UploadLimits } from '../simulations/library/upload-quota.ts'
import { ENVIRONMENT, type EnvironmentVariable, type LogLevel } from './env-table.ts'

export interface Settings {
  readonly httpHost: string
  /** 0: any free port. */
  readonly httpPort: number
  readonly allowedHosts: readonly string[]
  readonly trustedProxies: readonly string[]
  readonly requestsPerSecond: number
  readonly anonymousRequestsPerSecond: number
  /** null: users sign in with tokens only. */
  readonly oidc: OidcSettings | null
  readonly ownerLimits: OwnerLimits
  readonly dataDir: string
  /** Null: SQLite in the data folder. */
  readonly storePlace: StorePlace | null
  /** Among the controllers of one store. */
  readonly among: AmongControllers
  /** Null: in the data folder. */
  readonly secretsKeyFile: string | null
  /** Limits of stored events by number, age and size. */
  readonly eventsMaxCount: number
  readonly eventsMaxDays: number
  readonly eventsMaxMib: number
  /** The recording in the folder of the store; null: nothing is recorded. */
  readonly recording: { readonly fileMib: number; readonly files: number } | null
  /** A store must exist. */
  readonly isStoreExpected: boolean
  /** Empty: no broker. */
  readonly natsUrls: readonly string[]
  readonly storeKind: StoreKind
  /** Scenario file of the simulated fleet; null: the demonstration. */
  readonly uploads: UploadLimits
  /** Uploaded files of tasks. */
  readonly files: UploadLimits & { readonly maxWorkdirBytes: number }
  readonly clientRequestsPerSecond: number
  readonly simulatedFleet: string | null
  readonly defaultOvercommitPercent: Percent
  readonly logLevel: LogLevel
}

const MIB_BYTES = 1_048_576

export interface AmongControllers {
  readonly name: string
  readonly url: string
  readonly leaseMs: number
  readonly mayLead: boolean
  readonly tls: PeerTlsFiles
}

/** Files for https between controllers; null: Node's authorities, no certificate. */
export interface PeerTlsFiles {
  readonly ca: string | null
  readonly cert: string | null
  readonly key: string | null
}

/** Sign-in to the page, and the roles of its users. */
export interface OidcSettings {
  readonly issuer: URL
  readonly clientId: string
  /** null: a public client. */
  readonly clientSecretFile: string | null
  readonly publicUrl: URL
  readonly scope: string
  readonly rules: ClaimRules
  readonly sessionHours: number
}

/** A variable has an invalid value. The message is one line: variable, value, range. */
export class SettingsError extends Error {
  override readonly name = 'SettingsError'
  readonly variable: string

  constructor(variable: string, value: string, range: string, options?: ErrorOptions) {
    super(
      `${variable} is ${JSON.stringify(withoutSecrets(variable, value).slice(0, 200))}; it must be ${range}`,
      options,
    )
    this.variable = variable
  }
}

/**
 * An empty variable counts as unset, as compose files write it.
 * @throws SettingsError at the first value out of range
 */
export function readSettings(env: Readonly<Record<string, string | undefined>>): Settings {
  return {
    httpHost: valueOf(env, ENVIRONMENT.httpHost),
    httpPort: valueOf(env, ENVIRONMENT.httpPort),
    allowedHosts: listOf(env, ENVIRONMENT.httpAllowedHosts),
    trustedProxies: listOf(env, ENVIRONMENT.httpTrustedProxies),
    requestsPerSecond: valueOf(env, ENVIRONMENT.httpRequestsPerSecond),
    anonymousRequestsPerSecond: valueOf(env, ENVIRONMENT.httpAnonymousRequestsPerSecond),
    clientRequestsPerSecond: valueOf(env, ENVIRONMENT.clientRequestsPerSecond),
    oidc: oidcSettings(env),
    ownerLimits: {
      maxPending: valueOf(env, ENVIRONMENT.maxPendingPerOwner) || null,
      maxPlacedGpus: valueOf(env, ENVIRONMENT.maxPlacedGpusPerOwner) || null,
      p0: env[ENVIRONMENT.p0Allowed.name] ? valueOf(env, ENVIRONMENT.p0Allowed) : null,
    },
    dataDir: valueOf(env, ENVIRONMENT.dataDir),
    storePlace: env[ENVIRONMENT.storeUrl.name] ? valueOf(env, ENVIRONMENT.storeUrl) : null,
    among: amongControllers(env),
    secretsKeyFile: env[ENVIRONMENT.secretsKeyFile.name] || null,
    uploads: {
      maxBytes: valueOf(env, ENVIRONMENT.uploadsMaxMib) * MIB_BYTES,
      maxBytesPerOwner: valueOf(env, ENVIRONMENT.uploadsMaxMibPerOwner) * MIB_BYTES,
      minFreeBytes: valueOf(env, ENVIRONMENT.uploadsMinFreeMib) * MIB_BYTES,
      minFreePercent: valueOf(env, ENVIRONMENT.uploadsMinFreePercent),
    },
    files: {
      maxBytes: valueOf(env, ENVIRONMENT.filesMaxMib) * MIB_BYTES,
      maxBytesPerOwner: valueOf(env, ENVIRONMENT.filesMaxMibPerOwner) * MIB_BYTES,
      minFreeBytes: valueOf(env, ENVIRONMENT.uploadsMinFreeMib) * MIB_BYTES,
      minFreePercent: valueOf(env, ENVIRONMENT.uploadsMinFreePercent),
      maxWorkdirBytes: valueOf(env, ENVIRONMENT.workdirMaxMib) * MIB_BYTES,
    },
    eventsMaxCount: valueOf(env, ENVIRONMENT.eventsMaxCount),
    eventsMaxDays: valueOf(env, ENVIRONMENT.eventsMaxDays),
    eventsMaxMib: valueOf(env, ENVIRONMENT.eventsMaxMib),
    recording: valueOf(env, ENVIRONMENT.record)
      ? {
          fileMib: valueOf(env, ENVIRONMENT.recordingFileMib),
          files: valueOf(env, ENVIRONMENT.recordingFiles),
        }
      : null,
    isStoreExpected: valueOf(env, ENVIRONMENT.expectStore),
    natsUrls: listOf(env, ENVIRONMENT.natsUrls),
    storeKind: storeKind(env),
    simulatedFleet: simulatedFleet(env),
    defaultOvercommitPercent: valueOf(env, ENVIRONMENT.defaultOvercommitPercent),
    logLevel: valueOf(env, ENVIRONMENT.logLevel),
  }
}

function amongControllers(env: Readonly<Record<string, string | undefined>>): AmongControllers {
  const { controllerName, advertisedUrl, httpHost, httpPort } = ENVIRONMENT
  const [host, port] = [valueOf(env, httpHost), valueOf(env, httpPort)]
  const isEverywhere = host === '0.0.0.0' || host === '::'
  const reached = isEverywhere ? hostname() : host.includes(':') ? `[${host}]` : host
  return {
    name: env[controllerName.name] ? valueOf(env, controllerName) : `${hostname()}:${port}`,
    url: env[advertisedUrl.name] ? valueOf(env, advertisedUrl) : `http://${reached}:${port}`,
    leaseMs: valueOf(env, ENVIRONMENT.leaseMs),
    mayLead: valueOf(env, ENVIRONMENT.mayLead),
    tls: peerTls(env),
  }
}

function peerTls(env: Readonly<Record<string, string | undefined>>): PeerTlsFiles {
  const { peerCaFile, peerCertFile, peerKeyFile } = ENVIRONMENT
  const [ca = null, cert = null, key = null] = [peerCaFile, peerCertFile, peerKeyFile].map((variable) =>
    env[variable.name] ? valueOf(env, variable) : null,
  )
  if ((cert === null) !== (key === null)) {
    const [missing, given] = key === null ? [peerKeyFile, peerCertFile] : [peerCertFile, peerKeyFile]
    throw new SettingsError(missing.name, '', `${missing.range}, because ${given.name} is set`)
  }
  return { ca, cert, key }
}

/** Without a broker the servers are simulated. */
function storeKind(env: Readonly<Record<string, string | undefined>>): StoreKind {
  const { storeKind: kind, natsUrls } = ENVIRONMENT
  if (env[natsUrls.name]) return valueOf(env, kind)
  if (env[kind.name]) throw new SettingsError(kind.name, env[kind.name] ?? '', kind.range)
  return 'simulated'
}

/** With a broker the servers are real, so a simulated fleet is ignored. */
function simulatedFleet(env: Readonly<Record<string, string | undefined>>): string | null {
  const { simulatedFleet: fleet, natsUrls } = ENVIRONMENT
  const file = env[fleet.name]
  if (!file) return null
  if (env[natsUrls.name]) throw new SettingsError(fleet.name, file, fleet.range)
  return valueOf(env, fleet)
}

/** All variables of a provider, or none. */
function oidcSettings(env: Readonly<Record<string, string | undefined>>): OidcSettings | null {
  const { oidcIssuer, oidcClientId, oidcPublicUrl, oidcRoles, oidcClientSecretFile } = ENVIRONMENT
  const needed = [oidcIssuer, oidcClientId, oidcPublicUrl, oidcRoles]
  if ([...needed, oidcClientSecretFile].every(({ name }) => !env[name])) return null
  for (const { name, range } of needed) if (!env[name]) throw new SettingsError(name, '', range)
  return {
    issuer: valueOf(env, oidcIssuer),
    clientId: valueOf(env, oidcClientId),
    clientSecretFile: env[oidcClientSecretFile.name] ? valueOf(env, oidcClientSecretFile) : null,
    publicUrl: valueOf(env, oidcPublicUrl),
    scope: valueOf(env, ENVIRONMENT.oidcScope),
    rules: {
      nameClaim: valueOf(env, ENVIRONMENT.oidcNameClaim),
      rolesClaim: valueOf(env, ENVIRONMENT.oidcRolesClaim),
      roles: valueOf(env, oidcRoles),
    },
    sessionHours: valueOf(env, ENVIRONMENT.oidcSessionHours),
  }
}

function listOf(
  env: Readonly<Record<string, string | undefined>>,
  variable: EnvironmentVariable<readonly string[]>,
): readonly string[] {
  return env[variable.name] ? valueOf(env, variable) : []
}

function valueOf<T>(env: Readonly<Record<string, string | undefined>>, variable: EnvironmentVariable<T>): T {
  const text = env[variable.name] || (variable.byDefault ?? '')
  const value = variable.read(text)
  if (value === undefined) throw new SettingsError(variable.name, text, variable.range)
  return value
}

/** A URL may contain a password, and this line goes to the log. */
function withoutSecrets(variable: string, value: string): string {
  return value.replace(variable === ENVIRONMENT.storeUrl.name ? /\/\/.*@/gs : /\/\/[^,]*@/g, '//…@')
}

/** Surrounding spaces are removed, so the file may be a little longer. */
const MAX_FILE_BYTES = 4_096

/** @throws SettingsError, one line that names the variable, without the content of the file */
export function readSecretFile(
  path: string,
  { name, range }: Pick<EnvironmentVariable<unknown>, 'name' | 'range'>,
): { readonly text: string; readonly mode: number } {
  try {
    const file = openSync(path, 'r')
    try {
      const bytes = Buffer.alloc(MAX_FILE_BYTES)
      const size = readSync(file, bytes, 0, MAX_FILE_BYTES, 0)
      return { text: bytes.toString('utf8', 0, size), mode: fstatSync(file).mode }
    } finally {
      closeSync(file)
    }
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? 'unreadable'
    throw new SettingsError(name, path, `${range} (${code})`, { cause: error })
  }
}

/**
 * Finds variables of the environment that look like ours and are not used: a misspelt name would silently
 * leave the default in effect.
 */

const PREFIX = 'CONTROLLER_'
const KNOWN = [...Object.values(ENVIRONMENT).map(({ name }) => name), 'CONTROLLER_NODE_GROUP_IDS']
/** Variables that Kubernetes sets in every container for a service whose name begins with `controller`. */
const OF_A_SERVICE =
  /_(?:SERVICE_HOST|SERVICE_PORT(?:_[A-Z0-9_]+)?|PORT_\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?)$/
const ADDRESS_OF_A_SERVICE = /^(?:tcp|udp|sctp):\/\//

/** Returns one line per variable, in the order of names, without values. */
export function unreadVariables(env: Readonly<Record<string, string | undefined>>): readonly string[] {
  return Object.keys(env)
    .filter(
      (name) => name.startsWith(PREFIX) && !KNOWN.includes(name) && !isOfAService(name, env[name] ?? ''),
    )
    .sort((a, b) => (a < b ? -1 : 1))
    .map((name) => {
      const near = nearestName(
        name.slice(PREFIX.length),
        KNOWN.map((known) => known.slice(PREFIX.length)),
      )
      return `${name} is set but not used${near === null ? '' : `; did you mean ${PREFIX}${near}?`}`
    })
}

function isOfAService(name: string, value: string): boolean {
  return OF_A_SERVICE.test(name) || (name.endsWith('_PORT') && ADDRESS_OF_A_SERVICE.test(value))
}
