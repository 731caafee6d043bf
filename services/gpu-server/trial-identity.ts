import { dirname } from 'node:path'
import { closedFolderOf } from './task-identity.ts'

/** Number of ids for the tasks of each server of a trial. */
const IDS = 1_024
const FIRST_ID = 200_000

/**
 * Returns the option for the users of a server's tasks in a trial on this machine. As root each attempt has
 * its own user where such users can enter the folder and start this program; else tasks run as the current
 * user.
 * @param index of the server, from 1: servers of one host share no ids
 */
export function trialIdentity(
  folder: string,
  index: number,
  uid = process.getuid?.() ?? 0,
): readonly string[] {
  if (uid !== 0) return ['--tasks-as-me']
  const isClosed = [folder, process.execPath, dirname(process.argv[1] ?? '')].some(
    (path) => closedFolderOf(path) !== null,
  )
  if (isClosed) return ['--task-user', 'root']
  const from = FIRST_ID + (index - 1) * IDS
  return ['--task-uids', `${from}-${from + IDS - 1}`]
}
