import { closeSync, fsyncSync, openSync, writeSync } from 'node:fs'
import { mkdir, open, readFile, readdir, rename, rm } from 'node:fs/promises'
import { constants } from 'node:os'
import type { GuardExit, TaskPlace } from './guards.ts'
import { GuardFault, codeOf } from './guard-fault.ts'
import type { ProcessKey } from './process-table.ts'

/**
 * The folder of one attempt, mode 0700: `task.json`, written by the server before its guard starts; `guard`,
 * `started`, `exit`, `socket` and the output, written by the guard; `forgotten`, written by the server.
 * Everything except the socket and the output is durable.
 */

const NAME_BYTES = 250

/** Written by the server before the launch. `mark` is in the environment of all processes of the task. */
export interface FolderTask {
  readonly taskId: string
  readonly attempt: number
  readonly record: unknown
  readonly mark: string
  readonly place?: TaskPlace
  /** The name of its container; absent: it runs on the host. */
  readonly container?: string
  /** The cgroups that were made for its limits. */
  readonly limitCgroups?: readonly string[]
}

/** Written by the guard before its command ran. */
export interface FolderStarted {
  readonly guard: ProcessKey
  readonly keeper: ProcessKey
  readonly command: ProcessKey
  readonly cgroup: string | null
}

export interface FolderExit {
  readonly exit: GuardExit
  readonly byLease: boolean
  /**
   * The guard signalled it on order before it was over; false in records of earlier guards, which did not
   * store it.
   */
  readonly byOrder: boolean
  /** The attempt was stopped by an order and never ran between SIGTERM and SIGKILL. */
  readonly neverRan: boolean
  /** Before it was over, the kernel killed a process of the task because of its limit of memory. */
  readonly byMemory: boolean
}

/** The guard of the folder; null: a server cancelled the attempt before there was a guard. */
export interface FolderGuard {
  readonly guard: ProcessKey | null
  readonly bootId: string
}

export function folderNameOf(taskId: string, attempt: number): string {
  return `${encodeURIComponent(taskId)}.${attempt}`
}

/**
 * Durable once the guard has synchronised it, before the command runs. Rejects with GuardFault when the
 * folder exists, and with the file system's error.
 */
export async function createFolder(parent: string, task: FolderTask): Promise<string> {
  const name = folderNameOf(task.taskId, task.attempt)
  if (Buffer.byteLength(name) > NAME_BYTES)
    throw new GuardFault(`task ID ${task.taskId.slice(0, 40)}… is too long for a folder`)
  const path = `${parent}/${name}`
  await mkdir(path, { mode: 0o700 }).catch((error: unknown) => {
    throw codeOf(error) === 'EEXIST' ? new GuardFault(`attempt ${name} has been launched before`) : error
  })
  await Promise.all([writeFile(path, 'task.json', JSON.stringify(task)), syncFolder(parent)])
  return path
}

export async function readTask(path: string): Promise<FolderTask | null> {
  const text = await readOrNull(`${path}/task.json`)
  return text === null ? null : (JSON.parse(text) as FolderTask)
}

export async function readGuard(path: string): Promise<FolderGuard | null> {
  const fields = await readFields(`${path}/guard`)
  if (fields === null) return null
  return { guard: fields.has('guard') ? keyIn(fields, 'guard') : null, bootId: fields.get('boot') ?? '' }
}

export async function readStarted(path: string): Promise<FolderStarted | null> {
  const fields = await readFields(`${path}/started`)
  if (fields === null) return null
  return {
    guard: keyIn(fields, 'guard'),
    keeper: keyIn(fields, 'keeper'),
    command: keyIn(fields, 'command'),
    cgroup: fields.get('cgroup') || null,
  }
}

export async function readExit(path: string): Promise<FolderExit | null> {
  const fields = await readFields(`${path}/exit`)
  if (fields === null) return null
  return {
    exit: exitIn(fields),
    byLease: fields.get('lease') === '1',
    byOrder: fields.get('order') === '1',
    neverRan: fields.get('ran') === '0',
    byMemory: fields.get('memory') === '1',
  }
}

/**
 * Parses `ended code 3 lease=0 order=0 ran=1 memory=0`, the last line of a guard on its socket; earlier
 * guards omit everything after `lease`.
 */
export function exitOfReport(line: string): FolderExit | null {
  const [, kind, value, lease, order, ran, memory] =
    /^ended (code|signal) (\d+) lease=([01])(?: order=([01]) ran=([01]))?(?: memory=([01]))?$/.exec(line) ??
    []
  if (kind === undefined || value === undefined) return null
  return {
    exit: exitIn(new Map([[kind, value]])),
    byLease: lease === '1',
    byOrder: order === '1',
    neverRan: ran === '0',
    byMemory: memory === '1',
  }
}

/** Records that the end is not known. */
export async function writeUnknownExit(path: string): Promise<void> {
  await writeDurably(path, 'exit', 'unknown\nlease 0\n')
}

/**
 * Claims a folder before a guard does: a guard that starts late finds it claimed and runs nothing.
 * @returns false when a guard has claimed it
 */
export function claimFolder(path: string): boolean {
  try {
    const file = openSync(`${path}/guard`, 'wx', 0o600)
    writeSync(file, 'void\n')
    fsyncSync(file)
    closeSync(file)
    return true
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return false
    throw error
  }
}

export async function markForgotten(path: string): Promise<void> {
  await writeDurably(path, 'forgotten', '')
}

export async function isForgotten(path: string): Promise<boolean> {
  return (await readOrNull(`${path}/forgotten`)) !== null
}

export async function removeFolder(path: string): Promise<void> {
  await rm(path, { recursive: true, force: true })
}

export async function foldersIn(parent: string): Promise<string[]> {
  const entries = await readdir(parent, { withFileTypes: true })
  return entries.filter((entry) => entry.isDirectory()).map((entry) => `${parent}/${entry.name}`)
}

async function writeDurably(path: string, name: string, text: string): Promise<void> {
  await writeFile(path, name, text)
  await syncFolder(path)
}

/** Makes the content durable, but not the name. */
async function writeFile(path: string, name: string, text: string): Promise<void> {
  const file = await open(`${path}/${name}.new`, 'w', 0o600)
  try {
    await file.writeFile(text)
    await file.sync()
  } finally {
    await file.close()
  }
  await rename(`${path}/${name}.new`, `${path}/${name}`)
}

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r')
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}

async function readOrNull(path: string): Promise<string | null> {
  return readFile(path, 'utf8').catch((error: unknown) => {
    if (codeOf(error) === 'ENOENT') return null
    throw error
  })
}

async function readFields(path: string): Promise<ReadonlyMap<string, string> | null> {
  const text = await readOrNull(path)
  if (text === null) return null
  const lines = text.split('\n').filter((line) => line !== '')
  return new Map(lines.map((line) => [line.split(' ', 1)[0]!, line.slice(line.indexOf(' ') + 1)]))
}

function keyIn(fields: ReadonlyMap<string, string>, name: string): ProcessKey {
  const [pid, startTime] = (fields.get(name) ?? '0 0').split(' ').map(Number)
  return { pid: pid ?? 0, startTime: startTime ?? 0 }
}

function exitIn(fields: ReadonlyMap<string, string>): GuardExit {
  const code = fields.get('code')
  const signal = fields.get('signal')
  return {
    code: code === undefined ? null : Number(code),
    signal: signal === undefined ? null : signalName(Number(signal)),
  }
}

function signalName(number: number): string {
  const named = Object.entries(constants.signals).find(([, value]) => value === number)
  return named?.[0] ?? `SIG${number}`
}
