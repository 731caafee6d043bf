import { readFileSync, readdirSync } from 'node:fs'

/** Reads processes from /proc. Pids are those of this PID namespace; ended processes are in no answer. */

/** `startTime`, in clock ticks since boot, distinguishes a pid from a later use of the same number. */
export interface ProcessKey {
  readonly pid: number
  readonly startTime: number
}

/** False for a zombie too: it holds no resources. */
export function isAlive(process: ProcessKey): boolean {
  const fields = statFields(process.pid)
  return fields !== null && fields[0] !== 'Z' && fields[0] !== 'X' && Number(fields[19]) === process.startTime
}

/** True if it is neither gone nor a zombie; it may be stopped. */
export function isRunnable(pid: number): boolean {
  return !['Z', 'X', null].includes(stateOf(pid))
}

/** T or t: stopped; Z: dead, not reaped. */
export function stateOf(pid: number): string | null {
  return statFields(pid)?.[0] ?? null
}

export function threadStateOf(pid: number, thread: number): string | null {
  return fieldsIn(read(`/proc/${pid}/task/${thread}/stat`))?.[0] ?? null
}

export function startTimeOf(pid: number): number | null {
  const fields = statFields(pid)
  return fields === null ? null : Number(fields[19])
}

/** Returns children, their children and so on, each parent before its children. */
export function descendantsOf(pid: number): number[] {
  const found = [...childrenOf(pid)]
  const seen = new Set(found)
  for (let i = 0; i < found.length; i++) {
    for (const child of childrenOf(found[i]!)) {
      if (seen.has(child)) continue
      seen.add(child)
      found.push(child)
    }
  }
  return found
}

/**
 * Returns all processes whose initial environment has the assignment; processes of other users are visible to
 * root only.
 */
export function processesWith(assignment: string): number[] {
  return namesIn('/proc')
    .map(Number)
    .filter(
      (pid) => Number.isInteger(pid) && `\0${read(`/proc/${pid}/environ`)}`.includes(`\0${assignment}\0`),
    )
}

/** Returns real, effective, saved and file system user; empty for a process that is gone. */
export function usersOf(pid: number): readonly number[] {
  const [, ids] = /^Uid:\t(.*)$/m.exec(read(`/proc/${pid}/status`)) ?? []
  return ids === undefined ? [] : ids.split('\t').map(Number)
}

/** Returns all processes of this user. */
export function processesOf(uid: number): number[] {
  return namesIn('/proc')
    .map(Number)
    .filter((pid) => Number.isInteger(pid) && read(`/proc/${pid}/status`).includes(`\nUid:\t${uid}\t`))
}

/** Returns the pids of a file that lists them. */
export function pidsIn(path: string): number[] {
  return read(path).split(/\s+/).filter(Boolean).map(Number)
}

function childrenOf(pid: number): number[] {
  return namesIn(`/proc/${pid}/task`).flatMap((thread) => pidsIn(`/proc/${pid}/task/${thread}/children`))
}

function statFields(pid: number): string[] | null {
  return fieldsIn(read(`/proc/${pid}/stat`))
}

/** Returns the fields from the state on; the name before it may contain anything. */
function fieldsIn(text: string): string[] | null {
  return text === '' ? null : text.slice(text.lastIndexOf(')') + 2).split(' ')
}

function read(path: string): string {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return ''
  }
}

function namesIn(path: string): string[] {
  try {
    return readdirSync(path)
  } catch {
    return []
  }
}
