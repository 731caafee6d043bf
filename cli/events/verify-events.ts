/** `headroom events verify`: reads the file, without a controller. */
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { STORE_FILE } from '../../controller/adapters/sqlite/store.ts'
import {
  verifyEvents,
  type NotedLink,
  type Verification,
} from '../../controller/adapters/sqlite/verify-events.ts'
import { EXIT_FAILED, EXIT_OK } from '../../services/exit-codes.ts'
import { readSettings } from '../../services/settings/settings.ts'

export interface VerifyEventsOptions {
  readonly noted?: readonly NotedLink[]
  readonly json?: boolean
}

/** @throws StoreFault when the file cannot be read or has no chain. */
export function verifyEventLog(
  path: string | undefined,
  { noted, json }: VerifyEventsOptions,
  env: NodeJS.ProcessEnv,
): number {
  const file = storeFileAt(path ?? readSettings({ CONTROLLER_DATA_DIR: env['CONTROLLER_DATA_DIR'] }).dataDir)
  const result = verifyEvents(file, noted)
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
  const pruned = prunedSeq === 0 ? '' : ` (those up to ${prunedSeq} were removed by retention)`
  const kept =
    firstSeq === null
      ? 'no events are kept'
      : `${events} ${events === 1 ? 'event' : 'events'}, ${firstSeq} to ${lastSeq}`
  return `intact: ${kept}${pruned}; note this elsewhere: ${lastSeq}:${lastHash}`
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
