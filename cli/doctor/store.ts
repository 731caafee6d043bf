/** Checks of the PostgreSQL store of CONTROLLER_STORE_URL. */
import { connect, READING } from '../../controller/adapters/postgres/session.ts'
import { describePlace } from '../../controller/adapters/postgres/store-url.ts'
import { faultOf } from '../../controller/adapters/postgres/faults.ts'
import { readSettings, SettingsError } from '../../services/settings/settings.ts'
import { fail, ok, warn, type Check } from './check.ts'

interface Replication {
  readonly version: string
  /** Connected to it. */
  readonly standbys: number
  readonly names: string
}

/** Nothing without a PostgreSQL store. */
export async function storeChecks(env: NodeJS.ProcessEnv): Promise<readonly Check[]> {
  let name = 'CONTROLLER_STORE_URL'
  try {
    const { storePlace: place } = readSettings({ CONTROLLER_STORE_URL: env['CONTROLLER_STORE_URL'] })
    if (place === null) return []
    name = describePlace(place)
    const { client } = await connect(place, READING)
    try {
      const { rows } = await client.query<Replication>(
        `select current_setting('server_version') as version,
           current_setting('synchronous_standby_names') as names,
           (select count(*) from pg_stat_replication)::int as standbys`,
      )
      return rows.flatMap((found) => [
        ok('store', `${name} runs PostgreSQL ${found.version}`),
        replicationCheck(found),
      ])
    } finally {
      await client.end()
    }
  } catch (error) {
    if (error instanceof SettingsError) return [fail('store', error.message, 'correct it')]
    return [fail('store', faultOf(error, name).message, 'see docs/high-availability.md')]
  }
}

/** A promoted standby lacks commits that it had not received: acknowledged tasks would be lost. */
export function replicationCheck({ standbys, names }: Pick<Replication, 'standbys' | 'names'>): Check {
  const title = 'store: replication'
  if (standbys === 0) return ok(title, 'the database has no standby')
  const count = standbys === 1 ? '1 standby' : `${standbys} standbys`
  if (names.trim() !== '') return ok(title, `${count}, synchronous_standby_names is ${JSON.stringify(names)}`)
  return warn(
    title,
    `${count}, and synchronous_standby_names is empty: a promoted standby may lack acknowledged changes`,
    'set synchronous_standby_names in PostgreSQL, for example to ANY 1 (*)',
  )
}
