/** Environment variables of the store. */
import { readStoreUrl, type StorePlace } from '../../controller/adapters/postgres/store-url.ts'
import { trueOrFalse, type EnvironmentVariable } from './env-variable.ts'

export const STORE_URL: EnvironmentVariable<StorePlace> = {
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
  meaning:
    'Require an existing store in that folder, so that an unmounted volume is not taken for a new ' +
    'installation',
  read: trueOrFalse,
}
