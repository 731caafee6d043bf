/**
 * Maps a refused start to a code: the controller reacts differently to causes of the host and of the task
 * (safety 3).
 */
import { constants } from 'node:os'
import type { StartRefused } from '../../protocol/message-fields.ts'
import { codeOf } from './guard-fault.ts'

/** Steps of keeper.c before the command is executed. */
const STEP_FOLDER = 4
const STEP_COMMAND = 5

const { E2BIG, EACCES, EISDIR, ELOOP, ENAMETOOLONG, ENOENT, ENOEXEC, ENOTDIR, EPERM, ETXTBSY } =
  constants.errno
/**
 * Errors of the command itself. Any other error at this step is the host's: it lacks processes, memory, files
 * or disk.
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

/** @param step of keeper.c, with its `errno` */
export function refusalAtStep(step: number, errno: number): StartRefused {
  if (step === STEP_FOLDER) return { cause: 'host', code: 'work_folder' }
  if (step < STEP_FOLDER) return { cause: 'host', code: 'task_user' }
  if (step === STEP_COMMAND && errno === ENOENT) return { cause: 'task', code: 'command_not_found' }
  if (OF_THE_COMMAND.has(errno)) return { cause: 'task', code: 'command_not_executable' }
  return { cause: 'host', code: 'no_process' }
}

/** The task names the folder in which its command starts. */
export function refusalInCwd(refused: StartRefused): StartRefused {
  return refused.code === 'work_folder' ? { cause: 'task', code: 'cwd_not_usable' } : refused
}

/** The working directory is the image's own. */
export function refusalInContainer(refused: StartRefused): StartRefused {
  return refused.code === 'work_folder' ? { cause: 'task', code: 'image_work_folder' } : refused
}

/**
 * The engine answered and the container did not start. A reason of the task, because an image may cause it: a
 * reason of the host would let one image close nodes to all tasks.
 */
export const NO_CONTAINER: StartRefused = { cause: 'task', code: 'container_not_started' }
/** This host starts no containers. */
export const NO_RUNTIME: StartRefused = { cause: 'host', code: 'no_container_runtime' }
/** Its engine makes no network in which tasks do not reach each other. */
export const NO_NETWORK: StartRefused = { cause: 'host', code: 'no_task_network' }
/** This host cannot limit the task as it said. */
export const NO_LIMITS: StartRefused = { cause: 'host', code: 'limits_not_set' }
/** The stop was ordered before there was a process. */
export const STOPPED_FIRST: StartRefused = { cause: 'passing', code: 'stopped' }

/** The command or its environment cannot be passed to any process. */
export const BAD_COMMAND: StartRefused = { cause: 'task', code: 'bad_command' }
/** The run lease ended first: neither the host nor the task is the cause. */
export const LEASE_OVER: StartRefused = { cause: 'passing', code: 'lease_over' }
/** The guard did not start: no process, no memory, no folder. */
export const GUARD_FAILED: StartRefused = { cause: 'host', code: 'guard_failed' }

/**
 * The server itself could not prepare the attempt: its state or work folder, its disk, its processes.
 * @param code used when the error itself does not determine one
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
