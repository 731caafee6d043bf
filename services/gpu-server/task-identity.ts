/**
 * Chooses the users that tasks of a GPU server run as, from its options, and checks what must not be open to
 * them. See docs/decisions/0076.
 */
import { readFileSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { DEFAULT_IDS, type IdRange, type TaskIdentity } from '../../gpu-server/devices/task-identity.ts'
import { CommandFailure, UsageError } from '../exit-codes.ts'
import type { NatsSettings } from '../settings/nats-settings.ts'

export interface TaskIdentityOptions {
  readonly allowExec?: boolean
  readonly taskUser?: string
  readonly taskUids?: IdRange
  readonly tasksAsMe?: boolean
}

/** Throws UsageError where the options contradict each other or the user of this process. */
export function taskIdentityOf(options: TaskIdentityOptions, uid = process.getuid?.() ?? 0): TaskIdentity {
  const { allowExec = false, taskUser, taskUids, tasksAsMe = false } = options
  const given = [taskUser !== undefined && '--task-user', taskUids !== undefined && '--task-uids'].find(
    (each) => each !== false,
  )
  if (uid !== 0) {
    if (given !== undefined)
      throw new UsageError(`${given}: only a server that runs as root can run tasks as other users`)
    if (allowExec && !tasksAsMe) {
      throw new UsageError(
        'a server that does not run as root shares its user, key and state with its tasks: run it as root ' +
          '(each attempt then has its own user), or accept this with --tasks-as-me',
      )
    }
    return { kind: 'server_user' }
  }
  if (tasksAsMe)
    throw new UsageError(
      '--tasks-as-me is for a server that does not run as root; as root, use --task-user root',
    )
  if (taskUser === 'root' || taskUser === '0:0') {
    if (taskUids !== undefined) throw new UsageError('--task-user root cannot be combined with --task-uids')
    return { kind: 'root' }
  }
  const ids = taskUids ?? DEFAULT_IDS
  const users = passwd()
  const known = users.find((user) => user.uid >= ids.from && user.uid <= ids.to)
  if (known !== undefined) {
    throw new UsageError(
      `--task-uids ${ids.from}-${ids.to}: ${known.uid} is user ${known.name} of this host; choose a ` +
        'range without users',
    )
  }
  return taskUser === undefined
    ? { kind: 'uid_per_attempt', ids }
    : { kind: 'task_user', ...userNamed(taskUser, users), ids }
}

interface PasswdUser {
  readonly name: string
  readonly uid: number
  readonly gid: number
  readonly home: string
}

function passwd(): readonly PasswdUser[] {
  return readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .map((line) => line.split(':'))
    .filter((fields) => fields.length >= 6)
    .map(([name = '', , uid, gid, , home = '/']) => ({ name, uid: Number(uid), gid: Number(gid), home }))
}

function userNamed(
  text: string,
  users: readonly PasswdUser[],
): { readonly uid: number; readonly gid: number; readonly home: string } {
  const numbers = /^(\d{1,9}):(\d{1,9})$/.exec(text)
  if (numbers !== null && Number(numbers[1]) !== 0)
    return { uid: Number(numbers[1]), gid: Number(numbers[2]), home: '/' }
  const user = users.find(({ name }) => name === text)
  if (user === undefined || user.uid === 0) {
    throw new UsageError(
      `--task-user: user ${JSON.stringify(text)} not found on this host; use a name, uid:gid, or root`,
    )
  }
  return { uid: user.uid, gid: user.gid, home: user.home }
}

/**
 * Tasks that share the user of the server can read its login to the broker. A broker without login has no
 * secret to steal, but any host that reaches it could pose as a node, so such a broker must be on this host.
 */
export function checkBroker(identity: TaskIdentity, { auth, urls }: NatsSettings): void {
  if (identity.kind !== 'server_user' || auth.kind !== 'none') return
  const far = urls.find((url) => !isLoopback(new URL(url).hostname))
  if (far === undefined) return
  throw new UsageError(
    `--tasks-as-me accepts a broker without keys on loopback only, not ${far}: give the server a key ` +
      '(CONTROLLER_NATS_NKEY_FILE)',
  )
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '[::1]' || /^127(\.\d{1,3}){3}$/.test(host)
}

/** Throws CommandFailure when every user may read the file: tasks run as users of this host. */
export function checkKeyFile(file: string | null, identity: TaskIdentity): void {
  if (file === null || !('ids' in identity)) return
  const about = statSync(file)
  const isOpen =
    (about.mode & 0o004) !== 0 || (identity.kind === 'task_user' && isReadableBy(about, identity))
  if (isOpen)
    throw new CommandFailure(
      `${file} can be read by the users that tasks run as: chown root ${file} && chmod 600 ${file}`,
    )
}

/** Throws CommandFailure when tasks cannot enter a folder that they need. */
export function checkFolders(folders: readonly string[], identity: TaskIdentity): void {
  if (!('ids' in identity)) return
  for (const folder of folders) {
    const closed = closedFolderOf(folder, identity.kind === 'task_user' ? identity : null)
    if (closed === null) continue
    throw new CommandFailure(
      `${folder}: tasks cannot enter ${closed}, which is closed to their users; ` +
        `choose another folder (NODE_STATE_DIR, --work-dir), or: chmod o+x ${closed}`,
    )
  }
}

/**
 * Returns the first folder on the way to `path`, or `path` itself, that a user of tasks cannot enter; else
 * null.
 */
export function closedFolderOf(
  path: string,
  user: { readonly uid: number; readonly gid: number } | null = null,
): string | null {
  return parentsOf(path).find((each) => !isOpenTo(each, user)) ?? null
}

/** From the root on; missing folders will be created open. */
function parentsOf(path: string): readonly string[] {
  const parent = dirname(path)
  return parent === path ? [path] : [...parentsOf(parent), path]
}

function isOpenTo(folder: string, user: { readonly uid: number; readonly gid: number } | null): boolean {
  const about = statSync(folder, { throwIfNoEntry: false })
  if (about === undefined || (about.mode & 0o001) !== 0) return true
  if (user === null) return false
  return about.uid === user.uid
    ? (about.mode & 0o100) !== 0
    : about.gid === user.gid && (about.mode & 0o010) !== 0
}

function isReadableBy(
  about: { readonly uid: number; readonly gid: number; readonly mode: number },
  user: { uid: number; gid: number },
): boolean {
  return about.uid === user.uid
    ? (about.mode & 0o400) !== 0
    : about.gid === user.gid && (about.mode & 0o040) !== 0
}

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
