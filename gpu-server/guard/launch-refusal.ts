/**
 * Why a start was refused, by code: whether the host or the task is the reason decides what the controller
 * does with it (safety 3).
 */
import { constants } from 'node:os'
import type { StartRefused } from '../../protocol/messages.ts'
import { codeOf } from './guard-fault.ts'

/** Steps of keeper.c before the command is one. */
const STEP_FOLDER = 4
const STEP_COMMAND = 5

const { E2BIG, EACCES, EISDIR, ELOOP, ENAMETOOLONG, ENOENT, ENOEXEC, ENOTDIR, EPERM, ETXTBSY } =
  constants.errno
/**
 * What is wrong with a command itself. Any other error at this step is the host's: no process, memory, file
 * or disk for it.
 */
const OF_THE_COMMAND: ReadonlySet<number> = new Set([
  E2BIG,
  EACCES,
  EISDIR,
  ELOOP,
  ENAMETOOLONG,
  ENOENT,
  ENOEXEC,
  ENOTDIR,
  EPERM,
  ETXTBSY,
])

/** @param step of keeper.c, with the `errno` that it met */
export function refusalAtStep(step: number, errno: number): StartRefused {
  if (step === STEP_FOLDER) return { cause: 'host', code: 'work_folder' }
  if (step < STEP_FOLDER) return { cause: 'host', code: 'task_user' }
  if (step === STEP_COMMAND && errno === ENOENT) return { cause: 'task', code: 'command_not_found' }
  if (OF_THE_COMMAND.has(errno)) return { cause: 'task', code: 'command_not_executable' }
  return { cause: 'host', code: 'no_process' }
}

/** The command or its environment cannot be given to any process. */
export const BAD_COMMAND: StartRefused = { cause: 'task', code: 'bad_command' }
/** The run lease ended first: it says nothing about the host or the task. */
export const LEASE_OVER: StartRefused = { cause: 'passing', code: 'lease_over' }
/** The guard did not come so far: no process, no memory, no folder. */
export const GUARD_FAILED: StartRefused = { cause: 'host', code: 'guard_failed' }

/**
 * The server itself could not prepare the attempt: its state or work folder, its disk, its processes.
 * @param code where it was, when the error itself does not say more
 */
export function refusalOfFault(error: unknown, code = 'state_folder'): StartRefused {
  switch (codeOf(error)) {
    case 'ENOSPC':
    case 'EDQUOT':
      return { cause: 'host', code: 'disk_full' }
    case 'EAGAIN':
    case 'ENOMEM':
    case 'EMFILE':
    case 'ENFILE':
      return { cause: 'host', code: 'no_process' }
    default:
      return { cause: 'host', code }
  }
}
