/** Environment variables of the store. */
import { readStoreUrl, type StorePlace } from '../../controller/adapters/postgres/store-url.ts'
import { DEFAULT_LEASE_MS, MAX_LEASE_MS, MIN_LEASE_MS } from '../../controller/ports/leadership.ts'
import { aPath, integerIn, trueOrFalse, type EnvironmentVariable } from './env-variable.ts'

const STORE_URL: EnvironmentVariable<StorePlace> = {
  name: 'CONTROLLER_STORE_URL',
  range:
    'postgres://USER:PASSWORD@HOST:PORT,HOST:PORT/DATABASE with the parameters sslmode, sslrootcert, ' +
    'sslcert, sslkey, pool_size and host of docs/high-availability.md',
  byDefault: null,
  meaning:
    'PostgreSQL database of the store; with several hosts the one that accepts writes is used; unset: ' +
    'SQLite in the data folder',
  read: readStoreUrl,
}

export const EXPECT_STORE: EnvironmentVariable<boolean> = {
  name: 'CONTROLLER_EXPECT_STORE',
  range: 'true or false',
  byDefault: 'false',
  meaning: 'Require an existing store, so that an unmounted volume is not mistaken for a new installation',
  read: trueOrFalse,
}

/** Names in the store, in messages and in arguments. */
const NAME = /^[A-Za-z0-9][\w.:-]{0,99}$/

const CONTROLLER_NAME: EnvironmentVariable<string> = {
  name: 'CONTROLLER_NAME',
  range: 'a name of at most 100 letters, digits, _ . : and -',
  byDefault: null,
  meaning:
    'Unique name of this controller among the controllers of one PostgreSQL store; unset: host name and port',
  read: (text) => (NAME.test(text) ? text : undefined),
}

const ADVERTISED_URL: EnvironmentVariable<string> = {
  name: 'CONTROLLER_ADVERTISED_URL',
  range: 'an http or https URL without path, user or query',
  byDefault: null,
  meaning: 'URL at which the other controllers of the store reach this one; unset: its address and port',
  read: (text) => {
    const url = URL.canParse(text) ? new URL(text) : null
    const isPlain = url !== null && /^https?:$/.test(url.protocol) && url.href === `${url.origin}/`
    return isPlain ? url.origin : undefined
  },
}

const peerFile = (name: string, meaning: string): EnvironmentVariable<string> => ({
  name,
  range: 'a path',
  byDefault: null,
  meaning,
  read: aPath,
})

const PEER_CA_FILE = peerFile(
  'CONTROLLER_PEER_CA_FILE',
  'CA certificate for the https addresses of the other controllers of the store; unset: the CAs that ' +
    'Node trusts',
)

const PEER_CERT_FILE = peerFile(
  'CONTROLLER_PEER_CERT_FILE',
  'Certificate that this controller presents to the other controllers; unset: none',
)

const PEER_KEY_FILE = peerFile('CONTROLLER_PEER_KEY_FILE', 'Key of CONTROLLER_PEER_CERT_FILE')

const LEASE_MS: EnvironmentVariable<number> = {
  name: 'CONTROLLER_LEASE_MS',
  range: `an integer from ${MIN_LEASE_MS} to ${MAX_LEASE_MS}`,
  byDefault: String(DEFAULT_LEASE_MS),
  meaning:
    'With PostgreSQL: another controller takes over when the leader has been silent for this long, ' +
    'ms. Must be the same for all controllers of a store',
  read: (text) => integerIn(text, MIN_LEASE_MS, MAX_LEASE_MS),
}

const MAY_LEAD: EnvironmentVariable<boolean> = {
  name: 'CONTROLLER_MAY_LEAD',
  range: 'true or false',
  byDefault: 'true',
  meaning: 'With PostgreSQL: false keeps this controller a standby, which never leads',
  read: trueOrFalse,
}

export const STORE_VARIABLES = {
  storeUrl: STORE_URL,
  controllerName: CONTROLLER_NAME,
  advertisedUrl: ADVERTISED_URL,
  peerCaFile: PEER_CA_FILE,
  peerCertFile: PEER_CERT_FILE,
  peerKeyFile: PEER_KEY_FILE,
  leaseMs: LEASE_MS,
  mayLead: MAY_LEAD,
}
