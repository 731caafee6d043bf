import { setTimeout as delay } from 'node:timers/promises'
import { GuardFault } from './guard-fault.ts'
import { claimFolder, readExit, readGuard, readTask, removeFolder, type FolderTask } from './guard-folder.ts'
import { bootId } from './guard-lease.ts'
import type { HeldGuard } from './held-guard.ts'
import { isAlive, type ProcessKey } from './process-table.ts'

const BEGIN_LIMIT_MS = 10_000
const POLL_INTERVAL_MS = 20
const SWEEP_LIMIT_MS = 30_000

/**
 * Takes over one folder of an earlier server: a living guard is attached to; of one that is dead, everything
 * left is killed.
 * @returns null for a folder in which nothing ran, which is then gone Rejects with GuardFault when something
 *   of the task cannot be killed.
 */
export async function adoptFolder(
  folder: string,
  hold: (task: FolderTask) => HeldGuard,
): Promise<HeldGuard | null> {
  const task = await readTask(folder)
  if (task === null) {
    await removeFolder(folder) // its server died before it asked for a guard
    return null
  }
  const held = hold(task)
  const isNeverRun = claimFolder(folder)
  const guard = isNeverRun ? null : await livingGuard(folder)
  if (guard === null || !(await attachTo(held, guard))) await held.settleOnce(SWEEP_LIMIT_MS)
  return held
}

async function livingGuard(folder: string): Promise<ProcessKey | null> {
  const found = await readGuard(folder)
  const guard = found?.bootId === bootId() ? found.guard : null
  return guard !== null && isAlive(guard) ? guard : null
}

/** A guard that lives and does not answer holds no deadline either: it is killed, and its task with it. */
async function attachTo(held: HeldGuard, guard: ProcessKey): Promise<boolean> {
  const deadline = performance.now() + BEGIN_LIMIT_MS
  while (isAlive(guard)) {
    try {
      await held.attach(guard.pid)
      return true
    } catch (error) {
      if ((await readExit(held.folder)) !== null) return false
      if (performance.now() > deadline || error instanceof GuardFault) killGuard(guard)
    }
    await delay(POLL_INTERVAL_MS)
  }
  return false
}

function killGuard(guard: ProcessKey): void {
  if (isAlive(guard)) process.kill(guard.pid, 'SIGKILL')
}
