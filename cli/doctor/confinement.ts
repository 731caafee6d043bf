/**
 * Checks that tasks and other parties cannot read keys and state. Finds set-ups from before each attempt had
 * its own user (docs/security.md).
 */
import { accessSync, constants, readFileSync, readdirSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { ENVIRONMENT } from '../../services/settings/env-table.ts'
import { plural } from '../output/figures.ts'
import { fail, ok, warn, type Check } from './check.ts'

const READ_BY_OTHERS = 0o004
const PROC = '/proc'
const ROTATE = 'then replace all keys: `headroom nats rotate --all -o nats.conf`'

/** Checks the key that the environment names: readable by others, or stored with keys of others. */
export function keyChecks(env: NodeJS.ProcessEnv): readonly Check[] {
  const file = env[ENVIRONMENT.natsNkeyFile.name] ?? ''
  if (file === '') return []
  const about = statSync(file, { throwIfNoEntry: false })
  if (about === undefined)
    return [fail('key', `${file} does not exist`, `correct ${ENVIRONMENT.natsNkeyFile.name}`)]
  if ((about.mode & READ_BY_OTHERS) !== 0) {
    const party = basename(file, '.nk')
    return [
      fail(
        'key',
        `${file} can be read by every user`,
        `run \`chmod 600 ${file}\`, then replace the key: \`headroom nats rotate ${party} -o nats.conf\``,
      ),
    ]
  }
  const others = keysBeside(file)
  if (others.length === 0)
    return [ok('key', `${file} is the only key in its folder, and only its owner can read it`)]
  const [first = ''] = others
  const more = others.length === 1 ? '' : ` and ${others.length - 1} more`
  return [
    warn(
      'key',
      `this user can read the keys of other identities: ${first}${more}`,
      `store the key of each identity in its own folder or secret; ${ROTATE}`,
    ),
  ]
}

/**
 * Keys of other parties that this user can read. In the folder of the configuration, where keys are
 * generated, root can read all.
 */
function keysBeside(file: string): readonly string[] {
  const folder = dirname(file)
  const isOrigin =
    process.getuid?.() === 0 &&
    statSync(join(folder, '../nats.conf'), { throwIfNoEntry: false }) !== undefined
  const names = isOrigin
    ? []
    : readdirSync(folder).filter((name) => name.endsWith('.nk') && name !== basename(file))
  return names.map((name) => join(folder, name)).filter(isReadable)
}

function isReadable(file: string): boolean {
  try {
    accessSync(file, constants.R_OK)
    return true
  } catch {
    return false
  }
}

interface ProcessOwner {
  readonly uid: number
  readonly pid: number
}

/**
 * Checks for tasks of this host that run as the user of a GPU server. Processes of other users are visible to
 * root only.
 */
export function taskUserChecks(proc = PROC): readonly Check[] {
  const servers: ProcessOwner[] = []
  const tasks: ProcessOwner[] = []
  for (const name of readdirSync(proc)) {
    if (!/^\d+$/.test(name)) continue
    const uid = Number(/^Uid:\t(\d+)/m.exec(read(`${proc}/${name}/status`))?.[1] ?? NaN)
    const words = read(`${proc}/${name}/cmdline`).split('\0')
    if (words.includes('gpu-server') && words.includes('--allow-exec'))
      servers.push({ uid, pid: Number(name) })
    else if (/(?:^|\0)HEADROOM_ATTEMPT=/.test(read(`${proc}/${name}/environ`)))
      tasks.push({ uid, pid: Number(name) })
  }
  const shared = tasks.find(({ uid }) => uid === 0 || servers.some((server) => server.uid === uid))
  if (shared === undefined)
    return servers.length === 0
      ? []
      : [ok('task users', 'no task runs as root or as the user of a GPU server')]
  const who = shared.uid === 0 ? 'root' : `the user of a GPU server (${shared.uid})`
  const todo =
    'run this version of `headroom gpu-server` as root, without --task-user root or --tasks-as-me; ' + ROTATE
  return [
    fail(
      'task users',
      `task process ${shared.pid} runs as ${who}: it can read the key and the state of the server`,
      todo,
    ),
  ]
}

function read(path: string): string {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return ''
  }
}

/** Checks what servers report. Simulated servers and earlier versions report nothing. */
export function nodeIdentityCheck(
  nodes: readonly { readonly name: string; readonly task_identity?: string | null }[],
): readonly Check[] {
  const open = nodes.filter(
    ({ task_identity: identity }) => identity !== 'uid_per_attempt' && identity !== 'task_user',
  )
  const [first] = open
  if (first === undefined)
    return nodes.length === 0
      ? []
      : [ok('task users of nodes', 'tasks and servers run as different users on every node')]
  const words = { root: 'runs tasks as root', server_user: 'runs tasks as the user of the server' } as const
  const how =
    first.task_identity === 'root' || first.task_identity === 'server_user'
      ? words[first.task_identity]
      : 'does not report which users its tasks run as (it runs an earlier version, or is simulated)'
  const more = open.length === 1 ? '' : `; the same applies to ${plural(open.length - 1, 'other node')}`
  return [
    warn(
      'task users of nodes',
      `${first.name} ${how}${more}`,
      'install this version of the GPU server on the node, and run it as root with a user for each attempt ' +
        '(without --task-user; see docs/security.md)',
    ),
  ]
}
