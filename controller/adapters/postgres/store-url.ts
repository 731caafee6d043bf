/** The URL of a PostgreSQL store: `postgres://user:password@host:5432,host2/database?sslmode=verify-full`. */
import { readFileSync } from 'node:fs'
import { isAbsolute } from 'node:path'

export interface StoreHost {
  /** A host name, an address, or the folder of a Unix socket. */
  readonly host: string
  readonly port: number
}

const SSL_MODES = ['disable', 'require', 'verify-ca', 'verify-full'] as const
export type SslMode = (typeof SSL_MODES)[number]

export interface StorePlace {
  /** Tried in order. */
  readonly hosts: readonly StoreHost[]
  readonly database: string
  readonly user: string
  readonly password: string | null
  readonly sslMode: SslMode
  /** Path of the certificate of its authority; null: those that Node trusts. */
  readonly sslRootCert: string | null
  readonly sslCert: string | null
  readonly sslKey: string | null
  /** Maximum number of connections that read. */
  readonly poolSize: number
}

const MAX_HOSTS = 8
const DEFAULT_PORT = 5432
const DEFAULT_POOL_SIZE = 4
const MAX_POOL_SIZE = 50
const MAX_PORT = 65_535
const PARAMETERS = ['host', 'sslmode', 'sslrootcert', 'sslcert', 'sslkey', 'pool_size']
/** User information, hosts, path and query; a URL of several hosts is no URL for `URL`. */
const SHAPE = /^postgres(?:ql)?:\/\/(?:([^@/?#]*)@)?([^/?#]*)\/([^?#]+)(?:\?([^#]*))?$/

/** Returns undefined if the text is no such URL, or has a parameter that is not known. */
export function readStoreUrl(text: string): StorePlace | undefined {
  try {
    return placeOf(text)
  } catch {
    // A malformed percent encoding.
    return undefined
  }
}

function placeOf(text: string): StorePlace | undefined {
  const [matched, userInfo = '', hostList = '', path = '', query = ''] = SHAPE.exec(text) ?? []
  if (matched === undefined) return undefined
  const parameters = new URLSearchParams(query)
  if ([...parameters.keys()].some((key) => !PARAMETERS.includes(key))) return undefined
  const socket = parameters.get('host')
  const hosts = hostsOf(hostList, socket)
  const colon = userInfo.indexOf(':')
  const user = decodeURIComponent(colon === -1 ? userInfo : userInfo.slice(0, colon))
  const database = decodeURIComponent(path)
  const sslMode = parameters.get('sslmode') ?? (hosts?.every(isLocal) ? 'disable' : 'verify-full')
  const poolSize = Number(parameters.get('pool_size') ?? DEFAULT_POOL_SIZE)
  if (hosts === undefined || user === '' || database.includes('/')) return undefined
  if (!isSslMode(sslMode)) return undefined
  if (!Number.isInteger(poolSize) || poolSize < 1 || poolSize > MAX_POOL_SIZE) return undefined
  const [sslCert, sslKey] = [parameters.get('sslcert'), parameters.get('sslkey')]
  if ((sslCert === null) !== (sslKey === null)) return undefined
  return {
    ...{ hosts, user, database, sslMode, sslCert, sslKey, poolSize },
    password: colon === -1 ? null : decodeURIComponent(userInfo.slice(colon + 1)),
    sslRootCert: parameters.get('sslrootcert'),
  }
}

function hostsOf(list: string, socket: string | null): readonly StoreHost[] | undefined {
  if (socket !== null) {
    const [, port] = /^(?::(\d+))?$/.exec(list) ?? []
    return isAbsolute(socket) && (list === '' || port !== undefined)
      ? [{ host: socket, port: Number(port ?? DEFAULT_PORT) }]
      : undefined
  }
  const hosts = list.split(',').map((each) => {
    const [matched, v6, name, port] = /^(?:\[([\da-fA-F:.]+)\]|([^:[\]]+))(?::(\d{1,5}))?$/.exec(each) ?? []
    return matched === undefined
      ? null
      : { host: v6 ?? decodeURIComponent(name ?? ''), port: Number(port ?? DEFAULT_PORT) }
  })
  const isValid = (each: StoreHost | null): each is StoreHost =>
    each !== null && each.port > 0 && each.port <= MAX_PORT
  return hosts.length <= MAX_HOSTS && hosts.every(isValid) ? hosts : undefined
}

function isSslMode(text: string): text is SslMode {
  return (SSL_MODES as readonly string[]).includes(text)
}

/** Its connections do not leave this host. */
function isLocal({ host }: StoreHost): boolean {
  return isAbsolute(host) || host === 'localhost' || host === '::1' || /^127\./.test(host)
}

/** The store in messages, without its password. */
export function describePlace({ hosts, database }: StorePlace): string {
  return `postgres://${hosts.map(describeHost).join()}/${database}`
}

export function describeHost({ host, port }: StoreHost): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`
}

/** Options of the TLS connection; false: none. @throws a file-system error */
export function tlsOptions(place: StorePlace, { host }: StoreHost) {
  if (place.sslMode === 'disable' || isAbsolute(host)) return false
  return {
    rejectUnauthorized: place.sslMode !== 'require',
    ...(place.sslRootCert === null ? {} : { ca: readFileSync(place.sslRootCert, 'utf8') }),
    ...(place.sslCert === null ? {} : { cert: readFileSync(place.sslCert, 'utf8') }),
    ...(place.sslKey === null ? {} : { key: readFileSync(place.sslKey, 'utf8') }),
    // The authority is checked, and the name in the certificate is not.
    ...(place.sslMode === 'verify-ca' ? { checkServerIdentity: () => undefined } : {}),
  }
}
