/** `headroom events verify`: reads the store, without a controller. */
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { verifyPostgresEvents } from '../../controller/adapters/postgres/commands.ts'
import { describePlace } from '../../controller/adapters/postgres/store-url.ts'
import { STORE_FILE } from '../../controller/adapters/sqlite/store.ts'
import {
  verifyEvents,
  type NotedLink,
  type Verification,
} from '../../controller/adapters/sqlite/verify-events.ts'
import { postgresMarkBase } from '../../services/controller/open-store.ts'
import { EXIT_FAILED, EXIT_OK } from '../../services/exit-codes.ts'
import { readSettings } from '../../services/settings/settings.ts'

export interface VerifyEventsOptions {
  readonly noted?: readonly NotedLink[]
  readonly json?: boolean
}

/**
 * Without a path the store of the settings: a file, or PostgreSQL.
 * @throws StoreFault when it cannot be read or has no chain
 */
export async function verifyEventLog(
  path: string | undefined,
  { noted, json }: VerifyEventsOptions,
  env: NodeJS.ProcessEnv,
): Promise<number> {
  const { dataDir, storePlace } = readSettings({
    CONTROLLER_DATA_DIR: env['CONTROLLER_DATA_DIR'],
    CONTROLLER_STORE_URL: env['CONTROLLER_STORE_URL'],
  })
  const place = path === undefined ? storePlace : null
  const file = place === null ? storeFileAt(path ?? dataDir) : describePlace(place)
  const result =
    place === null
      ? verifyEvents(file, noted)
      : await verifyPostgresEvents({ place, markBase: postgresMarkBase({ dataDir }) }, noted)
  process.stdout.write(
    json === true ? `${JSON.stringify(jsonOf(file, result))}\n` : `${file}: ${textOf(result)}\n`,
  )
  return result.isIntact ? EXIT_OK : EXIT_FAILED
}

function storeFileAt(path: string): string {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true ? join(path, STORE_FILE) : path
}

function textOf(result: Verification): string {
  if (!result.isIntact) return `broken at event ${result.brokenSeq}: ${result.why}`
  const { events, firstSeq, lastSeq, lastHash, prunedSeq } = result
  const pruned = prunedSeq === 0 ? '' : ` (events up to ${prunedSeq} are no longer stored)`
  const kept =
    firstSeq === null
      ? 'no events are kept'
      : `${events} ${events === 1 ? 'event' : 'events'}, ${firstSeq} to ${lastSeq}`
  return `intact: ${kept}${pruned}; record this elsewhere: ${lastSeq}:${lastHash}`
}

function jsonOf(file: string, result: Verification): object {
  if (!result.isIntact) return { file, intact: false, broken_seq: result.brokenSeq, why: result.why }
  const { events, firstSeq, lastSeq, lastHash, prunedSeq } = result
  return {
    file,
    intact: true,
    events,
    first_seq: firstSeq,
    last_seq: lastSeq,
    last_hash: lastHash,
    pruned_seq: prunedSeq,
  }
}
