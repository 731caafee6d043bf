/** The users of a server's tasks in a test: as root a separate one for each attempt, as on a GPU host. */
import { join } from 'node:path'
import { closedFolderOf } from '../../services/gpu-server/task-identity.ts'

const ROOT = join(import.meta.dirname, '../..')
const IDS = 1_024
const FIRST_ID = 1_000_000
const RANGES = 1_000_000

/**
 * Options of `headroom gpu-server`; every call uses another range of ids, because test files run
 * concurrently.
 */
export function taskIdentity(): readonly string[] {
  if (process.getuid?.() !== 0) return ['--tasks-as-me']
  // Tasks of tests run programs of this repository.
  if ([ROOT, process.execPath].some((path) => closedFolderOf(path) !== null)) return ['--task-user', 'root']
  const from = FIRST_ID + Math.floor(Math.random() * RANGES) * IDS
  return ['--task-uids', `${from}-${from + IDS - 1}`]
}
