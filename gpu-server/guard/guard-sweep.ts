import { writeFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { GuardFault, codeOf } from './guard-fault.ts'
import type { FolderStarted, FolderTask } from './guard-folder.ts'
import {
  descendantsOf,
  isAlive,
  pidsIn,
  isRunnable,
  processesOf,
  processesWith,
  startTimeOf,
  type ProcessKey,
} from './process-table.ts'

const POLL_INTERVAL_MS = 20

/**
 * Kills what a dead or unresponsive guard has left: itself, its keeper, its command, their descendants, the
 * members of its cgroup, all processes of the user that only this attempt has, and all processes with its
 * mark in the environment. Resolves when nothing is left; rejects with GuardFault when something still is
 * after `limitMs`.
 */
export async function sweep(task: FolderTask, started: FolderStarted | null, limitMs: number): Promise<void> {
  const deadline = performance.now() + limitMs
  const cgroup = started?.cgroup ?? null
  for (;;) {
    if (cgroup !== null) killCgroup(cgroup)
    const left = leftOf(task, started)
    if (left.length === 0) return
    for (const pid of left) killQuietly(pid)
    if (performance.now() > deadline)
      throw new GuardFault(
        `task ${task.taskId}: process ${left[0]} of attempt ${task.attempt} cannot be killed`,
      )
    await delay(POLL_INTERVAL_MS)
  }
}

function leftOf(task: FolderTask, started: FolderStarted | null): number[] {
  const found = new Set(processesWith(`HEADROOM_ATTEMPT=${task.mark}`))
  const user = task.place?.user ?? null
  if (user !== null && user.uid === user.ownGroup) for (const pid of processesOf(user.uid)) found.add(pid)
  if (started !== null) {
    for (const root of [started.guard, started.keeper, started.command].filter(isAlive))
      for (const pid of treeOf(root)) found.add(pid)
    if (started.cgroup !== null) for (const pid of pidsIn(`${started.cgroup}/cgroup.procs`)) found.add(pid)
  }
  return [...found].filter(isRunnable)
}

/** Empty when the pid was reused by another process during the walk. */
function treeOf(root: ProcessKey): number[] {
  const pids = [root.pid, ...descendantsOf(root.pid)]
  return startTimeOf(root.pid) === root.startTime ? pids : []
}

function killCgroup(cgroup: string): void {
  try {
    writeFileSync(`${cgroup}/cgroup.kill`, '1')
  } catch {
    // Already removed, so it has no members.
  }
}

function killQuietly(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch (error) {
    if (codeOf(error) !== 'ESRCH' && codeOf(error) !== 'EPERM') throw error
  }
}
